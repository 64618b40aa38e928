/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The shared table of an XRC domain: membership, places of queue pairs, which process has the queue
 * of a number, and members that have died.
 */
#include "xrc/table.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/log.h"
#include "base/sys.h"
#include "device/device.h"
#include "engine/engine.h"
#include "engine/engines.h"
#include "engine/schedule.h"
#include "process/process.h"
#include "qp/qp.h"
#include "remote/steer.h"

/* Members of other builds share the table. */
_Static_assert(sizeof(struct vb_xrc_seats) == 64 && sizeof(struct vb_xrc_qp_place) == 18792 &&
		       offsetof(struct vb_xrc_table, srq) == 4248 &&
		       offsetof(struct vb_xrc_table, qp) == 528536,
	       "another layout of the shared table has another VB_XRC_MAGIC");

#define LOCK_NAP_NS 200000
#define BLOCK(qpn)  ((qpn) >> VB_QPN_BLOCK_BITS)

int vb_xrc_table_lock(struct vb_xrc_domain *d)
{
	const struct timespec nap = {0, LOCK_NAP_NS};
	uint64_t until = vb_clock_ns() + VB_COMMONS_LOCK_NS;

	while (!vb_commons_try(d->commons)) {
		if (vb_clock_ns() > until)
			return vb_refuse(
				EBUSY, VB_REASON_BUSY,
				"xrc: a process that has the domain open was stopped while it changed it");
		vb_lock_release(&d->engine->lock);
		vb_sys_nanosleep(&nap);
		vb_engine_take(d->engine);
	}
	return 0;
}

bool vb_xrc_table_try(struct vb_xrc_domain *d)
{
	return vb_commons_try(d->commons);
}

void vb_xrc_table_unlock(struct vb_xrc_domain *d)
{
	vb_commons_unlock(d->commons);
}

/*
 * Makes the number by which other members find this process's engine: it is published, but no queue
 * pair has it.
 */
static int contact_qpn_alloc(struct vb_xrc_domain *d)
{
	struct vb_page_qp *entry;
	int err = vb_node_qpn_alloc(d->engine->node, &d->contact_qpn, &entry);

	if (err)
		return err;
	__atomic_store_n(&entry->direct, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&entry->state, IBV_QPS_RESET, __ATOMIC_RELAXED);
	__atomic_store_n(&entry->service, VB_SERVICE_XRC, __ATOMIC_RELAXED);
	__atomic_store_n(&entry->dest_qpn, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&entry->engine, d->engine->index, __ATOMIC_RELAXED);
	__atomic_store_n(&entry->qpn, d->contact_qpn, __ATOMIC_RELEASE);
	return 0;
}

static void contact_qpn_free(struct vb_xrc_domain *d)
{
	struct vb_page_qp *entry = vb_node_qp_entry(d->engine->node, d->contact_qpn);

	if (!d->contact_qpn || !entry)
		return;
	__atomic_store_n(&entry->qpn, 0, __ATOMIC_SEQ_CST);
	vb_node_qpn_free(d->engine->node, d->contact_qpn);
	d->contact_qpn = 0;
}

static void seat_take(struct vb_xrc_domain *d, bool fresh)
{
	struct vb_xrc_table *t = d->table;

	d->seat = vb_commons_seat(d->commons);
	if (fresh) {
		t->magic = VB_XRC_MAGIC;
		t->next_srq = d->next_srq;
		t->next_qp = d->next_srq >> 4;
	}
	t->seat[d->seat].contact_qpn = d->contact_qpn;
	if (!++t->next_member)
		t->next_member = 1;
	__atomic_store_n(&t->seat[d->seat].used, t->next_member, __ATOMIC_RELEASE);
}

int vb_xrc_table_join(struct vb_xrc_domain *d, bool create, bool *fresh)
{
	char name[VB_COMMONS_NAME];
	int err = contact_qpn_alloc(d);

	vb_xrc_file_name(&d->file, d->device->guid, name, sizeof(name));
	if (!err)
		err = vb_commons_join(d->engine->node, name, sizeof(struct vb_xrc_table), create,
				      &d->commons, fresh);
	if (!err) {
		d->table = vb_commons_table(d->commons);
		vb_engine_take(d->engine);
		err = vb_xrc_table_lock(d);
		if (!err) {
			/*
			 * A former member on this seat that has died must not be taken for this
			 * process.
			 */
			vb_xrc_seat_clear(d, vb_commons_seat(d->commons));
			seat_take(d, *fresh);
			vb_xrc_table_unlock(d);
		}
		vb_lock_release(&d->engine->lock);
	}
	if (err)
		vb_xrc_table_leave(d);
	return err;
}

