/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * RC: what is sent, written, read and counted, each side in its turn as the requester, then both at
 * once.
 */
#include "plan.h"

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

static const enum ibv_wr_opcode sends[] = {IBV_WR_SEND, IBV_WR_SEND_WITH_IMM};
static const enum ibv_wr_opcode writes[] = {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM};
static const enum ibv_wr_opcode reads[] = {IBV_WR_RDMA_READ};
static const enum ibv_wr_opcode atomics[] = {IBV_WR_ATOMIC_FETCH_AND_ADD,
					     IBV_WR_ATOMIC_CMP_AND_SWP};
static const enum ibv_wr_opcode all[] = {IBV_WR_SEND,
					 IBV_WR_RDMA_WRITE,
					 IBV_WR_RDMA_READ,
					 IBV_WR_ATOMIC_FETCH_AND_ADD,
					 IBV_WR_SEND_WITH_IMM,
					 IBV_WR_ATOMIC_CMP_AND_SWP,
					 IBV_WR_RDMA_WRITE_WITH_IMM};

static struct plan plans[2];

/* The client's plan, then the server's. */
static void in_turn(struct exchange *x, struct end *e, const char *name, unsigned int late_ms)
{
	for (int turn = 0; turn < 2; turn++) {
		bool mine = (turn == 0) == (x->server != NULL);

		transfer(x, e, mine ? &plans[turn] : NULL, mine ? NULL : &plans[turn], name,
			 late_ms);
	}
	say("ok %s: %u and %u requests", name, plans[0].count, plans[1].count);
}

static void sizes(struct exchange *x, struct end *e, const char *name,
		  const enum ibv_wr_opcode *opcodes, unsigned int count)
{
	for (uint32_t i = 0; i < 2; i++)
		plan_sizes(&plans[i], x->seed + i, x->mtu, opcodes, count);
	in_turn(x, e, name, 0);
}

static void mixed(struct exchange *x, struct end *e, const char *name,
		  const enum ibv_wr_opcode *opcodes, unsigned int count)
{
	int mine = x->server ? 0 : 1;

	for (uint32_t i = 0; i < 2; i++)
		plan_mix(&plans[i], x->seed + 10 + i, x->mtu, opcodes, count);
	in_turn(x, e, name, 0);
	for (uint32_t i = 0; i < 2; i++)
		plan_mix(&plans[i], x->seed + 20 + i, x->mtu, opcodes, count);
	transfer(x, e, &plans[mine], &plans[!mine], name, 0);
	say("ok %s, both ways at once", name);
}

/* Nothing is posted when the first message comes: it is told to wait, and comes again. */
static void late(struct exchange *x, struct end *e)
{
	for (uint32_t i = 0; i < 2; i++) {
		plan_mix(&plans[i], x->seed + 30 + i, x->mtu, sends, COUNT(sends));
		plans[i].count = 6;
	}
	in_turn(x, e, "rc receiver not ready", 30);
}

void test_rc(struct exchange *x)
{
	struct profile profile = rc_profile;
	struct end e;

	if (x->lossy)
		profile.timeout = 16;
	e = end_connect(x, &profile);

	sizes(x, &e, "rc send", sends, COUNT(sends));
	sizes(x, &e, "rc write", writes, COUNT(writes));
	sizes(x, &e, "rc read", reads, COUNT(reads));
	mixed(x, &e, "rc atomic", atomics, COUNT(atomics));
	mixed(x, &e, "rc mix", all, COUNT(all));
	late(x, &e);
	end_close(x, &e);
}
