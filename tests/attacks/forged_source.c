/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Promise: what comes from another user's process comes from one of its own queue pairs, whatever
 * it writes into its ring: a datagram or a message of a connection in the name of a third one is
 * dropped, and what it sends in its own name arrives. A packet that it says to have got from
 * another host is dropped; if the two users share the port (agrees), it arrives, unless its source
 * is this host.
 *
 * The attacker is made of the library's host room, with slots filled by hand.
 */
#include <grp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host/slot.h"
#include "support/check.h"
#include "support/clock.h"
#include "support/intruder.h"
#include "support/process.h"
#include "support/qp_state.h"
#include "unit/host/end.h"

enum { LENGTH = 16, ROUNDS = 50, UD_RECEIVES = 4, RC_RECEIVES = 2, QUIET_MS = 100 };
enum { HONEST = 0x11, FORGED = 0x22, HANDED = 0x33 };

static const gid_t team = 64101;
static bool agrees;

/* What the attacker is told of the victim. */
struct aims {
	uint32_t datagrams;
	uint32_t connected; /* to `other`, both in the victim */
	uint32_t other;
	uint32_t psn; /* that `connected` expects */
	union ibv_gid gid;
};

/* As user_become(), but for the group that both are in when they agree. */
static void become(uid_t user)
{
	if (!agrees) {
		user_become(user);
		return;
	}
	CHECK_ZERO(setgroups(1, &team));
	CHECK_ZERO(setresgid(user, user, user));
	CHECK_ZERO(setresuid(user, user, user));
}

static struct vb_run run_make(uint8_t service, uint32_t from, uint32_t to, uint32_t psn)
{
	return (struct vb_run){
		.service = service,
		.op = VB_OP_SEND,
		.flags = VB_RUN_FIRST | VB_RUN_LAST | VB_RUN_ACK_REQ,
		.segments = 1,
		.dest_qpn = to,
		.src_qpn = from,
		.psn = psn,
		.length = LENGTH,
		.qkey = EP_QKEY,
		.pkey = 0xffff,
	};
}

static void put(struct vb_channel *ch, const struct vb_run *run, int byte)
{
	bool fits = vb_slot_fits_inline(run);
	uint64_t until = now_ms() + 5000;
	struct vb_slot *slot;
	void *bulk = NULL;

	while (!(slot = vb_ring_reserve(&ch->tx, fits ? 0 : vb_slot_bulk_bytes(run, false),
					fits ? NULL : &bulk)))
		CHECK(now_ms() < until);
	uint8_t *to = vb_slot_encode(slot, run);

	if (!to) {
		CHECK(bulk);
		memset(bulk, 0, VB_SLOT_PATH_BYTES);
		to = (uint8_t *)bulk + VB_SLOT_PATH_BYTES;
	}
	memset(to, byte, LENGTH);
	vb_ring_push(&ch->tx);
	vb_channel_wake(ch);
}

/* A packet that is said to have come from that host to the victim's. */
static void hand_over(struct vb_channel *ch, const struct vb_run *run, const union ibv_gid *from,
		      const union ibv_gid *to)
{
	struct vb_path path = {0};
	uint64_t until = now_ms() + 5000;
	struct vb_slot *slot;
	void *bulk = NULL;

	memcpy(path.sgid, from, sizeof(path.sgid));
	memcpy(path.dgid, to, sizeof(path.dgid));
	while (!(slot = vb_ring_reserve(&ch->tx, vb_slot_bulk_bytes(run, true), &bulk)))
		CHECK(now_ms() < until);
	CHECK(bulk);
	vb_slot_encode_from_wire(slot, run);
	memcpy(bulk, &path, sizeof(path));
	memset((uint8_t *)bulk + VB_SLOT_PATH_BYTES, HANDED, LENGTH);
	vb_ring_push(&ch->tx);
	vb_channel_wake(ch);
}

