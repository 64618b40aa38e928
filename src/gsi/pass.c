/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Which process a MAD is for: a MAD that this process sends to its own host, and one that came by
 * UDP for queue pair 1, are treated alike.
 */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/reason.h"
#include "device/gid.h"
#include "gsi/mad_route.h"
#include "gsi/port_table.h"
#include "gsi/private.h"
#include "udp/address.h"

/* Members that have ended are passed over, so many at a time. */
#define REAPS         16
/* Ids of unknown processes cost a look-up of a name each; a flood of them must not. */
#define ASK_PERIOD_NS 1000000ull
#define ASK_MOST      16u
/* A MAD for all processes is multiplied; more of them than one in this time are dropped. */
#define ALL_PERIOD_NS 10000000ull
/* How long a request waits for somebody to listen on its port, where that is expected. */
#define LISTEN_NS     500000000ull
enum vb_mad_reach vb_gsi_drop(enum vb_reason reason, const char *why)
{
	vb_note(reason, "management datagram: %s", why);
	return VB_MAD_DROPPED;
}

static enum vb_mad_reach to_number(struct vb_mad_item *item, uint32_t number)
{
	if (!number || number != atomic_load(&vb_gsi.number))
		return number ? vb_gsi_to_ring(item, number) : VB_MAD_ABSENT;
	vb_gsi_receive(&item->mad);
	return VB_MAD_REACHED;
}

static enum vb_mad_reach lacks_table(void)
{
	vb_gsi.wants_table = true;
	return VB_MAD_LATER;
}

/* This process, if it can answer; else the first of the members. */
static enum vb_mad_reach to_any(struct vb_mad_item *item)
{
	const struct vb_port_table *t = vb_gsi_table();
	uint32_t own = atomic_load(&vb_gsi.number);

	if (own)
		return to_number(item, own);
	if (!t)
		return lacks_table();
	for (uint32_t seat = 0, reaps = 0; seat < VB_COMMONS_SEATS && reaps < REAPS; seat++) {
		uint32_t number = vb_port_member(t, seat);
		enum vb_mad_reach reach = number ? to_number(item, number) : VB_MAD_ABSENT;

		if (reach != VB_MAD_ABSENT)
			return reach;
		reaps += number && vb_gsi_reap(seat);
	}
	return vb_gsi_drop(VB_REASON_MAD_NOBODY, "no process takes connections");
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

static enum vb_mad_reach to_listener(struct vb_mad_item *item, const struct vb_mad_route *route)
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
		enum vb_mad_reach reach;

		if (err == -EAGAIN) {
			if (!vb_commons_try(commons))
				return VB_MAD_LATER;
			vb_port_mend(t, route->space, route->port);
			vb_commons_unlock(commons);
			continue;
		}
		if (err)
			return listener_expected(item, &wanted) ? VB_MAD_LATER : to_any(item);
		reach = to_number(item, number);
		if (reach != VB_MAD_ABSENT)
			return reach;
		if (!vb_gsi_reap(seat))
			return VB_MAD_LATER;
	}
	return VB_MAD_LATER;
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
static enum vb_mad_reach to_owner(struct vb_mad_item *item, uint32_t comm_id)
{
	uint32_t block = comm_id >> VB_GSI_COMM_ID_BITS;
	const struct vb_port_table *t = vb_gsi_table();
	uint32_t seat = t ? vb_port_seat_of(t, block) : VB_PORT_NOBODY;
	enum vb_mad_reach reach = VB_MAD_ABSENT;

	if (seat != VB_PORT_NOBODY || may_ask())
		reach = to_number(item, block << VB_QPN_BLOCK_BITS);
	if (reach != VB_MAD_ABSENT)
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

static enum vb_mad_reach to_all(struct vb_mad_item *item)
{
	static _Atomic uint64_t last;
	const struct vb_port_table *t = vb_gsi_table();
	uint64_t now = vb_clock_ns(), before = atomic_load(&last);

	if (!t)
		return lacks_table();
	if (now - before < ALL_PERIOD_NS || !atomic_compare_exchange_strong(&last, &before, now))
		return vb_gsi_drop(VB_REASON_MAD_FULL, "too many are for all processes");
	for (uint32_t seat = 0; seat < VB_COMMONS_SEATS; seat++) {
		uint32_t number = vb_port_member(t, seat);

		if (number)
			to_all_one(&item->mad, number);
	}
	return VB_MAD_REACHED;
}

static enum vb_mad_reach by_content(struct vb_mad_item *item)
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
		return vb_gsi_drop(VB_REASON_CM_OTHER, "no message of the connection manager");
	}
}

enum vb_mad_reach vb_gsi_pass(struct vb_mad_item *item)
{
	enum vb_mad_reach reach;

	item->tried = 0;
	reach = item->number ? to_number(item, item->number) : by_content(item);
	if (item->number && reach == VB_MAD_ABSENT)
		return vb_gsi_drop(VB_REASON_DROP_STRAY, "its process has ended");
	return reach;
}
