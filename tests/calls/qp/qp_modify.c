/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * ibv_modify_qp(3): for each type and each pair of states the exact masks. A transition that is
 * not in the table is refused; one that is fails without any one of its required bits and with any
 * foreign bit, changing nothing, and then works with its right mask.
 */
#include <string.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "support/check.h"
#include "support/endpoint.h"

#define STATES     7 /* RESET INIT RTR RTS SQD SQE ERR */
#define KNOWN_BITS 26

/* Short names for the table below. */
#define PKEY       IBV_QP_PKEY_INDEX
#define PORT       IBV_QP_PORT
#define QKEY       IBV_QP_QKEY
#define ACC        IBV_QP_ACCESS_FLAGS
#define AV         IBV_QP_AV
#define MTU        IBV_QP_PATH_MTU
#define DQPN       IBV_QP_DEST_QPN
#define RPSN       IBV_QP_RQ_PSN
#define SPSN       IBV_QP_SQ_PSN
#define MDRA       IBV_QP_MAX_DEST_RD_ATOMIC
#define MRA        IBV_QP_MAX_QP_RD_ATOMIC
#define MRNR       IBV_QP_MIN_RNR_TIMER
#define TMO        IBV_QP_TIMEOUT
#define RETRY      IBV_QP_RETRY_CNT
#define RNRR       IBV_QP_RNR_RETRY
#define ALT        IBV_QP_ALT_PATH
#define MIG        IBV_QP_PATH_MIG_STATE
#define CUR        IBV_QP_CUR_STATE
#define NTFY       IBV_QP_EN_SQD_ASYNC_NOTIFY

enum { RC, UC, UD, TYPES };

