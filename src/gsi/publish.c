/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The connections of this process that others must be able to end (gsi/published.h). */
#include <stdlib.h>
#include <string.h>

#include "base/fork.h"
#include "base/lock.h"
#include "base/log.h"
#include "gsi/port_table.h"
#include "gsi/private.h"
#include "host/page.h"

#define CHUNK_FULL UINT64_MAX

_Static_assert(VB_PUBLISHED_CHUNK == 64, "one word of bits is one chunk");

static struct {
	pthread_mutex_t lock;
	uint32_t count;
	uint16_t chunk[VB_PUBLISHED_CHUNKS]; /* those of this process, `count` of them */
	uint64_t used[VB_PUBLISHED_CHUNKS];  /* slots, by the chunk's number */
	bool full;                           /* it was said that there is no room */
} own = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool is_member(const void *arg, uint32_t number)
{
	return vb_port_seat_of(arg, number >> VB_QPN_BLOCK_BITS) != VB_PORT_NOBODY;
}

/* Under the lock: a chunk with room. VB_PUBLISHED_NOBODY: there is none. */
static uint32_t chunk_with_room(struct vb_port_table *t, uint32_t number)
{
	uint32_t chunk;

	for (uint32_t i = own.count; i--;) {
		if (own.used[own.chunk[i]] != CHUNK_FULL)
			return own.chunk[i];
	}
	chunk = vb_published_claim(&t->published, number, is_member, t);
	if (chunk == VB_PUBLISHED_NOBODY)
		return chunk;
	own.used[chunk] = 0;
	own.chunk[own.count++] = (uint16_t)chunk;
	return chunk;
}

static uint32_t publish(struct vb_port_table *t, uint32_t number, const struct vb_gsi_connection *c)
{
	uint32_t chunk = chunk_with_room(t, number), slot;

	if (chunk == VB_PUBLISHED_NOBODY)
		return 0;
	slot = (uint32_t)__builtin_ctzll(~own.used[chunk]);
	if (!vb_published_set(&t->published, number, chunk, slot, c))
		return 0;
	own.used[chunk] |= 1ull << slot;
	return chunk * VB_PUBLISHED_CHUNK + slot + 1;
}

uint32_t vb_gsi_publish(const struct vb_gsi_connection *connection)
{
	uint32_t number = atomic_load(&vb_gsi.number), place, before;
	struct vb_port_table *t = vb_gsi_table();
	bool say = false;

	if (!number || !t)
		return 0;
	vb_mutex_take(&own.lock, VB_ORDER_PUBLISHED);
	before = own.count;
	place = publish(t, number, connection);
	if (!place)
		say = !own.full;
	own.full = !place;
	vb_mutex_release(&own.lock);
	if (say)
		vb_log(VB_LOG_INFO,
		       "connections: %u are published on this host, which is the most; peers of further ones are not told if this process is killed",
		       VB_PUBLISHED_CHUNKS * VB_PUBLISHED_CHUNK);
	if (place && !before)
		vb_gsi_watch_soon();
	return place;
}

/* Under the lock. One chunk is kept, so that single connections do not claim one each. */
static void drop_empty(struct vb_port_table *t, uint32_t number, uint32_t chunk)
{
	if (own.used[chunk] || own.count < 2)
		return;
	for (uint32_t i = 0; i < own.count; i++) {
		if (own.chunk[i] == chunk) {
			own.chunk[i] = own.chunk[--own.count];
			vb_published_release(&t->published, number, chunk);
			return;
		}
	}
}

void vb_gsi_withdraw(uint32_t place)
{
	uint32_t number = atomic_load(&vb_gsi.number);
	uint32_t chunk = (place - 1) / VB_PUBLISHED_CHUNK, slot = (place - 1) % VB_PUBLISHED_CHUNK;
	struct vb_port_table *t = vb_gsi_table();

	if (!place || chunk >= VB_PUBLISHED_CHUNKS || !number || !t)
		return;
	vb_mutex_take(&own.lock, VB_ORDER_PUBLISHED);
	if (own.used[chunk] >> slot & 1) {
		vb_published_clear(&t->published, number, chunk, slot);
		own.used[chunk] &= ~(1ull << slot);
		drop_empty(t, number, chunk);
	}
	vb_mutex_release(&own.lock);
}

void vb_gsi_withdraw_all(void)
{
	uint32_t number = atomic_load(&vb_gsi.number);
	struct vb_port_table *t = vb_gsi_table();

	vb_mutex_take(&own.lock, VB_ORDER_PUBLISHED);
	while (t && own.count)
		vb_published_release(&t->published, number, own.chunk[--own.count]);
	memset(own.used, 0, sizeof(own.used));
	vb_mutex_release(&own.lock);
}

static void forked(void)
{
	memset(&own, 0, sizeof(own));
	pthread_mutex_init(&own.lock, NULL);
}

VB_FORK_HOOK(.phase = VB_FORK_ROOMS, .child = forked);
