/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Bringing a MAD to the process that it is for: a MAD that this process sends to its own host, and
 * one that came by UDP for queue pair 1, are treated alike.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/lock.h"
#include "base/reason.h"
#include "device/gid.h"
#include "engine/engine.h"
#include "engine/engine_channel.h"
#include "gsi/mad_route.h"
#include "gsi/port_table.h"
#include "gsi/private.h"
#include "host/peer.h"
#include "host/slot.h"
#include "process/process.h"
#include "udp/address.h"

/* Contact is made once, and takes as long as the other process's thread takes to be scheduled. */
#define PATIENCE_NS   2000000000ull
/* MADs for one process that are kept, so that one that stands still leaves room for the others. */
#define KEPT_FOR_ONE  1024u
#define KEPT_PLACES   256u
/* Members that have ended are passed over, so many at a time. */
#define REAPS         16
/* Ids of unknown processes cost a look-up of a name each; a flood of them must not. */
#define ASK_PERIOD_NS 1000000ull
#define ASK_MOST      16u
/* A MAD for all processes is multiplied; more of them than one in this time are dropped. */
#define ALL_PERIOD_NS 10000000ull
/* Kept MADs are tried again without news. */
#define AGAIN_NS      1000000ull
/* How long a request waits for somebody to listen on its port, where that is expected. */
#define LISTEN_NS     500000000ull

enum reach { REACHED, DROPPED, LATER, ABSENT };

static _Atomic uint32_t kept_for[KEPT_PLACES];
/* MADs that were kept and are neither sent nor dropped yet; the progress thread may have them. */
static _Atomic uint32_t unsettled;

static uint32_t kept_place(uint32_t number)
{
	return (number >> VB_QPN_BLOCK_BITS) % KEPT_PLACES;
}

static enum reach drop(enum vb_reason reason, const char *why)
{
	vb_note(reason, "management datagram: %s", why);
	return DROPPED;
}

static void run_of(const struct vb_gsi_mad *mad, uint32_t number, struct vb_run *run)
{
	memset(run, 0, sizeof(*run));
	run->service = VB_SERVICE_UD;
	run->op = VB_OP_SEND;
	run->flags = VB_RUN_FIRST | VB_RUN_LAST;
	run->pkey = 0xffff;
	run->segments = 1;
	run->dest_qpn = number;
	run->src_qpn = mad->wire ? VB_QPN_SERVICES : atomic_load(&vb_gsi.number);
	run->length = VB_GSI_MAD_BYTES;
	run->qkey = VB_GSI_QKEY;
	memcpy(run->path.sgid, mad->sgid, sizeof(run->path.sgid));
	memcpy(run->path.dgid, mad->dgid, sizeof(run->path.dgid));
	run->path.flow_label = mad->flow_label;
	run->path.traffic_class = mad->traffic_class;
	run->path.hop_limit = mad->hop_limit;
}

/* Under the engine's lock. False: the ring is full. */
static bool push(struct vb_engine *e, struct vb_channel *c, const struct vb_gsi_mad *mad,
		 uint32_t number)
{
	struct vb_slot *slot;
	struct vb_run run;
	void *bulk = NULL;

	run_of(mad, number, &run);
	slot = vb_ring_reserve(&c->tx, vb_slot_bulk_bytes(&run, mad->wire), &bulk);
	if (!slot || !bulk)
		return false;
	if (mad->wire)
		vb_slot_encode_from_wire(slot, &run);
	else
		vb_slot_encode(slot, &run);
	memcpy(bulk, &run.path, sizeof(run.path));
	memcpy((uint8_t *)bulk + VB_SLOT_PATH_BYTES, mad->data, sizeof(mad->data));
	vb_ring_push(&c->tx);
	vb_engine_pushed(e, c);
	vb_engine_flush(e);
	return true;
}

/* The number may be that of a queue pair of a process without a GSI (gsi/members.c). */
static bool is_gsi(const struct vb_channel *c, uint32_t number)
{
	const struct vb_page_qp *entry = vb_peer_qp(c->peer, number);

	return entry && __atomic_load_n(&entry->dest_qpn, __ATOMIC_RELAXED) == VB_QPN_SERVICES &&
	       __atomic_load_n(&entry->service, __ATOMIC_RELAXED) == VB_SERVICE_UD;
}

static enum reach unreachable(enum vb_contact why)
{
	switch (why) {
	case VB_CONTACT_ABSENT:
	case VB_CONTACT_DEAD:
		return ABSENT;
	case VB_CONTACT_REFUSED:
		return drop(VB_REASON_DROP_STRAY, "its process refuses contact");
	default:
		return LATER;
	}
}

static enum reach to_other(struct vb_mad_item *item, uint32_t number)
{
	struct vb_engine *e = atomic_load(&vb_gsi.engine);
	enum vb_contact why = VB_CONTACT_ABSENT;
	enum reach reach = LATER;
	struct vb_channel *c;

