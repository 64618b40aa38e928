/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * ibv_wr_post(3), the table of operations and queue pair types: each pair is made or refused as the
 * page says. And a batch of every operation that a type has: aborted, completed, and with a fault
 * in its middle.
 */
#include <arpa/inet.h>
#include <sched.h>
#include <string.h>

#include <infiniband/verbs.h>

#include "support/check.h"
#include "support/endpoint.h"

#define RC  (1u << IBV_QPT_RC)
#define UC  (1u << IBV_QPT_UC)
#define UD  (1u << IBV_QPT_UD)
#define RAW (1u << IBV_QPT_RAW_PACKET)
#define XS  (1u << IBV_QPT_XRC_SEND)

static const struct {
	const char *name;
	uint64_t flag;
	uint32_t types;
} operations[] = {
	{"RDMA_WRITE", IBV_QP_EX_WITH_RDMA_WRITE, RC | UC | XS},
	{"RDMA_WRITE_WITH_IMM", IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM, RC | UC | XS},
	{"SEND", IBV_QP_EX_WITH_SEND, RC | UC | UD | RAW | XS},
	{"SEND_WITH_IMM", IBV_QP_EX_WITH_SEND_WITH_IMM, RC | UC | UD | XS},
	{"RDMA_READ", IBV_QP_EX_WITH_RDMA_READ, RC | XS},
	{"ATOMIC_CMP_AND_SWP", IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP, RC | XS},
	{"ATOMIC_FETCH_AND_ADD", IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD, RC | XS},
	{"LOCAL_INV", IBV_QP_EX_WITH_LOCAL_INV, RC | UC | XS},
	{"BIND_MW", IBV_QP_EX_WITH_BIND_MW, RC | UC | XS},
	/* The page lists it for UC, whose wire has no such opcode. */
	{"SEND_WITH_INV", IBV_QP_EX_WITH_SEND_WITH_INV, RC | XS},
	{"FLUSH", IBV_QP_EX_WITH_FLUSH, RC | XS},
	{"ATOMIC_WRITE", IBV_QP_EX_WITH_ATOMIC_WRITE, RC | XS},
	/* The page has it for UD and RAW_PACKET; tso_caps say that no type can. */
	{"TSO", IBV_QP_EX_WITH_TSO, 0},
};

static const enum ibv_qp_type types[] = {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD, IBV_QPT_RAW_PACKET,
					 IBV_QPT_XRC_SEND};

static struct ibv_qp *make(struct endpoint *ep, enum ibv_qp_type type, uint64_t flags)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = type,
		.send_cq = ep->cq[EP_SEND_CQ],
		.recv_cq = ep->cq[EP_RECV_CQ],
		.cap = {.max_send_wr = 32,
			.max_recv_wr = 32,
			.max_send_sge = 1,
			.max_recv_sge = 1,
			.max_inline_data = 32},
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = ep->pd,
		.send_ops_flags = flags,
	};

	if (type == IBV_QPT_XRC_SEND)
		attr.cap.max_recv_wr = attr.cap.max_recv_sge = 0;
	errno = 0;
	return ibv_create_qp_ex(ep->context, &attr);
}

static void table(void)
{
	struct ep_config config = ep_defaults(IBV_QPT_RC);
	struct ibv_device_attr_ex device;
	struct endpoint ep;

	ep_open(&ep, &config, EP_HERE);
	CHECK(!ibv_query_device_ex(ep.context, NULL, &device));
	expect_case("TSO is refused because no type is reported");
	EXPECT_EQ(device.tso_caps.max_tso, 0);
	EXPECT_EQ(device.tso_caps.supported_qpts, 0);
	for (size_t t = 0; t < sizeof(types) / sizeof(types[0]); t++) {
		for (size_t o = 0; o < sizeof(operations) / sizeof(operations[0]); o++) {
			bool has = operations[o].types & 1u << types[t];
			struct ibv_qp *qp = make(&ep, types[t], operations[o].flag);

			expect_case("type %d: %s", (int)types[t], operations[o].name);
			if (!qp && errno == EPERM && types[t] == IBV_QPT_RAW_PACKET)
				continue; /* without CAP_NET_RAW */
			EXPECT_EQ(qp != NULL, has);
			if (!qp) {
				EXPECT_EQ(errno, EOPNOTSUPP);
				continue;
			}
			EXPECT(ibv_qp_to_qp_ex(qp) != NULL);
			EXPECT_EQ(ibv_destroy_qp(qp), 0);
		}
	}
	ep_close(&ep);
}

/* A queue pair linked to itself, in the place of the endpoint's own. */
static struct ibv_qp_ex *extended(struct endpoint *ep, enum ibv_qp_type type)
{
	struct ep_config config = ep_defaults(type);
	uint64_t flags = 0;

	ep_open(ep, &config, EP_HERE);
	for (size_t o = 0; o < sizeof(operations) / sizeof(operations[0]); o++) {
		if (operations[o].types & 1u << type)
			flags |= operations[o].flag;
	}
	EXPECT_EQ(ibv_destroy_qp(ep->qp), 0);
	ep->qp = make(ep, type, flags);
	CHECK(ep->qp);
	ep->local.qpn = ep->qp->qp_num;
	ep_link(ep, ep);
	return ibv_qp_to_qp_ex(ep->qp);
}