static const enum ibv_qp_type qp_types[TYPES] = {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD};
static const char *const type_names[TYPES] = {"RC", "UC", "UD"};
static const char *const state_names[STATES] = {"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};

struct transition {
	uint8_t types; /* bit per type */
	uint8_t from, to;
	int required, optional;
};

/* IBA 10.3.1 and ibv_modify_qp(3); the rows to RESET and ERR are in transition_find(). */
static const struct transition transitions[] = {
	{1 << RC | 1 << UC, IBV_QPS_RESET, IBV_QPS_INIT, PKEY | PORT | ACC, 0},
	{1 << UD, IBV_QPS_RESET, IBV_QPS_INIT, PKEY | PORT | QKEY, 0},
	{1 << RC | 1 << UC, IBV_QPS_INIT, IBV_QPS_INIT, 0, PKEY | PORT | ACC},
	{1 << UD, IBV_QPS_INIT, IBV_QPS_INIT, 0, PKEY | PORT | QKEY},
	{1 << RC, IBV_QPS_INIT, IBV_QPS_RTR, AV | MTU | DQPN | RPSN | MDRA | MRNR,
	 ALT | ACC | PKEY},
	{1 << UC, IBV_QPS_INIT, IBV_QPS_RTR, AV | MTU | DQPN | RPSN, ALT | ACC | PKEY},
	{1 << UD, IBV_QPS_INIT, IBV_QPS_RTR, 0, PKEY | QKEY},
	{1 << RC, IBV_QPS_RTR, IBV_QPS_RTS, TMO | RETRY | RNRR | SPSN | MRA,
	 CUR | ALT | ACC | MRNR | MIG},
	{1 << UC, IBV_QPS_RTR, IBV_QPS_RTS, SPSN, CUR | ALT | ACC | MIG},
	{1 << UD, IBV_QPS_RTR, IBV_QPS_RTS, SPSN, CUR | QKEY},
	{1 << RC, IBV_QPS_RTS, IBV_QPS_RTS, 0, CUR | ACC | ALT | MIG | MRNR},
	{1 << UC, IBV_QPS_RTS, IBV_QPS_RTS, 0, CUR | ACC | ALT | MIG},
	{1 << UD, IBV_QPS_RTS, IBV_QPS_RTS, 0, CUR | QKEY},
	{1 << RC | 1 << UC | 1 << UD, IBV_QPS_RTS, IBV_QPS_SQD, 0, NTFY},
	{1 << RC, IBV_QPS_SQD, IBV_QPS_RTS, 0, CUR | ACC | ALT | MIG | MRNR},
	{1 << UC, IBV_QPS_SQD, IBV_QPS_RTS, 0, CUR | ACC | ALT | MIG},
	{1 << UD, IBV_QPS_SQD, IBV_QPS_RTS, 0, CUR | QKEY},
	{1 << RC, IBV_QPS_SQD, IBV_QPS_SQD, 0,
	 PORT | AV | TMO | RETRY | RNRR | MRA | MDRA | ALT | ACC | PKEY | MRNR | MIG},
	{1 << UC, IBV_QPS_SQD, IBV_QPS_SQD, 0, AV | ALT | ACC | PKEY | MIG},
	{1 << UD, IBV_QPS_SQD, IBV_QPS_SQD, 0, PKEY | QKEY},
	{1 << UD, IBV_QPS_SQE, IBV_QPS_RTS, 0, CUR | QKEY},
	{1 << UC, IBV_QPS_SQE, IBV_QPS_RTS, 0, CUR | ACC},
};

static const struct transition to_anywhere = {7, 0, 0, 0, 0};

static const struct transition *transition_find(int type, int from, int to)
{
	if (to == IBV_QPS_RESET || (to == IBV_QPS_ERR && from != IBV_QPS_RESET))
		return &to_anywhere;
	for (size_t i = 0; i < sizeof(transitions) / sizeof(transitions[0]); i++)
		if (transitions[i].types & 1 << type && transitions[i].from == from &&
		    transitions[i].to == to)
			return &transitions[i];
	return NULL;
}

static struct endpoint ep;

/* Attributes that every transition accepts; the queue pair talks to itself. */
static struct ibv_qp_attr good_attr(int type, int from, int to)
{
	struct ibv_qp_attr attr = {
		.qp_state = (enum ibv_qp_state)to,
		.cur_qp_state = (enum ibv_qp_state)from,
		.path_mtu = IBV_MTU_1024,
		.path_mig_state = IBV_MIG_MIGRATED,
		.qkey = 0x1234,
		.rq_psn = 5,
		.sq_psn = 5,
		.dest_qp_num = ep.local.qpn,
		.qp_access_flags = type == UD ? 0 : IBV_ACCESS_REMOTE_WRITE,
		.pkey_index = 0,
		.port_num = 1,
		.max_rd_atomic = 1,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 12,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.ah_attr = {.is_global = 1,
			    .port_num = 1,
			    .grh = {.dgid = ep.local.gid, .sgid_index = 0, .hop_limit = 64}},
	};

	return attr;
}

static int step(int type, int from, int to)
{
	const struct transition *t = transition_find(type, from, to);
	struct ibv_qp_attr attr = good_attr(type, from, to);

	CHECK(t);
	return ibv_modify_qp(ep.qp, &attr, IBV_QP_STATE | t->required);
}

/* UC and UD reach SQE only by a failing send: one with a key that was never given out. */
static void into_sqe(void)
{
	struct ibv_sge sge = {.addr = ep.local.addr, .length = 8, .lkey = 0xdeadbeef};
	struct ibv_send_wr wr = ep_wr(IBV_WR_SEND, 1, &sge, 1);
	struct ibv_ah *ah = NULL;
	struct ibv_wc wc;

	if (ep.config.type == IBV_QPT_UD) {
		ah = ep_ah(&ep, &ep.local);
		wr.wr.ud.ah = ah;
		wr.wr.ud.remote_qpn = ep.local.qpn;
		wr.wr.ud.remote_qkey = 0x1234;
	}
	CHECK(ep_post_send(&ep, &wr) == 0);
	EXPECT_STATUS(ep_poll_one(&ep, EP_SEND_CQ, &wc), IBV_WC_LOC_PROT_ERR);
	if (ah)
		CHECK(ibv_destroy_ah(ah) == 0);
}

/* From wherever it is to @state by legal steps. */
static void go_to(int type, int state)
{
	static const int way[] = {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QPS_SQD};
	int at = IBV_QPS_RESET;

	CHECK(step(type, ep_state(&ep), IBV_QPS_RESET) == 0);
	if (state == IBV_QPS_ERR) {
		CHECK(step(type, at, IBV_QPS_INIT) == 0);
		CHECK(step(type, IBV_QPS_INIT, IBV_QPS_ERR) == 0);
		return;
	}
	for (int i = 0; at != state && i < (state == IBV_QPS_SQE ? 3 : 4); i++) {
		CHECK(step(type, at, way[i]) == 0);
		at = way[i];
	}
	if (state == IBV_QPS_SQE)
		into_sqe();
	/* Nothing was sent, so SQD is drained as soon as it is seen. */
	if (state == IBV_QPS_SQD)
		for (int i = 0; i < 1000; i++) {
			struct ibv_qp_init_attr init;
			struct ibv_qp_attr attr;

			CHECK(ibv_query_qp(ep.qp, &attr, IBV_QP_STATE, &init) == 0);
			if (!attr.sq_draining)
				break;
			usleep(1000);
		}
	CHECK((int)ep_state(&ep) == state);
}

/* A query must show the same before and after a refusal. */
static bool same_attributes(const struct ibv_qp_attr *a, const struct ibv_qp_attr *b)
{
	return a->qp_state == b->qp_state && a->path_mtu == b->path_mtu && a->qkey == b->qkey &&
	       a->rq_psn == b->rq_psn && a->sq_psn == b->sq_psn &&
	       a->dest_qp_num == b->dest_qp_num && a->qp_access_flags == b->qp_access_flags &&
	       a->pkey_index == b->pkey_index && a->port_num == b->port_num &&
	       a->max_rd_atomic == b->max_rd_atomic &&
	       a->max_dest_rd_atomic == b->max_dest_rd_atomic &&
	       a->min_rnr_timer == b->min_rnr_timer && a->timeout == b->timeout &&
	       a->retry_cnt == b->retry_cnt && a->rnr_retry == b->rnr_retry &&
	       !memcmp(&a->ah_attr.grh.dgid, &b->ah_attr.grh.dgid, sizeof(a->ah_attr.grh.dgid));
}

#define EVERYTHING ((1 << KNOWN_BITS) - 1)

static void refused(const struct ibv_qp_attr *attr, int mask, int want)
{
	struct ibv_qp_attr before, after;
	struct ibv_qp_init_attr init;
	enum ibv_qp_state shown = ep.qp->state;
	int rc;

	CHECK(ibv_query_qp(ep.qp, &before, EVERYTHING, &init) == 0);
	errno = 0;
	rc = ibv_modify_qp(ep.qp, (struct ibv_qp_attr *)(uintptr_t)attr, mask);
	EXPECT_EQ(rc, want);
	EXPECT_EQ(errno, want);
	CHECK(ibv_query_qp(ep.qp, &after, EVERYTHING, &init) == 0);
	EXPECT_SAY(same_attributes(&before, &after), "mask %#x was refused with effect", mask);
	EXPECT_EQ(after.qp_state, shown);
}

static void try_transition(int type, int from, int to)
{
	const struct transition *t = transition_find(type, from, to);
	struct ibv_qp_attr attr = good_attr(type, from, to);
	int known = ~(IBV_QP_RATE_LIMIT)&EVERYTHING;

	expect_case("%s %s->%s", type_names[type], state_names[from], state_names[to]);
	go_to(type, from);
	if (!t) {
		refused(&attr, IBV_QP_STATE, EINVAL);
		for (size_t i = 0; i < sizeof(transitions) / sizeof(transitions[0]); i++)
			if (transitions[i].to == to)
				refused(&attr, IBV_QP_STATE | transitions[i].required, EINVAL);
		return;
	}
	for (int bit = 1; bit < known; bit <<= 1) {
		expect_case("%s %s->%s bit %#x", type_names[type], state_names[from],
			    state_names[to], (unsigned int)bit);
		if (bit == IBV_QP_STATE || !(bit & known))
			continue;
		if (bit > IBV_QP_DEST_QPN) /* no attributes */
			refused(&attr, IBV_QP_STATE | t->required | bit, EOPNOTSUPP);
		else if (t->required & bit)
			refused(&attr, IBV_QP_STATE | (t->required & ~bit), EINVAL);
		else if (!(t->optional & bit))
			refused(&attr, IBV_QP_STATE | t->required | bit, EINVAL);
	}
	expect_case("%s %s->%s rate limit", type_names[type], state_names[from], state_names[to]);
	refused(&attr, IBV_QP_STATE | t->required | IBV_QP_RATE_LIMIT, EINVAL);
	expect_case("%s %s->%s unknown bit", type_names[type], state_names[from], state_names[to]);
	refused(&attr, IBV_QP_STATE | t->required | 1 << KNOWN_BITS, EOPNOTSUPP);
	refused(&attr, IBV_QP_STATE | t->required | 1 << 30, EOPNOTSUPP);

	expect_case("%s %s->%s required", type_names[type], state_names[from], state_names[to]);
	EXPECT_EQ(ibv_modify_qp(ep.qp, &attr, IBV_QP_STATE | t->required), 0);
	EXPECT_EQ(ep.qp->state, to);
	EXPECT_EQ(ep_state(&ep), to);

	/* No alternate path on Ethernet, and with it no migration state to set. */
	for (int bit = 1; bit < known; bit <<= 1) {
		if (!(t->optional & bit) || bit == ALT || bit == MIG)
			continue;
		expect_case("%s %s->%s optional %#x", type_names[type], state_names[from],
			    state_names[to], (unsigned int)bit);
		go_to(type, from);
		EXPECT_EQ(ibv_modify_qp(ep.qp, &attr, IBV_QP_STATE | t->required | bit), 0);
		EXPECT_EQ(ep_state(&ep), to);
	}
	expect_case("%s %s->%s all optional", type_names[type], state_names[from], state_names[to]);
	go_to(type, from);
	EXPECT_EQ(ibv_modify_qp(ep.qp, &attr,
				IBV_QP_STATE | t->required | (t->optional & ~(ALT | MIG))),
		  0);
	EXPECT_EQ(ep_state(&ep), to);
}

static void every_pair(int type)
{
	for (int from = 0; from < STATES; from++) {
		if (from == IBV_QPS_SQE && type == RC)
			continue; /* RC has no such state */
		for (int to = 0; to < STATES; to++)
			try_transition(type, from, to);
		expect_case("%s %s->beyond ERR", type_names[type], state_names[from]);
		go_to(type, from);
		for (int to = STATES; to < STATES + 3; to++) {
			struct ibv_qp_attr attr = good_attr(type, from, to);

			refused(&attr, IBV_QP_STATE, EINVAL);
		}
	}
}

/* Without IBV_QP_STATE the row is state->same state; RTR has none. */
static void without_state(int type)
{
	struct ibv_qp_attr attr = good_attr(type, IBV_QPS_INIT, IBV_QPS_RTS);

	expect_case("%s INIT without STATE", type_names[type]);
	go_to(type, IBV_QPS_INIT);
	EXPECT_EQ(ibv_modify_qp(ep.qp, &attr, PKEY | PORT), 0);
	EXPECT_EQ(ep_state(&ep), IBV_QPS_INIT);
	refused(&attr, MTU, EINVAL);
	expect_case("%s RTR without STATE", type_names[type]);
	go_to(type, IBV_QPS_RTR);
	refused(&attr, type == UD ? QKEY : ACC, EINVAL);
	expect_case("%s RTS without STATE", type_names[type]);
	go_to(type, IBV_QPS_RTS);
	EXPECT_EQ(ibv_modify_qp(ep.qp, &attr, type == UD ? QKEY : ACC), 0);
	refused(&attr, SPSN, EINVAL);
	EXPECT_EQ(ep_state(&ep), IBV_QPS_RTS);
}

/* One wrong value each; everything else of the call is right. */
struct bad_value {
	const char *name;
	int from, to, extra;
	void (*spoil)(struct ibv_qp_attr *attr, const struct ibv_device_attr *device);
};

#define SPOIL(name, ...)                                                         \
	static void name(struct ibv_qp_attr *a, const struct ibv_device_attr *d) \
	{                                                                        \
		(void)d;                                                         \
		__VA_ARGS__;                                                     \
	}
SPOIL(port_zero, a->port_num = 0)
SPOIL(port_high, a->port_num = (uint8_t)(d->phys_port_cnt + 1))
SPOIL(pkey_high, a->pkey_index = d->max_pkeys)
SPOIL(mtu_zero, a->path_mtu = (enum ibv_mtu)0)
SPOIL(mtu_high, a->path_mtu = (enum ibv_mtu)6)
SPOIL(dest_rd_high, a->max_dest_rd_atomic = (uint8_t)(d->max_qp_rd_atom + 1))
SPOIL(rd_high, a->max_rd_atomic = (uint8_t)(d->max_qp_init_rd_atom + 1))
SPOIL(rnr_timer_high, a->min_rnr_timer = 32)
SPOIL(timeout_high, a->timeout = 32)
SPOIL(retry_high, a->retry_cnt = 8)
SPOIL(rnr_high, a->rnr_retry = 8)
SPOIL(av_not_global, a->ah_attr.is_global = 0)
SPOIL(av_sgid_high, a->ah_attr.grh.sgid_index = 255)
SPOIL(av_port, a->ah_attr.port_num = 2)
SPOIL(dest_qpn_high, a->dest_qp_num = 1 << 24)
SPOIL(wrong_cur, a->cur_qp_state = IBV_QPS_SQD)
SPOIL(cur_too_early, a->cur_qp_state = IBV_QPS_INIT)

static const struct bad_value bad_values[] = {
	{"port 0", IBV_QPS_RESET, IBV_QPS_INIT, 0, port_zero},
	{"port above phys_port_cnt", IBV_QPS_RESET, IBV_QPS_INIT, 0, port_high},
	{"pkey_index above the table", IBV_QPS_RESET, IBV_QPS_INIT, 0, pkey_high},
	{"MTU 0", IBV_QPS_INIT, IBV_QPS_RTR, 0, mtu_zero},
	{"MTU above 4096", IBV_QPS_INIT, IBV_QPS_RTR, 0, mtu_high},
	{"max_dest_rd_atomic too high", IBV_QPS_INIT, IBV_QPS_RTR, 0, dest_rd_high},
	{"min_rnr_timer 32", IBV_QPS_INIT, IBV_QPS_RTR, 0, rnr_timer_high},
	{"AV without GRH", IBV_QPS_INIT, IBV_QPS_RTR, 0, av_not_global},
	{"AV with an empty sgid_index", IBV_QPS_INIT, IBV_QPS_RTR, 0, av_sgid_high},
	{"AV with another port", IBV_QPS_INIT, IBV_QPS_RTR, 0, av_port},
	{"dest_qp_num of 25 bits", IBV_QPS_INIT, IBV_QPS_RTR, 0, dest_qpn_high},
	{"max_rd_atomic too high", IBV_QPS_RTR, IBV_QPS_RTS, 0, rd_high},
	{"timeout 32", IBV_QPS_RTR, IBV_QPS_RTS, 0, timeout_high},
	{"retry_cnt 8", IBV_QPS_RTR, IBV_QPS_RTS, 0, retry_high},
	{"rnr_retry 8", IBV_QPS_RTR, IBV_QPS_RTS, 0, rnr_high},
	{"cur_state is another", IBV_QPS_RTR, IBV_QPS_RTS, CUR, wrong_cur},
	{"cur_state below RTR", IBV_QPS_RTR, IBV_QPS_RTS, CUR, cur_too_early},
	{"alternate path", IBV_QPS_INIT, IBV_QPS_RTR, ALT, NULL},
};

static void values(void)
{
	struct ibv_device_attr device;

	CHECK(ibv_query_device(ep.context, &device) == 0);
	for (size_t i = 0; i < sizeof(bad_values) / sizeof(bad_values[0]); i++) {
		const struct bad_value *bad = &bad_values[i];
		struct ibv_qp_attr attr = good_attr(RC, bad->from, bad->to);
		int mask = IBV_QP_STATE | bad->extra |
			   transition_find(RC, bad->from, bad->to)->required;

		expect_case("RC value: %s", bad->name);
		go_to(RC, bad->from);
		if (bad->spoil)
			bad->spoil(&attr, &device);
		refused(&attr, mask, EINVAL);
	}
	expect_case("limits themselves and zeros are legal");
	go_to(RC, IBV_QPS_INIT);
	{
		struct ibv_qp_attr attr = good_attr(RC, IBV_QPS_INIT, IBV_QPS_RTR);

		attr.max_dest_rd_atomic = (uint8_t)device.max_qp_rd_atom;
		attr.min_rnr_timer = 31;
		EXPECT_EQ(ibv_modify_qp(ep.qp, &attr,
					IBV_QP_STATE | AV | MTU | DQPN | RPSN | MDRA | MRNR),
			  0);
		attr = good_attr(RC, IBV_QPS_RTR, IBV_QPS_RTS);
		attr.max_rd_atomic = (uint8_t)device.max_qp_init_rd_atom;
		attr.timeout = 31;
		attr.retry_cnt = 0;
		attr.rnr_retry = 0;
		EXPECT_EQ(ibv_modify_qp(ep.qp, &attr,
					IBV_QP_STATE | TMO | RETRY | RNRR | SPSN | MRA),
			  0);
	}
}

/* PSNs are masked to 24 bits and never refused. */
static void psn_masked(void)
{
	struct ibv_qp_attr attr = good_attr(RC, IBV_QPS_INIT, IBV_QPS_RTR);
	struct ibv_qp_init_attr init;

	expect_case("PSN above 24 bits");
	go_to(RC, IBV_QPS_INIT);
	attr.rq_psn = 0xab000007;
	EXPECT_EQ(ibv_modify_qp(ep.qp, &attr, IBV_QP_STATE | AV | MTU | DQPN | RPSN | MDRA | MRNR),
		  0);
	attr = good_attr(RC, IBV_QPS_RTR, IBV_QPS_RTS);
	attr.sq_psn = 0xcd000009;
	EXPECT_EQ(ibv_modify_qp(ep.qp, &attr, IBV_QP_STATE | TMO | RETRY | RNRR | SPSN | MRA), 0);
	CHECK(ibv_query_qp(ep.qp, &attr, IBV_QP_RQ_PSN | IBV_QP_SQ_PSN, &init) == 0);
	EXPECT_EQ(attr.rq_psn, 7);
	EXPECT_EQ(attr.sq_psn, 9);
}

/* A qkey with bit 31 is for the privileged; they get it and read it back. */
static void privileged_qkey(void)
{
	struct ibv_qp_attr attr = good_attr(UD, IBV_QPS_RESET, IBV_QPS_INIT);
	struct ibv_qp_init_attr init;
	int rc;

	expect_case("UD qkey with bit 31");
	go_to(UD, IBV_QPS_RESET);
	attr.qkey = 0x80000001;
	rc = ibv_modify_qp(ep.qp, &attr, IBV_QP_STATE | PKEY | PORT | QKEY);
	if (geteuid()) {
		EXPECT_EQ(rc, EPERM);
		return;
	}
	if (rc == EPERM)
		return; /* root without CAP_NET_RAW */
	EXPECT_EQ(rc, 0);
	CHECK(ibv_query_qp(ep.qp, &attr, IBV_QP_QKEY, &init) == 0);
	EXPECT_EQ(attr.qkey, 0x80000001);
}

int main(int argc, char **argv)
{
	ep_main(argc, argv);
	for (int type = 0; type < TYPES; type++) {
		struct ep_config config = ep_defaults(qp_types[type]);

		ep_open(&ep, &config, EP_HERE);
		every_pair(type);
		without_state(type);
		if (type == RC) {
			values();
			psn_masked();
		}
		if (type == UD)
			privileged_qkey();
		go_to(type, IBV_QPS_RESET);
		ep_close(&ep);
	}
	return expect_done();
}
