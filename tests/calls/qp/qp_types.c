/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * ibv_modify_qp(3) for the types that qp_modify.c leaves out: XRC_SEND, XRC_RECV and RAW_PACKET.
 * For each pair of states each attribute bit alone: required, optional, refused, or ignored because
 * it belongs to the half that the type does not have (as Linux ignores it).
 */
#include <fcntl.h>
#include <string.h>

#include <infiniband/verbs.h>

#include "support/check.h"
#include "support/endpoint.h"

#define PKEY  IBV_QP_PKEY_INDEX
#define PORT  IBV_QP_PORT
#define ACC   IBV_QP_ACCESS_FLAGS
#define PATH  (IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN)
#define MDRA  IBV_QP_MAX_DEST_RD_ATOMIC
#define MRA   IBV_QP_MAX_QP_RD_ATOMIC
#define MRNR  IBV_QP_MIN_RNR_TIMER
#define TMO   IBV_QP_TIMEOUT
#define TRIES (IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY)
#define SPSN  IBV_QP_SQ_PSN
#define MIG   IBV_QP_PATH_MIG_STATE
#define CUR   IBV_QP_CUR_STATE
#define RATE  IBV_QP_RATE_LIMIT
#define NTFY  IBV_QP_EN_SQD_ASYNC_NOTIFY

#define XS    (1u << IBV_QPT_XRC_SEND)
#define XR    (1u << IBV_QPT_XRC_RECV)
#define RAW   (1u << IBV_QPT_RAW_PACKET)
#define ALL   (XS | XR | RAW)

static const struct {
	uint32_t types;
	uint8_t from, to;
	int required, optional;
} rows[] = {
	{XS | XR, IBV_QPS_RESET, IBV_QPS_INIT, PKEY | PORT | ACC, 0},
	{RAW, IBV_QPS_RESET, IBV_QPS_INIT, PORT, 0},
	{XS | XR, IBV_QPS_INIT, IBV_QPS_INIT, 0, PKEY | PORT | ACC},
	{XS, IBV_QPS_INIT, IBV_QPS_RTR, PATH, ACC | PKEY},
	{XR, IBV_QPS_INIT, IBV_QPS_RTR, PATH | MDRA | MRNR, ACC | PKEY},
	{RAW, IBV_QPS_INIT, IBV_QPS_RTR, 0, 0},
	{XS, IBV_QPS_RTR, IBV_QPS_RTS, TMO | TRIES | SPSN | MRA, CUR | ACC | MIG},
	{XR, IBV_QPS_RTR, IBV_QPS_RTS, TMO | SPSN, CUR | ACC | MRNR | MIG},
	{RAW, IBV_QPS_RTR, IBV_QPS_RTS, 0, RATE},
	{XS, IBV_QPS_RTS, IBV_QPS_RTS, 0, CUR | ACC | MIG},
	{XR, IBV_QPS_RTS, IBV_QPS_RTS, 0, CUR | ACC | MRNR | MIG},
	{RAW, IBV_QPS_RTS, IBV_QPS_RTS, 0, RATE},
	{XS | XR, IBV_QPS_RTS, IBV_QPS_SQD, 0, NTFY},
	{XS, IBV_QPS_SQD, IBV_QPS_RTS, 0, CUR | ACC | MIG},
	{XR, IBV_QPS_SQD, IBV_QPS_RTS, 0, CUR | ACC | MRNR | MIG},
	{XS, IBV_QPS_SQD, IBV_QPS_SQD, 0, PORT | IBV_QP_AV | TMO | TRIES | MRA | ACC | PKEY | MIG},
	{XR, IBV_QPS_SQD, IBV_QPS_SQD, 0, PORT | IBV_QP_AV | TMO | MDRA | ACC | PKEY | MRNR | MIG},
	{RAW, IBV_QPS_SQE, IBV_QPS_RTS, 0, CUR},
};

static struct endpoint ep;
static struct ibv_qp *qp;
static uint32_t type_bit;

/* -1: there is no such change. */
static int row_of(int from, int to)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (rows[i].types & type_bit && rows[i].from == from && rows[i].to == to)
			return (int)i;
	}
	return -1;
}

static int needed(int from, int to)
{
	int row = row_of(from, to);

	return IBV_QP_STATE | (row < 0 ? 0 : rows[row].required);
}

static struct ibv_qp_attr attributes(int from, int to)
{
	struct ibv_qp_attr attr = {
		.qp_state = (enum ibv_qp_state)to,
		.cur_qp_state = (enum ibv_qp_state)from,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = 0x4321,
		.port_num = 1,
		.max_rd_atomic = 1,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 12,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.ah_attr = {.is_global = 1, .port_num = 1, .grh = {.dgid = ep.local.gid}},
	};

	return attr;
}

static int step(int from, int to)
{
	struct ibv_qp_attr attr = attributes(from, to);

	return ibv_modify_qp(qp, &attr, needed(from, to));
}