void vb_xrc_table_leave(struct vb_xrc_domain *d)
{
	if (d->commons) {
		/* Without the lock, others clear the seat: it is empty from now on. */
		if (vb_xrc_table_try(d)) {
			vb_xrc_seat_clear(d, vb_commons_seat(d->commons));
			vb_xrc_table_unlock(d);
		}
		vb_commons_leave(d->engine->node, d->commons);
	}
	for (uint32_t i = 0; i < d->num_blocks; i++)
		vb_node_block_close(d->engine->node, d->block[i]);
	contact_qpn_free(d);
	d->commons = NULL;
	d->table = NULL;
	d->num_blocks = 0;
}

static bool is_used(const struct vb_xrc_table *t, uint32_t place)
{
	return t->used[place / 64] >> place % 64 & 1;
}

static void place_free_if_unheld(struct vb_xrc_table *t, uint32_t place)
{
	struct vb_xrc_qp_place *p = &t->qp[place];

	if (!vb_seats_none(&p->holders))
		return;
	t->used[place / 64] &= ~(1ull << place % 64);
	__atomic_store_n(&p->qpn, 0, __ATOMIC_RELEASE);
	__atomic_add_fetch(&p->version, 1, __ATOMIC_RELEASE);
}

void vb_xrc_seat_clear(struct vb_xrc_domain *d, uint32_t seat)
{
	struct vb_xrc_table *t = d->table;

	__atomic_store_n(&t->seat[seat].used, 0, __ATOMIC_RELEASE);
	for (uint32_t i = 0; i < VB_XRC_SRQS; i++) {
		if (t->srq[i].number && t->srq[i].seat == seat)
			__atomic_store_n(&t->srq[i].number, 0, __ATOMIC_RELEASE);
	}
	for (uint32_t i = 0; i < VB_XRC_QPS; i++) {
		struct vb_xrc_qp_place *p = &t->qp[i];

		if (!is_used(t, i))
			continue;
		vb_seats_remove(&p->holders, seat);
		p->events[seat] = 0;
		if (p->home == seat)
			p->home = VB_XRC_NOBODY;
		place_free_if_unheld(t, i);
	}
}

static bool block_is_ours(const struct vb_xrc_domain *d, uint32_t block)
{
	for (uint32_t i = 0; i < d->num_blocks; i++) {
		if (d->block[i] == block)
			return true;
	}
	return false;
}

static int block_open(struct vb_xrc_domain *d, uint32_t *block)
{
	int err;

	if (d->num_blocks == VB_XRC_BLOCKS)
		return -ENOMEM;
	err = vb_node_block_open(d->engine->node, block);
	if (!err) {
		d->block[d->num_blocks++] = *block;
		vb_udp_steer_moved();
	}
	return err;
}

int vb_xrc_place_take(struct vb_xrc_domain *d, uint32_t *qpn)
{
	struct vb_xrc_table *t = d->table;
	uint32_t block = d->num_blocks ? d->block[0] : 0;
	int err = d->num_blocks ? 0 : block_open(d, &block);

	if (err)
		return vb_refuse(-err, VB_REASON_SYSTEM, "create_qp: no block of numbers: %s",
				 strerror(-err));
	for (uint32_t n = 0; n < VB_XRC_QPS; n++) {
		uint32_t i = t->next_qp++ % VB_XRC_QPS;
		struct vb_xrc_qp_place *p = &t->qp[i];

		if (is_used(t, i))
			continue;
		t->used[i / 64] |= 1ull << i % 64;
		uint32_t version = p->version;

		memset(p, 0, sizeof(*p));
		p->version = version + 1;
		p->home = d->seat;
		vb_seats_add(&p->holders, d->seat);
		p->state = IBV_QPS_RESET;
		*qpn = block << VB_QPN_BLOCK_BITS | i;
		__atomic_store_n(&p->qpn, *qpn, __ATOMIC_RELEASE);
		return 0;
	}
	return vb_refuse(ENOMEM, VB_REASON_ARG_LIMIT, "create_qp: the XRC domain has %u",
			 VB_XRC_QPS);
}

static struct vb_xrc_qp_place *place_of(const struct vb_xrc_domain *d, uint32_t qpn)
{
	struct vb_xrc_qp_place *p = vb_xrc_place(d, qpn);

	return __atomic_load_n(&p->qpn, __ATOMIC_ACQUIRE) == qpn ? p : NULL;
}

int vb_xrc_place_hold(struct vb_xrc_domain *d, uint32_t qpn)
{
	struct vb_xrc_qp_place *p = place_of(d, qpn);

	if (!p)
		return vb_refuse(EINVAL, VB_REASON_ARG,
				 "open_qp: the domain has no queue pair 0x%x", qpn);
	vb_seats_add(&p->holders, d->seat);
	return 0;
}