	item->tried = number;
	if (vb_node_qp_entry(e->node, number))
		return ABSENT; /* a block of this process, but not its GSI's */
	vb_lock_take(&e->lock);
	c = vb_channel_find(e->node, e->index, number, &why);
	if (!c || atomic_load(&c->dead))
		reach = c ? ABSENT : unreachable(why);
	else if (!is_gsi(c, number))
		reach = ABSENT;
	else if (push(e, c, &item->mad, number))
		reach = REACHED;
	vb_lock_release(&e->lock);
	return reach;
}

static enum reach to_number(struct vb_mad_item *item, uint32_t number)
{
	if (!number || number != atomic_load(&vb_gsi.number))
		return number ? to_other(item, number) : ABSENT;
	vb_gsi_receive(&item->mad);
	return REACHED;
}

static enum reach lacks_table(void)
{
	vb_gsi.wants_table = true;
	return LATER;
}

/* This process, if it can answer; else the first of the members. */
static enum reach to_any(struct vb_mad_item *item)
{
	const struct vb_port_table *t = vb_gsi_table();
	uint32_t own = atomic_load(&vb_gsi.number);

	if (own)
		return to_number(item, own);
	if (!t)
		return lacks_table();
	for (uint32_t seat = 0, reaps = 0; seat < VB_COMMONS_SEATS && reaps < REAPS; seat++) {
		uint32_t number = vb_port_member(t, seat);
		enum reach reach = number ? to_number(item, number) : ABSENT;

		if (reach != ABSENT)
			return reach;
		reaps += number && vb_gsi_reap(seat);
	}
	return drop(VB_REASON_MAD_NOBODY, "no process takes connections");
}

/* Only of link-local addresses it matters. */
static uint32_t scope_of(const struct vb_gsi_mad *mad)
{
	union ibv_gid gid;

	memcpy(gid.raw, mad->dgid, sizeof(gid.raw));
	return vb_udp_is_link_scope(gid.raw) ? vb_gid_interface(&gid) : 0;
}

/*
 * Servers tell their clients of a port before they listen on it (qperf), or listen anew for each
 * connection (perftest). A client that is faster must not be told that nobody listens.
 */
static bool listener_expected(const struct vb_mad_item *item, const struct vb_port_wanted *wanted)
{
	return vb_clock_ns() - item->since < LISTEN_NS &&
	       vb_port_expected(vb_gsi_table(), wanted, vb_gsi_boot_ns());
}

static enum reach to_listener(struct vb_mad_item *item, const struct vb_mad_route *route)
{
	struct vb_port_wanted wanted = {
		.space = route->space,
		.port = route->port,
		.ip = route->ip,
		.scope = scope_of(&item->mad),
	};
	struct vb_port_table *t = vb_gsi_table();
	struct vb_commons *commons = atomic_load(&vb_gsi.commons);
	uint32_t number, seat;

	if (!t)
		return lacks_table();
	memcpy(wanted.address, route->address, sizeof(wanted.address));
	for (int i = 0; i < REAPS; i++) {
		int err = vb_port_find(t, &wanted, &number, &seat);
		enum reach reach;

		if (err == -EAGAIN) {
			if (!vb_commons_try(commons))
				return LATER;
			vb_port_mend(t, route->space, route->port);
			vb_commons_unlock(commons);
			continue;
		}
		if (err)
			return listener_expected(item, &wanted) ? LATER : to_any(item);
		reach = to_number(item, number);
		if (reach != ABSENT)
			return reach;
		if (!vb_gsi_reap(seat))
			return LATER;
	}
	return LATER;
}

/* Whether the name of an unknown process may be looked up now. */
static bool may_ask(void)
{
	static _Atomic uint64_t since;
	static _Atomic uint32_t asked;
	uint64_t now = vb_clock_ns();

	if (now - atomic_load(&since) > ASK_PERIOD_NS) {
		atomic_store(&since, now);
		atomic_store(&asked, 0);
	}
	return atomic_fetch_add(&asked, 1) < ASK_MOST;
}

/*
 * Processes of other users that share the port are in no table that this process can see; they are
 * found by the name of their block alone.
 */
static enum reach to_owner(struct vb_mad_item *item, uint32_t comm_id)
{
	uint32_t block = comm_id >> VB_GSI_COMM_ID_BITS;
	const struct vb_port_table *t = vb_gsi_table();
	uint32_t seat = t ? vb_port_seat_of(t, block) : VB_PORT_NOBODY;
	enum reach reach = ABSENT;

	if (seat != VB_PORT_NOBODY || may_ask())
		reach = to_number(item, block << VB_QPN_BLOCK_BITS);
	if (reach != ABSENT)
		return reach;
	if (seat != VB_PORT_NOBODY)
		vb_gsi_reap(seat);
	return to_any(item);
}

static void to_all_one(const struct vb_gsi_mad *mad, uint32_t number)
{
	struct vb_mad_item *item = vb_mad_item_new(mad, vb_clock_ns());

	if (!item)
		return;
	item->number = number;
	vb_gsi_bring(item);
}