/* A frame out of memory that is not registered. */
static void into_sqe(void)
{
	struct ibv_sge sge = {.addr = 1, .length = 64, .lkey = 0xdeadbeef};
	struct ibv_send_wr wr = ep_wr(IBV_WR_SEND, 1, &sge, 1), *bad;
	struct ibv_wc wc;

	CHECK(!ibv_post_send(qp, &wr, &bad));
	EXPECT_STATUS(ep_poll_one(&ep, EP_SEND_CQ, &wc), IBV_WC_LOC_PROT_ERR);
}

static enum ibv_qp_state state(void)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	CHECK(!ibv_query_qp(qp, &attr, IBV_QP_STATE, &init));
	return attr.qp_state;
}

static void go_to(int to)
{
	CHECK(!step((int)state(), IBV_QPS_RESET));
	if (to == IBV_QPS_ERR) {
		CHECK(!step(IBV_QPS_RESET, IBV_QPS_INIT));
		CHECK(!step(IBV_QPS_INIT, IBV_QPS_ERR));
		return;
	}
	for (int at = IBV_QPS_RESET; at < to && at < IBV_QPS_SQD; at++) {
		if (at == IBV_QPS_RTS && to == IBV_QPS_SQE)
			break;
		CHECK(!step(at, at + 1));
	}
	if (to == IBV_QPS_SQE)
		into_sqe();
	CHECK((int)state() == to);
}

static void refused(int from, int to, int mask, int err)
{
	struct ibv_qp_attr attr = attributes(from, to);

	EXPECT_REFUSED(ibv_modify_qp(qp, &attr, mask), err);
	EXPECT_EQ(state(), from);
	EXPECT_EQ(qp->state, from);
}

static void taken(int from, int to, int mask)
{
	struct ibv_qp_attr attr = attributes(from, to);

	go_to(from);
	EXPECT_EQ(ibv_modify_qp(qp, &attr, mask), 0);
	EXPECT_EQ(state(), to);
	EXPECT_EQ(qp->state, to);
}

/* Bits of the half that the type does not have. */
static int ignored(void)
{
	return type_bit == XS ? MDRA | MRNR : type_bit == XR ? MRA | TRIES : 0;
}

static void change(int from, int to)
{
	bool anywhere = to == IBV_QPS_RESET || (to == IBV_QPS_ERR && from != IBV_QPS_RESET);
	int row = row_of(from, to), mask = needed(from, to);

	if (row < 0 && !anywhere) {
		go_to(from);
		refused(from, to, mask, EINVAL);
		refused(from, to, needed(to == IBV_QPS_RTS ? IBV_QPS_RTR : to - 1, to), EINVAL);
		return;
	}
	for (int bit = 1 << 1; bit && bit <= RATE; bit <<= 1) {
		if (row >= 0 && rows[row].required & bit) {
			go_to(from);
			refused(from, to, mask & ~bit, EINVAL);
		} else if ((row >= 0 && rows[row].optional & bit) || ignored() & bit) {
			taken(from, to, mask | bit);
		} else {
			go_to(from);
			refused(from, to, mask | bit,
				bit > IBV_QP_DEST_QPN && bit < RATE ? EOPNOTSUPP : EINVAL);
		}
	}
	taken(from, to, mask);
	taken(from, to, mask | ignored() | (row < 0 ? 0 : rows[row].optional));
}

static void every_pair(enum ibv_qp_type type)
{
	type_bit = 1u << type;
	for (int from = IBV_QPS_RESET; from <= IBV_QPS_ERR; from++) {
		if (from == IBV_QPS_SQE && type != IBV_QPT_RAW_PACKET)
			continue; /* a reliable one has no such state */
		if (from == IBV_QPS_SQD && type == IBV_QPT_RAW_PACKET)
			continue;
		for (int to = IBV_QPS_RESET; to <= IBV_QPS_ERR; to++) {
			expect_case("type %d: %d to %d", (int)type, from, to);
			change(from, to);
		}
	}
}

/* ibv_modify_qp(3) and ibv_modify_qp_rate_limit(3): the rate, at its edges and in which states. */
static void rates(void)
{
	const uint32_t max = 4000000000u;
	static const enum ibv_qp_state without[] = {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR,
						    IBV_QPS_SQE, IBV_QPS_ERR};
	struct ibv_qp_rate_limit_attr limit = {.rate_limit = 5000};
	struct ibv_qp_attr attr = {.rate_limit = max};
	struct ibv_qp_init_attr init;

	expect_case("RAW_PACKET: the highest rate, one more, all bits, none");
	go_to(IBV_QPS_RTS);
	EXPECT_EQ(ibv_modify_qp(qp, &attr, RATE), 0);
	attr.rate_limit = max + 1;
	EXPECT_REFUSED(ibv_modify_qp(qp, &attr, RATE), EINVAL);
	attr.rate_limit = UINT32_MAX;
	EXPECT_REFUSED(ibv_modify_qp(qp, &attr, RATE), EINVAL);
	CHECK(!ibv_query_qp(qp, &attr, RATE, &init));
	EXPECT_EQ(attr.rate_limit, max);
	attr.rate_limit = 0;
	EXPECT_EQ(ibv_modify_qp(qp, &attr, RATE), 0);
	for (size_t i = 0; i < sizeof(without) / sizeof(without[0]); i++) {
		expect_case("RAW_PACKET: no rate in state %d", (int)without[i]);
		go_to((int)without[i]);
		EXPECT_REFUSED(ibv_modify_qp_rate_limit(qp, &limit), EINVAL);
	}
	expect_case("RAW_PACKET: a rate in RTS");
	go_to(IBV_QPS_RTS);
	EXPECT_EQ(ibv_modify_qp_rate_limit(qp, &limit), 0);
	CHECK(!ibv_query_qp(qp, &attr, RATE, &init));
	EXPECT_EQ(attr.rate_limit, 5000);
}