void vb_xrc_place_drop(struct vb_xrc_domain *d, uint32_t qpn)
{
	struct vb_xrc_qp_place *p = place_of(d, qpn);

	if (!p)
		return;
	vb_seats_remove(&p->holders, d->seat);
	place_free_if_unheld(d->table, qpn % VB_XRC_QPS);
}

uint32_t vb_xrc_srq_seat(const struct vb_xrc_domain *d, uint32_t srqn)
{
	const struct vb_xrc_srq_place *p = &d->table->srq[srqn % VB_XRC_SRQS];
	uint32_t seat = __atomic_load_n(&p->seat, __ATOMIC_RELAXED);

	if (__atomic_load_n(&p->number, __ATOMIC_ACQUIRE) != srqn || seat >= VB_COMMONS_SEATS)
		return VB_XRC_NOBODY;
	return seat;
}

/* Their home has died or left. The process that gets the name of their block is the next home. */
static bool adopt(struct vb_xrc_domain *d)
{
	bool orphans = false;

	for (uint32_t i = 0; i < VB_XRC_QPS; i++) {
		struct vb_xrc_qp_place *p = &d->table->qp[i];
		if (!is_used(d->table, i))
			continue;
		uint32_t qpn = p->qpn, block = BLOCK(qpn);

		if (!qpn || p->home != VB_XRC_NOBODY || qpn % VB_XRC_QPS != i ||
		    block >= 1u << (24 - VB_QPN_BLOCK_BITS) || !block)
			continue;
		struct vb_qp *body = block_is_ours(d, block) || !block_open(d, &block)
					     ? vb_xrc_body_mirror(d, qpn)
					     : NULL;

		orphans |= !body;
		if (!body)
			continue;
		p->home = d->seat;
		vb_xrc_body_settle_home(body);
		vb_log(VB_LOG_INFO, "xrc: requests for qp 0x%x come here from now on", qpn);
	}
	return orphans;
}

static bool is_dead(struct vb_xrc_domain *d, uint32_t seat)
{
	return __atomic_load_n(&d->table->seat[seat].used, __ATOMIC_ACQUIRE) &&
	       !vb_commons_seat_taken(d->commons, seat, vb_xrc_seat_lost(d, seat));
}

/*
 * Looks at the members that this process has been in contact with. The other members have
 * neighbours that look after them.
 */
static bool find_dead(struct vb_xrc_domain *d, struct vb_xrc_seats *dead)
{
	bool found = false;

	VB_SEATS_EACH(seat, &d->met)
	{
		if (!is_dead(d, seat))
			continue;
		vb_seats_add(dead, seat);
		found = true;
	}
	return found;
}

/* With the table's lock. Another member may have the seat by now. */
static void clear_dead(struct vb_xrc_domain *d, const struct vb_xrc_seats *dead)
{
	VB_SEATS_EACH(seat, dead)
	{
		if (is_dead(d, seat))
			vb_xrc_seat_clear(d, seat);
		vb_seats_remove(&d->met, seat);
	}
}

static bool has_orphans(const struct vb_xrc_domain *d)
{
	for (uint32_t w = 0; w < VB_XRC_QPS / 64; w++) {
		uint64_t word = __atomic_load_n(&d->table->used[w], __ATOMIC_ACQUIRE);

		for (; word; word &= word - 1) {
			const struct vb_xrc_qp_place *p =
				&d->table->qp[w * 64 + (uint32_t)__builtin_ctzll(word)];

			if (__atomic_load_n(&p->home, __ATOMIC_RELAXED) == VB_XRC_NOBODY)
				return true;
		}
	}
	return false;
}

/*
 * With the table's lock: queue pairs that were destroyed here while the lock's holder stood still.
 */
static void drop_late(struct vb_xrc_domain *d)
{
	d->drops = false;
	for (struct vb_qp *body = d->bodies; body; body = vb_xrc_body_of(body)->next) {
		if (!vb_xrc_shared_of(body)->dropping)
			continue;
		vb_xrc_shared_of(body)->dropping = false;
		vb_xrc_place_drop(d, body->t.qpn);
	}
}

bool vb_xrc_table_survey(struct vb_xrc_domain *d)
{
	struct vb_xrc_seats dead = {0};
	bool unsettled = false;

	/*
	 * This is called at each change of contact, most of which have no effect here; then the
	 * lock is left to others.
	 */
	if (find_dead(d, &dead) || d->drops || has_orphans(d)) {
		if (!vb_xrc_table_try(d))
			return true;
		clear_dead(d, &dead);
		drop_late(d);
		unsettled = adopt(d);
		vb_xrc_table_unlock(d);
	}
	vb_xrc_bodies_sweep(d, false);
	vb_xrc_meet(d);
	for (struct vb_qp *body = d->bodies; body; body = vb_xrc_body_of(body)->next) {
		unsettled |= vb_xrc_recall(body);
		vb_engine_make_runnable(d->engine, body);
	}
	return unsettled;
}
