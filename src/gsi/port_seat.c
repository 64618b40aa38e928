/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The table of ports: the processes that take part, and the blocks of those that have ended. */
#include "gsi/port_entry.h"
#include "host/page.h"

static void block_rest(struct vb_port_table *t, uint32_t block, uint64_t now)
{
	struct vb_port_rest *rest = &t->rest[t->next_rest++ % VB_PORT_RESTS];

	__atomic_store_n(&rest->block, block, __ATOMIC_RELAXED);
	__atomic_store_n(&rest->since, now, __ATOMIC_RELAXED);
}

void vb_port_seat_clear(struct vb_port_table *t, uint32_t seat, uint64_t now)
{
	struct vb_port_seat *s = &t->seat[seat];
	uint32_t block = s->number >> VB_QPN_BLOCK_BITS;

	for (uint32_t word = 0; word < VB_PORT_BINDINGS / 64; word++) {
		for (uint64_t bits = t->used[word]; bits; bits &= bits - 1) {
			uint32_t index = word * 64 + (uint32_t)__builtin_ctzll(bits);
			struct vb_port_body body;

			vb_port_body_get(&t->entry[index], &body);
			if (body.seat == seat)
				vb_port_entry_free(t, index, &body);
		}
	}
	if (s->number && block < VB_PORT_BLOCKS) {
		block_rest(t, block, now);
		__atomic_store_n(&t->seat_of[block], 0, __ATOMIC_RELAXED);
	}
	vb_port_store(&s->number, 0);
	vb_port_store(&s->taken, 0);
}

void vb_port_seat_take(struct vb_port_table *t, uint32_t seat, uint32_t number, uint64_t now)
{
	struct vb_port_seat *s = &t->seat[seat];
	uint32_t block = number >> VB_QPN_BLOCK_BITS;

	vb_port_seat_clear(t, seat, now);
	vb_port_store(&s->taken, 1);
	vb_port_store(&s->number, number);
	if (number && block < VB_PORT_BLOCKS)
		__atomic_store_n(&t->seat_of[block], (uint16_t)(seat + 1), __ATOMIC_RELEASE);
}

bool vb_port_block_rests(const struct vb_port_table *t, uint32_t block, uint64_t now)
{
	if (vb_port_seat_of(t, block) != VB_PORT_NOBODY)
		return true;
	for (uint32_t i = 0; i < VB_PORT_RESTS; i++) {
		const struct vb_port_rest *rest = &t->rest[i];

		if (rest->since && rest->block == block && now - rest->since < VB_PORT_REST_NS)
			return true;
	}
	return false;
}

uint32_t vb_port_member(const struct vb_port_table *t, uint32_t seat)
{
	return vb_port_load(&t->seat[seat].number) & ((1u << 24) - 1);
}

uint32_t vb_port_seat_of(const struct vb_port_table *t, uint32_t block)
{
	uint32_t seat;

	if (block >= VB_PORT_BLOCKS)
		return VB_PORT_NOBODY;
	seat = __atomic_load_n(&t->seat_of[block], __ATOMIC_ACQUIRE);
	if (!seat || seat > VB_COMMONS_SEATS ||
	    vb_port_member(t, seat - 1) >> VB_QPN_BLOCK_BITS != block)
		return VB_PORT_NOBODY;
	return seat - 1;
}