/* Every operation once, each with data or inline data in turn; their number. */
static uint64_t build(struct endpoint *ep, struct ibv_qp_ex *ex)
{
	const uint64_t remote = ep->local.addr + 32768;
	const uint32_t rkey = ep->local.rkey;
	const bool rc = ep->config.type == IBV_QPT_RC;
	uint64_t n = 0;
	char data[16];

	memset(data, 0x77, sizeof(data));
	ex->wr_flags = IBV_SEND_SIGNALED;
	ex->wr_id = n++;
	ibv_wr_rdma_write(ex, rkey, remote);
	ibv_wr_set_sge(ex, ep->lkey, ep->local.addr, 8);
	ex->wr_id = n++;
	ibv_wr_rdma_write_imm(ex, rkey, remote + 64, htonl(1));
	ibv_wr_set_inline_data(ex, data, sizeof(data));
	ex->wr_id = n++;
	ibv_wr_send(ex);
	ibv_wr_set_sge(ex, ep->lkey, ep->local.addr, 8);
	ex->wr_id = n++;
	ibv_wr_send_imm(ex, htonl(2));
	ibv_wr_set_inline_data(ex, data, sizeof(data));
	if (!rc)
		return n;
	ex->wr_id = n++;
	ibv_wr_rdma_read(ex, rkey, remote);
	ibv_wr_set_sge(ex, ep->lkey, ep->local.addr + 512, 8);
	ex->wr_id = n++;
	ibv_wr_atomic_fetch_add(ex, rkey, remote + 128, 5);
	ibv_wr_set_sge(ex, ep->lkey, ep->local.addr + 520, 8);
	ex->wr_id = n++;
	ibv_wr_atomic_cmp_swp(ex, rkey, remote + 128, 5, 9);
	ibv_wr_set_sge(ex, ep->lkey, ep->local.addr + 528, 8);
	return n;
}

static void receives(struct endpoint *ep)
{
	for (uint64_t i = 0; i < 3; i++) {
		struct ibv_sge into = ep_sge(ep, 49152, 64);

		CHECK(ep_post_recv(ep, i, &into, 1) == 0);
	}
}

static void batches(enum ibv_qp_type type)
{
	struct endpoint ep;
	struct ibv_qp_ex *ex = extended(&ep, type);
	static struct ibv_sge too_many[EP_MAX_SGE + 1];
	struct ibv_wc wc;
	uint64_t n, word;

	ep_fill(&ep, 0, 0x66, 64);
	ep_fill(&ep, 32768, 0, 256);
	receives(&ep);
	expect_case("type %d: every operation, aborted", (int)type);
	ibv_wr_start(ex);
	build(&ep, ex);
	ibv_wr_abort(ex);
	EXPECT_EQ(ep_poll_none(&ep, EP_SEND_CQ), 0);
	EXPECT(ep_is_filled(&ep, 32768, 0, 256));

	expect_case("type %d: every operation, spoilt in the middle", (int)type);
	ibv_wr_start(ex);
	build(&ep, ex);
	ex->wr_id = 90;
	ibv_wr_send(ex);
	ibv_wr_set_sge_list(ex, EP_MAX_SGE + 1, too_many);
	build(&ep, ex);
	EXPECT_EQ(ibv_wr_complete(ex), EINVAL);
	EXPECT_EQ(ep_poll_none(&ep, EP_SEND_CQ), 0);
	EXPECT(ep_is_filled(&ep, 32768, 0, 256));

	expect_case("type %d: every operation, completed, in order", (int)type);
	ibv_wr_start(ex);
	n = build(&ep, ex);
	EXPECT_EQ(ibv_wr_complete(ex), 0);
	for (uint64_t i = 0; i < n; i++) {
		EXPECT_STATUS(ep_poll_one(&ep, EP_SEND_CQ, &wc), IBV_WC_SUCCESS);
		EXPECT_EQ(wc.wr_id, i);
	}
	for (uint64_t i = 0; i < 3; i++) {
		EXPECT_STATUS(ep_poll_one(&ep, EP_RECV_CQ, &wc), IBV_WC_SUCCESS);
		EXPECT_EQ(wc.wr_id, i);
	}
	EXPECT(ep_is_filled(&ep, 32768, 0x66, 8));
	EXPECT(ep_is_filled(&ep, 32768 + 64, 0x77, 16));
	if (type == IBV_QPT_RC) {
		EXPECT(ep_is_filled(&ep, 512, 0x66, 8));
		ep_peek(&ep, 528, &word, sizeof(word));
		EXPECT_EQ(word, 5);
		ep_peek(&ep, 32768 + 128, &word, sizeof(word));
		EXPECT_EQ(word, 9);
	}
	ep_close(&ep);
}

int main(int argc, char **argv)
{
	ep_main(argc, argv);
	table();
	batches(IBV_QPT_RC);
	batches(IBV_QPT_UC);
	return expect_done();
}