static int attacker(int sock, void *unused)
{
	static struct end end; /* its thread outlives this function */
	enum vb_contact why;
	struct aims aims;

	(void)unused;
	become(INTRUDER_STRANGER);
	end_start(&end);
	/* Of the block that is reserved for examples. */
	const union ibv_gid far = {.raw = {[10] = 0xff, 0xff, 198, 51, 100, 9}};
	uint32_t engine = end_engine(&end), own = end_qp(&end, engine, NULL);

	message_send(sock, &own, sizeof(own));
	message_receive(sock, &aims, sizeof(aims));
	struct vb_channel *ch = end_find(&end, engine, aims.datagrams, 10000, &why);

	CHECK_SAY(ch, "no channel to the victim: %d", why);
	for (int i = 0; i < ROUNDS; i++) {
		struct vb_run datagram =
			run_make(VB_SERVICE_UD, aims.other, aims.datagrams, (uint32_t)i);
		struct vb_run message =
			run_make(VB_SERVICE_RC, aims.other, aims.connected, aims.psn);

		put(ch, &datagram, FORGED);
		put(ch, &message, FORGED);
		hand_over(ch, &datagram, &aims.gid, &aims.gid);
		hand_over(ch, &message, &aims.gid, &aims.gid);
		if (!agrees)
			hand_over(ch, &datagram, &far, &aims.gid);
		datagram.src_qpn = own;
		put(ch, &datagram, HONEST);
		message_meet(sock);
	}
	if (agrees) {
		struct vb_run datagram = run_make(VB_SERVICE_UD, aims.other, aims.datagrams, 0);

		hand_over(ch, &datagram, &far, &aims.gid);
	}
	message_meet(sock);
	return 0;
}

static void expect_honest(struct endpoint *datagrams, uint32_t attackers)
{
	struct ibv_wc wc;

	completion_next(datagrams->resources->cq, &wc);
	CHECK_SAY(wc.qp_num == datagrams->qp->qp_num, "a message came in a connection");
	CHECK_SAY(wc.src_qp == attackers, "a datagram came in the name of 0x%x, sent by 0x%x",
		  wc.src_qp, attackers);
	CHECK_EQ(datagrams->buffer[40], HONEST);
	CHECK_ZERO(ep_recv(datagrams, 1, 0, 40 + LENGTH));
}

static int victim(int sock, void *unused)
{
	struct endpoint datagrams, connected, other;
	struct ep_config config;
	struct resources resources;
	struct ibv_qp_attr rtr;
	uint32_t attackers;

	(void)unused;
	promise("nobody speaks in another's name");
	become(INTRUDER_VICTIM);
	resources_open(&resources, 64, false);
	config = ep_defaults(IBV_QPT_UD);
	ep_open_on(&datagrams, &resources, &config, NULL, 4096);
	rtr = ep_attr(&datagrams.config, &datagrams.local, &datagrams.local);
	CHECK_ZERO(qp_step(datagrams.qp, &rtr, IBV_QPS_RTR));
	ep_open_on(&connected, &resources, NULL, NULL, 4096);
	ep_open_on(&other, &resources, NULL, NULL, 4096);
	ep_link(&connected, &other);
	for (int i = 0; i < UD_RECEIVES; i++)
		CHECK_ZERO(ep_recv(&datagrams, 1, 0, 40 + LENGTH));
	for (int i = 0; i < RC_RECEIVES; i++)
		CHECK_ZERO(ep_recv(&connected, 2, 0, LENGTH));
	struct aims aims = {datagrams.qp->qp_num, connected.qp->qp_num, other.qp->qp_num,
			    other.local.psn, resources.gid};

	message_receive(sock, &attackers, sizeof(attackers));
	message_send(sock, &aims, sizeof(aims));
	for (int i = 0; i < ROUNDS; i++) {
		expect_honest(&datagrams, attackers);
		message_meet(sock);
	}
	if (agrees) {
		struct ibv_wc wc;

		completion_next(resources.cq, &wc);
		CHECK_EQ(wc.src_qp, other.qp->qp_num);
		CHECK_EQ(datagrams.buffer[40], HANDED);
	}
	completion_none(resources.cq, QUIET_MS);
	promise("the connection that was attacked goes on");
	memset(other.buffer, HONEST, LENGTH);
	CHECK_ZERO(ep_send(&other, 3, 0, LENGTH, IBV_SEND_SIGNALED));
	for (int i = 0; i < 2; i++) {
		struct ibv_wc wc;

		completion_next(resources.cq, &wc);
		CHECK_EQ(wc.status, IBV_WC_SUCCESS);
	}
	CHECK_EQ(connected.buffer[0], HONEST);
	message_meet(sock);
	ep_close(&other);
	ep_close(&connected);
	ep_close(&datagrams);
	resources_close(&resources);
	return 0;
}

int main(int argc, char **argv)
{
	struct process a, b;

	(void)argv;
	agrees = argc > 1;
	watchdog(60);
	if (agrees)
		setenv("VERBATIM_DOMAIN", "64101", 1);
	network_leave();
	process_start_pair(&a, attacker, &b, victim, NULL);
	process_expect_success(&b, 50000);
	process_expect_success(&a, PROCESS_PATIENCE_MS);
	return 0;
}
