/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Taking part: the engine, the shared table, this process's block of numbers. */
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/lock.h"
#include "base/log.h"
#include "base/reason.h"
#include "engine/engine.h"
#include "engine/engine_life.h"
#include "gsi/port_table.h"
#include "gsi/private.h"
#include "remote/steer.h"
#include "transport/run.h"

/* Another layout of the table has another name. */
#define VB_PORT_NAME "gsi5-%u"
/* So many blocks are tried when they rest. */
#define BLOCK_TRIES  16

uint64_t vb_gsi_boot_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_BOOTTIME, &t);
	return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

struct vb_port_table *vb_gsi_table(void)
{
	struct vb_commons *c = atomic_load_explicit(&vb_gsi.commons, memory_order_acquire);

	return c ? vb_commons_table(c) : NULL;
}

int vb_gsi_engine(void)
{
	struct vb_engine *e = atomic_load(&vb_gsi.engine);
	int err = e ? 0 : vb_engine_create(&e, NULL, false);

	if (err)
		return err;
	atomic_store(&vb_gsi.engine, e);
	return 0;
}

static int refuse_join(int err)
{
	switch (err) {
	case -ENOENT:
		return err;
	case -ETIMEDOUT:
		return vb_refuse(ETIMEDOUT, VB_REASON_PEER_STILL,
				 "the table of ports: the processes that have it do not answer");
	case -EUSERS:
		return vb_refuse(EUSERS, VB_REASON_ARG_LIMIT,
				 "the table of ports: %u processes share it, which is the most",
				 VB_COMMONS_SEATS);
	default:
		return vb_refuse(-err, VB_REASON_SYSTEM, "the table of ports: %s", strerror(-err));
	}
}

/* Under the lock. Whoever had the seat before has ended. */
static void seat_begin(struct vb_commons *commons)
{
	struct vb_port_table *t = vb_commons_table(commons);
	uint32_t seat = vb_commons_seat(commons);

	vb_port_seat_take(t, seat, 0, vb_gsi_boot_ns());
	t->seat[seat].taking = vb_commons_taking(commons, seat);
}

/*
 * A process that has just taken the seat of one that has ended has not removed what that one left
 * yet: the seat is taken, and what stands in the table is not of the process that has it.
 */
bool vb_gsi_seat_ended(const struct vb_commons *commons, uint32_t seat)
{
	const struct vb_port_table *t = vb_commons_table(commons);

	return !vb_commons_seat_taken(commons, seat, true) ||
	       t->seat[seat].taking != vb_commons_taking(commons, seat);
}

int vb_gsi_join(bool create)
{
	struct vb_commons *commons;
	char name[VB_COMMONS_NAME];
	bool fresh;
	int err;

	if (atomic_load(&vb_gsi.commons))
		return 0;
	err = vb_gsi_engine();
	if (err)
		return err;
	snprintf(name, sizeof(name), VB_PORT_NAME, geteuid());
	err = vb_commons_join(atomic_load(&vb_gsi.engine)->node, name, sizeof(struct vb_port_table),
			      create, &commons, &fresh);
	if (err)
		return refuse_join(err);
	if (!vb_commons_lock(commons)) {
		vb_commons_leave(atomic_load(&vb_gsi.engine)->node, commons);
		return refuse_join(-ETIMEDOUT);
	}
	seat_begin(commons);
	vb_commons_unlock(commons);
	atomic_store_explicit(&vb_gsi.commons, commons, memory_order_release);
	return 0;
}

/*
 * Others find the engine by the number: it is published, and no queue pair has it. dest_qpn says
 * what it is.
 */
static void number_publish(struct vb_engine *e, uint32_t number)
{
	struct vb_page_qp *entry = vb_node_qp_entry(e->node, number);

	__atomic_store_n(&entry->direct, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&entry->state, IBV_QPS_RESET, __ATOMIC_RELAXED);
	__atomic_store_n(&entry->service, VB_SERVICE_UD, __ATOMIC_RELAXED);
	__atomic_store_n(&entry->dest_qpn, VB_QPN_SERVICES, __ATOMIC_RELAXED);
	__atomic_store_n(&entry->engine, e->index, __ATOMIC_RELAXED);
	__atomic_store_n(&entry->qpn, number, __ATOMIC_RELEASE);
}

static int block_take(struct vb_engine *e, uint32_t *block)
{
	int err;

	for (int i = 0; i < BLOCK_TRIES; i++) {
		*block = 0;
		err = vb_node_block_open(e->node, block);
		if (err)
			return vb_refuse(-err, VB_REASON_SYSTEM,
					 "connections: no block of numbers: %s", strerror(-err));
		if (!vb_port_block_rests(vb_gsi_table(), *block, vb_gsi_boot_ns()))
			return 0;
		vb_node_block_close(e->node, *block);
	}
	return vb_refuse(EADDRINUSE, VB_REASON_NAMES_TAKEN,
			 "connections: every block of numbers that was tried rests");
}

int vb_gsi_number_take(uint32_t *number)
{
	struct vb_commons *commons = atomic_load(&vb_gsi.commons);
	struct vb_engine *e = atomic_load(&vb_gsi.engine);
	uint32_t block;
	int err = block_take(e, &block);

	if (err)
		return err;
	*number = block << VB_QPN_BLOCK_BITS;
	number_publish(e, *number);
	if (!vb_commons_lock(commons)) {
		vb_node_block_close(e->node, block);
		return refuse_join(-ETIMEDOUT);
	}
	vb_port_seat_take(vb_gsi_table(), vb_commons_seat(commons), *number, vb_gsi_boot_ns());
	vb_commons_unlock(commons);
	vb_udp_steer_moved();
	vb_log(VB_LOG_INFO, "connections: this process is number 0x%x on seat %u", *number,
	       vb_commons_seat(commons));
	return 0;
}

void vb_gsi_number_drop(void)
{
	struct vb_commons *commons = atomic_load(&vb_gsi.commons);

	vb_gsi_withdraw_all();
	/* Without the lock others find out that the process has ended. */
	if (!commons || !vb_commons_try(commons))
		return;
	vb_port_seat_clear(vb_gsi_table(), vb_commons_seat(commons), vb_gsi_boot_ns());
	vb_commons_unlock(commons);
}

bool vb_gsi_reap(uint32_t seat)
{
	struct vb_commons *commons = atomic_load(&vb_gsi.commons);
	bool ended;

	if (!commons || seat >= VB_COMMONS_SEATS || seat == vb_commons_seat(commons))
		return false;
	if (!vb_commons_try(commons))
		return false;
	/* Asked under the lock: nobody takes the seat meanwhile. */
	ended = vb_gsi_seat_ended(commons, seat);
	if (ended)
		vb_port_seat_clear(vb_gsi_table(), seat, vb_gsi_boot_ns());
	vb_commons_unlock(commons);
	return ended;
}
