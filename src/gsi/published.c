/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Connections to other hosts, as their processes publish them. */
#include "gsi/published.h"

#include <string.h>

#include "host/page.h"

static uint32_t load(const uint32_t *word)
{
	return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

static bool change(uint32_t *word, uint32_t from, uint32_t to)
{
	return __atomic_compare_exchange_n(word, &from, to, false, __ATOMIC_ACQ_REL,
					   __ATOMIC_RELAXED);
}

static void chunk_empty(struct vb_published *p, uint32_t chunk)
{
	for (uint32_t slot = 0; slot < VB_PUBLISHED_CHUNK; slot++)
		__atomic_store_n(&p->entry[chunk][slot].comm_id, 0, __ATOMIC_RELEASE);
}

uint32_t vb_published_claim(struct vb_published *p, uint32_t number,
			    bool (*is_member)(const void *arg, uint32_t number), const void *arg)
{
	for (uint32_t chunk = 0; chunk < VB_PUBLISHED_CHUNKS; chunk++) {
		if (!load(&p->owner[chunk]) && change(&p->owner[chunk], 0, number))
			return chunk;
	}
	for (uint32_t chunk = 0; chunk < VB_PUBLISHED_CHUNKS; chunk++) {
		uint32_t owner = load(&p->owner[chunk]);

		if (owner && is_member(arg, owner))
			continue;
		if (!change(&p->owner[chunk], owner, number))
			continue;
		chunk_empty(p, chunk);
		return chunk;
	}
	return VB_PUBLISHED_NOBODY;
}

void vb_published_release(struct vb_published *p, uint32_t number, uint32_t chunk)
{
	if (load(&p->owner[chunk]) != number)
		return;
	chunk_empty(p, chunk);
	(void)change(&p->owner[chunk], number, 0);
}

bool vb_published_set(struct vb_published *p, uint32_t number, uint32_t chunk, uint32_t slot,
		      const struct vb_gsi_connection *c)
{
	struct vb_published_entry *e = &p->entry[chunk][slot];

	if (load(&p->owner[chunk]) != number)
		return false;
	e->remote_id = c->remote_id;
	e->remote_qpn = c->remote_qpn;
	memcpy(e->sgid, c->sgid, sizeof(e->sgid));
	memcpy(e->dgid, c->dgid, sizeof(e->dgid));
	__atomic_store_n(&e->comm_id, c->comm_id, __ATOMIC_RELEASE);
	return true;
}

void vb_published_clear(struct vb_published *p, uint32_t number, uint32_t chunk, uint32_t slot)
{
	if (load(&p->owner[chunk]) == number)
		__atomic_store_n(&p->entry[chunk][slot].comm_id, 0, __ATOMIC_RELEASE);
}

bool vb_published_any(const struct vb_published *p)
{
	for (uint32_t chunk = 0; chunk < VB_PUBLISHED_CHUNKS; chunk++) {
		if (load(&p->owner[chunk]))
			return true;
	}
	return false;
}

/* A process publishes connections of its own alone: their ids are of its block. */
static bool entry_take(struct vb_published_entry *e, uint32_t number, struct vb_gsi_connection *c)
{
	c->comm_id = load(&e->comm_id);
	if (!c->comm_id || c->comm_id >> VB_GSI_COMM_ID_BITS != number >> VB_QPN_BLOCK_BITS)
		return false;
	c->remote_id = __atomic_load_n(&e->remote_id, __ATOMIC_RELAXED);
	c->remote_qpn = __atomic_load_n(&e->remote_qpn, __ATOMIC_RELAXED) & ((1u << 24) - 1);
	memcpy(c->sgid, e->sgid, sizeof(c->sgid));
	memcpy(c->dgid, e->dgid, sizeof(c->dgid));
	return change(&e->comm_id, c->comm_id, 0);
}

void vb_published_take(struct vb_published *p, uint32_t number,
		       void (*take)(void *arg, const struct vb_gsi_connection *connection),
		       void *arg)
{
	struct vb_gsi_connection c;

	for (uint32_t chunk = 0; chunk < VB_PUBLISHED_CHUNKS; chunk++) {
		if (load(&p->owner[chunk]) != number)
			continue;
		for (uint32_t slot = 0; slot < VB_PUBLISHED_CHUNK; slot++) {
			if (entry_take(&p->entry[chunk][slot], number, &c))
				take(arg, &c);
		}
		(void)change(&p->owner[chunk], number, 0);
	}
}
