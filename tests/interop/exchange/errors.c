/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Requests that the other side has to refuse, each on queue pairs of its own: what the requester
 * and the target are told.
 */
#include <string.h>

#include "exchange.h"

struct trial {
	const char *name;
	struct profile profile;
	enum ibv_wr_opcode opcode;
	uint32_t length;
	uint32_t receive; /* bytes posted by the target; NONE: nothing posted */
	uint32_t rkey_flip;
	uint64_t offset; /* from the start of the target's memory */
	bool target_gone;
	uint64_t expected;  /* set of statuses that the specification allows */
	uint64_t at_target; /* the same of the receive, if one was posted */
};

#define NONE         0xffffffffu
#define STATUS(name) (UINT64_C(1) << IBV_WC_##name)
#define LAST_BYTES   ((uint64_t)AREAS * AREA_BYTES - 8)
#define RC_WITH(bits)                        \
	{                                    \
		IBV_QPT_RC, (bits), 7, 7, 14 \
	}
#define RC RC_WITH(IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

static const struct trial trials[] = {
	{"write, wrong key", RC, IBV_WR_RDMA_WRITE, 64, NONE, 0x100, 0, false,
	 STATUS(REM_ACCESS_ERR), 0},
	{"long write, wrong key", RC, IBV_WR_RDMA_WRITE, 20000, NONE, 0x100, 0, false,
	 STATUS(REM_ACCESS_ERR), 0},
	{"write over the end", RC, IBV_WR_RDMA_WRITE, 64, NONE, 0, LAST_BYTES, false,
	 STATUS(REM_ACCESS_ERR), 0},
	{"read over the end", RC, IBV_WR_RDMA_READ, 64, NONE, 0, LAST_BYTES, false,
	 STATUS(REM_ACCESS_ERR), 0},
	{"read, not allowed", RC_WITH(IBV_ACCESS_REMOTE_WRITE), IBV_WR_RDMA_READ, 64, NONE, 0, 0,
	 false, STATUS(REM_ACCESS_ERR) | STATUS(REM_INV_REQ_ERR), 0},
	{"write, not allowed", RC_WITH(IBV_ACCESS_REMOTE_READ), IBV_WR_RDMA_WRITE, 64, NONE, 0, 0,
	 false, STATUS(REM_ACCESS_ERR) | STATUS(REM_INV_REQ_ERR), 0},
	/*
	 * IBA 9.9.3: invalid request, length error; rdma_rxe has operational errors on both sides.
	 */
	{"send longer than the receive", RC, IBV_WR_SEND, 64, 16, 0, 0, false,
	 STATUS(REM_INV_REQ_ERR) | STATUS(REM_OP_ERR), STATUS(LOC_LEN_ERR) | STATUS(LOC_QP_OP_ERR)},
	{"long send longer than the receive", RC, IBV_WR_SEND, 20000, 5000, 0, 0, false,
	 STATUS(REM_INV_REQ_ERR) | STATUS(REM_OP_ERR), STATUS(LOC_LEN_ERR) | STATUS(LOC_QP_OP_ERR)},
	{"send, never a receive",
	 {IBV_QPT_RC, 0, 1, 7, 17},
	 IBV_WR_SEND,
	 64,
	 NONE,
	 0,
	 0,
	 false,
	 STATUS(RNR_RETRY_EXC_ERR),
	 0},
	{"send to a queue pair that is gone",
	 {IBV_QPT_RC, 0, 7, 2, 12},
	 IBV_WR_SEND,
	 64,
	 NONE,
	 0,
	 0,
	 true,
	 STATUS(RETRY_EXC_ERR),
	 0},
};

static void post(struct exchange *x, struct end *e, const struct trial *t)
{
	struct ibv_sge sge = {(uintptr_t)area_of(x, AREA_SOURCE), t->length, x->mr->lkey};
	struct ibv_send_wr wr = {.wr_id = 1, .sg_list = &sge, .num_sge = 1, .opcode = t->opcode},
			   *bad;

	wr.wr.rdma.remote_addr = e->peer.memory + t->offset;
	wr.wr.rdma.rkey = e->peer.rkey ^ t->rkey_flip;
	must(ibv_post_send(e->qp, &wr, &bad), "ibv_post_send");
}

static void as_requester(struct exchange *x, struct end *e, const struct trial *t)
{
	struct ibv_qp_attr attr = {0};
	struct ibv_qp_init_attr init;
	struct ibv_wc wc;

	barrier(x, t->name);
	post(x, e, t);
	wc = completion(x, t->name);
	if (wc.wr_id != 1 || !(t->expected >> wc.status & 1))
		fail("%s: %s (vendor 0x%x)", t->name, ibv_wc_status_str(wc.status), wc.vendor_err);
	must(ibv_query_qp(e->qp, &attr, IBV_QP_STATE, &init), "ibv_query_qp");
	if (attr.qp_state != IBV_QPS_ERR)
		fail("%s: the requester's queue pair is in state %d", t->name, attr.qp_state);
	barrier(x, t->name);
	say("ok error: %s: %s", t->name, ibv_wc_status_str(wc.status));
}

static void as_target(struct exchange *x, struct end *e, const struct trial *t)
{
	uint8_t *sink = area_of(x, AREA_SINK);

	memset(x->memory, 0xa5, 64);
	if (t->receive != NONE) {
		struct ibv_sge sge = {(uintptr_t)sink, t->receive, x->mr->lkey};
		struct ibv_recv_wr wr = {.wr_id = 2, .sg_list = &sge, .num_sge = 1}, *bad;

		must(ibv_post_recv(e->qp, &wr, &bad), "ibv_post_recv");
	}
	if (t->target_gone) {
		must(ibv_destroy_qp(e->qp), "ibv_destroy_qp");
		e->qp = ibv_create_qp(x->pd, &(struct ibv_qp_init_attr){.send_cq = x->cq,
									.recv_cq = x->cq,
									.cap = {1, 1, 1, 1, 0},
									.qp_type = IBV_QPT_RC});
		if (!e->qp)
			fail("ibv_create_qp");
	}
	barrier(x, t->name);
	if (t->receive != NONE) {
		struct ibv_wc wc = completion(x, t->name);

		if (!(t->at_target >> wc.status & 1))
			fail("%s: the receive: %s", t->name, ibv_wc_status_str(wc.status));
	}
	barrier(x, t->name);
	for (unsigned int i = 0; i < 64; i++)
		if (x->memory[i] != 0xa5)
			fail("%s: memory was written", t->name);
}

void test_errors(struct exchange *x)
{
	for (unsigned int i = 0; i < sizeof(trials) / sizeof(trials[0]); i++)
		for (int turn = 0; turn < 2; turn++) {
			struct end e = end_connect(x, &trials[i].profile);

			if ((turn == 0) == (x->server != NULL))
				as_requester(x, &e, &trials[i]);
			else
				as_target(x, &e, &trials[i]);
			end_close(x, &e);
		}
}