/* The types that have no rate. */
static void no_rate(enum ibv_qp_type type)
{
	struct ibv_qp_rate_limit_attr limit = {.rate_limit = 5000};

	expect_case("type %d: no rate", (int)type);
	go_to(IBV_QPS_RTS);
	EXPECT_REFUSED(ibv_modify_qp_rate_limit(qp, &limit), EINVAL);
}

/*
 * A type that sends does so from RTS on. A queue without places takes nothing. An XRC receiver has
 * no queues.
 */
static void posting(enum ibv_qp_type type)
{
	for (int at = IBV_QPS_RESET; at <= IBV_QPS_ERR; at++) {
		struct ibv_sge sge = ep_sge(&ep, 0, 64);
		struct ibv_send_wr wr = ep_wr(IBV_WR_SEND, 3, &sge, 1), *bad_send = NULL;
		struct ibv_recv_wr recv = {.wr_id = 4}, *bad_recv = NULL;
		bool sends = type != IBV_QPT_XRC_RECV && at >= IBV_QPS_RTS;
		bool empty = type != IBV_QPT_XRC_RECV && at != IBV_QPS_RESET;
		struct ibv_wc wc;

		if (type == IBV_QPT_RAW_PACKET ? at == IBV_QPS_SQD || at == IBV_QPS_RTS
					       : at == IBV_QPS_SQE)
			continue; /* no such state, or a frame that no other host should get */
		expect_case("type %d: posting in state %d", (int)type, at);
		go_to(at);
		EXPECT_EQ(ibv_post_recv(qp, &recv, &bad_recv), empty ? ENOMEM : EINVAL);
		EXPECT(bad_recv == &recv);
		EXPECT_EQ(ibv_post_send(qp, &wr, &bad_send), sends ? 0 : EINVAL);
		EXPECT(bad_send == (sends ? NULL : &wr));
		if (sends && at >= IBV_QPS_SQE) {
			EXPECT_STATUS(ep_poll_one(&ep, EP_SEND_CQ, &wc), IBV_WC_WR_FLUSH_ERR);
			EXPECT_EQ(wc.wr_id, 3);
		}
		if (at !=
		    IBV_QPS_RTS) /* there the request finds out that its peer does not exist */
			EXPECT_EQ(state(), at);
	}
	go_to(IBV_QPS_RESET);
}

int main(int argc, char **argv)
{
	static const enum ibv_qp_type types[] = {IBV_QPT_XRC_SEND, IBV_QPT_XRC_RECV,
						 IBV_QPT_RAW_PACKET};
	struct ibv_xrcd_init_attr domain = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1,
		.oflags = O_CREAT,
	};
	struct ep_config config = ep_defaults(IBV_QPT_RC);
	struct ibv_xrcd *xrcd;

	ep_main(argc, argv);
	ep_open(&ep, &config, EP_HERE);
	xrcd = ibv_open_xrcd(ep.context, &domain);
	CHECK(xrcd);
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		bool receives = types[i] == IBV_QPT_XRC_RECV;
		struct ibv_qp_init_attr_ex attr = {
			.qp_type = types[i],
			.send_cq = receives ? NULL : ep.cq[0],
			.recv_cq = receives ? NULL : ep.cq[1],
			.cap = {.max_send_wr = 1, .max_send_sge = 1},
			.comp_mask = receives ? IBV_QP_INIT_ATTR_XRCD : IBV_QP_INIT_ATTR_PD,
			.pd = ep.pd,
			.xrcd = xrcd,
		};

		qp = ibv_create_qp_ex(ep.context, &attr);
		if (!qp && types[i] == IBV_QPT_RAW_PACKET && errno == EPERM)
			continue; /* without CAP_NET_RAW */
		CHECK(qp);
		every_pair(types[i]);
		posting(types[i]);
		if (types[i] == IBV_QPT_RAW_PACKET)
			rates();
		else
			no_rate(types[i]);
		EXPECT_EQ(ibv_destroy_qp(qp), 0);
	}
	EXPECT_EQ(ibv_close_xrcd(xrcd), 0);
	ep_close(&ep);
	return expect_done();
}
