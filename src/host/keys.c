/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Key slots and the values of keys. A key's random bits keep neighbours from guessing it (the start
 * of a slot's number is not secret). A slot rests after its release, so that a stale key meets an
 * invalid entry, not another region.
 */
#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "base/lock.h"
#include "base/random.h"
#include "base/reason.h"
#include "base/sys.h"
#include "host/private.h"

/*
 * So many released slots must lie before one is used again; fewer only when no fresh slot is left.
 */
#define REST      8192u
#define SLOT_NONE 0u /* slot 0 is never used: no key may be 0 */

/* 16 random bits, more than a key has. */
static uint32_t draw(struct vb_keys *keys)
{
	uint32_t r;

	if (keys->random_left < 2) {
		if (vb_sys_getrandom(keys->random, sizeof(keys->random), 0) != sizeof(keys->random))
			return vb_random32();
		keys->random_left = sizeof(keys->random);
	}
	keys->random_left -= 2;
	r = keys->random[keys->random_left];
	r |= (uint32_t)keys->random[keys->random_left + 1] << 8;
	return r;
}

static uint32_t slot_take(struct vb_keys *keys)
{
	uint32_t slot = SLOT_NONE;

	if (keys->fresh == SLOT_NONE)
		keys->fresh = 1;
	if (keys->num_free < REST && keys->fresh < VB_MAX_KEYS)
		return keys->fresh++;
	if (keys->num_free) {
		slot = keys->head;
		keys->head = keys->next[slot];
		keys->num_free--;
	}
	return slot;
}

static void slot_give(struct vb_keys *keys, uint32_t slot)
{
	if (keys->num_free)
		keys->next[keys->tail] = slot;
	else
		keys->head = slot;
	keys->tail = slot;
	keys->num_free++;
}

int vb_node_key_alloc(struct vb_node *node, uint32_t *key, struct vb_key **entry)
{
	struct vb_keys *keys = &node->keys;

	vb_mutex_take(&node->lock, VB_ORDER_NODE);
	uint32_t slot = slot_take(keys);

	if (slot == SLOT_NONE) {
		vb_mutex_release(&node->lock);
		return vb_refuse(ENOMEM, VB_REASON_NO_MEMORY, "all %u memory keys are in use",
				 VB_MAX_KEYS - 1);
	}
	uint32_t value;

	do {
		uint32_t r = draw(keys);

		value = (r >> 8) << VB_KEY_TOP_SHIFT | slot << 8 | (r & 0xff);
	} while ((value ^ keys->last[slot]) >> VB_KEY_TOP_SHIFT == 0 ||
		 (uint8_t)value == (uint8_t)keys->last[slot]);
	keys->last[slot] = value;
	keys->used[slot / 64] |= 1ull << slot % 64;
	vb_mutex_release(&node->lock);
	*key = value;
	*entry = &node->keyring->key[slot];
	(*entry)->lasting = 0;
	return 0;
}

void vb_node_key_free(struct vb_node *node, uint32_t key)
{
	struct vb_keys *keys = &node->keys;
	uint32_t slot = vb_key_slot(key);
	uint64_t bit = 1ull << slot % 64;

	if (atomic_load(&node->forked))
		return;
	vb_mutex_take(&node->lock, VB_ORDER_NODE);
	/* The tag may have changed since (type 2 windows), the rest may not. */
	if ((keys->used[slot / 64] & bit) && (keys->last[slot] ^ key) >> 8 == 0) {
		keys->used[slot / 64] &= ~bit;
		keys->last[slot] = key;
		slot_give(keys, slot);
	}
	vb_mutex_release(&node->lock);
}