static enum reach to_all(struct vb_mad_item *item)
{
	static _Atomic uint64_t last;
	const struct vb_port_table *t = vb_gsi_table();
	uint64_t now = vb_clock_ns(), before = atomic_load(&last);

	if (!t)
		return lacks_table();
	if (now - before < ALL_PERIOD_NS || !atomic_compare_exchange_strong(&last, &before, now))
		return drop(VB_REASON_MAD_FULL, "too many are for all processes");
	for (uint32_t seat = 0; seat < VB_COMMONS_SEATS; seat++) {
		uint32_t number = vb_port_member(t, seat);

		if (number)
			to_all_one(&item->mad, number);
	}
	return REACHED;
}

static enum reach by_content(struct vb_mad_item *item)
{
	struct vb_mad_route route;

	vb_mad_route(item->mad.data, &route);
	switch (route.way) {
	case VB_MAD_BY_ID:
		return to_owner(item, route.comm_id);
	case VB_MAD_BY_PORT:
		return to_listener(item, &route);
	case VB_MAD_TO_ANY:
		return to_any(item);
	case VB_MAD_TO_ALL:
		return to_all(item);
	default:
		return drop(VB_REASON_CM_OTHER, "no message of the connection manager");
	}
}

/* True: the item is to be kept. */
static bool pass(struct vb_mad_item *item)
{
	enum reach reach = item->number ? to_number(item, item->number) : by_content(item);

	if (item->number && reach == ABSENT)
		drop(VB_REASON_DROP_STRAY, "its process has ended");
	return reach == LATER;
}

/* It is kept, or dropped. */
static int keep(struct vb_mad_item *item)
{
	_Atomic uint32_t *count = &kept_for[kept_place(item->tried)];

	if (atomic_fetch_add(count, 1) < KEPT_FOR_ONE && vb_mad_queue_put(&vb_gsi.kept, item)) {
		vb_gsi_wake();
		return 0;
	}
	atomic_fetch_sub(count, 1);
	atomic_fetch_sub(&unsettled, 1);
	drop(VB_REASON_MAD_FULL, "too many wait for their process");
	free(item);
	return -ENOBUFS;
}

int vb_gsi_bring(struct vb_mad_item *item)
{
	if (pass(item)) {
		atomic_fetch_add(&unsettled, 1);
		return keep(item);
	}
	free(item);
	return 0;
}

/*
 * `blocked`: places of processes for which an earlier MAD still waits; the others do not overtake
 * it.
 */
static void try_again(struct vb_mad_item *item, uint64_t now, bool blocked[KEPT_PLACES])
{
	/* Counted by the process that it waited for, which may be another one now. */
	uint32_t place = kept_place(item->tried);
	bool waits = blocked[place] || pass(item);

	blocked[kept_place(item->tried)] |= waits;

	atomic_fetch_sub(&kept_for[place], 1);
	if (waits && now - item->since < PATIENCE_NS) {
		keep(item);
		return;
	}
	if (waits)
		drop(VB_REASON_DROP_STRAY, "its process does not answer");
	atomic_fetch_sub(&unsettled, 1);
	free(item);
}

bool vb_gsi_keeps(void)
{
	return atomic_load(&unsettled);
}

void vb_gsi_bring_kept(uint64_t now)
{
	uint64_t epoch = vb_process_contact_epoch();
	bool blocked[KEPT_PLACES] = {false};
	struct vb_mad_item *list;

	if (epoch == vb_gsi.epoch && now < vb_gsi.again_at)
		return;
	vb_gsi.epoch = epoch;
	vb_gsi.again_at = now + AGAIN_NS;
	list = vb_mad_queue_take_all(&vb_gsi.kept);
	while (list) {
		struct vb_mad_item *item = list;

		list = item->next;
		try_again(item, now, blocked);
	}
}

void vb_gsi_kept_forget(void)
{
	memset(kept_for, 0, sizeof(kept_for));
	atomic_store(&unsettled, 0);
}

int vb_gsi_send(const struct vb_gsi_mad *mad)
{
	struct vb_mad_item *item;
	union ibv_gid sgid;
	uint32_t ifindex;

	if (!atomic_load(&vb_gsi.number))
		return vb_refuse(ENOTCONN, VB_REASON_ARG, "connections: the process has no GSI");
	memcpy(sgid.raw, mad->sgid, sizeof(sgid.raw));
	ifindex = vb_gid_interface(&sgid);
	if (!ifindex)
		return vb_refuse(EADDRNOTAVAIL, VB_REASON_ARG,
				 "connections: no interface has the source address");
	if (!vb_gsi_is_near(mad->dgid))
		return vb_gsi_wire_send(mad, ifindex);
	item = vb_mad_item_new(mad, vb_clock_ns());
	if (!item)
		return vb_refuse(ENOBUFS, VB_REASON_NO_MEMORY, "connections: a datagram");
	item->mad.wire = false;
	item->mad.src_qpn = atomic_load(&vb_gsi.number);
	return vb_gsi_bring(item);
}
