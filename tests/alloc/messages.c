/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Promise: an allocation that fails while queue pairs are made, connected and used harms that call or
 * that request and nothing else. Two processes connect a queue pair each, over each link, and each
 * sends the other one a request; or one process does that with two queue pairs.
 *
 * usage: see loop.h
 */
#include <errno.h>
#include <string.h>

#include "alloc/loop.h"
#include "support/check.h"
#include "support/completion.h"
#include "support/network.h"
#include "support/qp_state.h"

#define BYTES 64
#define ACCESS                                                                       \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC)
/* A datagram may be lost. */
#define DATAGRAM_MS 300

/* What the other end must know. */
struct address {
	union ibv_gid gid;
	uint64_t addr;
	uint32_t rkey, qpn;
};

/* One end; `target` is what requests of the other end write to, read from, and are received in. */
struct end {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct ibv_qp *qp;
	struct ibv_ah *ah;
	struct address own, other;
};

struct memory {
	uint64_t source[BYTES / 8], target[BYTES / 8];
};

static struct memory memory[2] __attribute__((aligned(4096)));

static bool post_receive(struct side *s, struct end *e, struct memory *m)
{
	bool datagram = s->scenario->type == IBV_QPT_UD;
	struct ibv_sge sge = {(uintptr_t)m->target, sizeof(m->target), e->mr->lkey};
	struct ibv_sge both[2] = {{(uintptr_t)m->source, 40, e->mr->lkey}, sge};
	struct ibv_recv_wr wr = {.wr_id = 1,
				 .sg_list = datagram ? both : &sge,
				 .num_sge = datagram ? 2 : 1},
			   *bad;

	return side_call(s, "post_recv", ibv_post_recv(e->qp, &wr, &bad));
}

static bool open_device(struct side *s, struct end *e)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	if (!side_found(s, "get_device_list", list))
		return false;
	if (!list[0]) {
		ibv_free_device_list(list);
		return side_call(s, "no device", ENODEV);
	}
	e->ctx = ibv_open_device(list[0]);
	int err = errno;

	ibv_free_device_list(list);
	errno = err;
	return side_found(s, "open_device", e->ctx);
}

/* All that an end needs before it knows of the other one. */
static bool end_make(struct side *s, struct end *e, struct memory *m)
{
	struct ibv_qp_init_attr init = {
		.qp_type = s->scenario->type,
		.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 2},
	};
	struct ibv_qp_attr attr = {.port_num = 1, .qkey = 1, .qp_access_flags = ACCESS};

	e->pd = ibv_alloc_pd(e->ctx);
	if (!side_found(s, "alloc_pd", e->pd))
		return false;
	e->mr = ibv_reg_mr(e->pd, m, sizeof(*m), ACCESS);
	if (!side_found(s, "reg_mr", e->mr))
		return false;
	e->cq = ibv_create_cq(e->ctx, 16, NULL, NULL, 0);
	if (!side_found(s, "create_cq", e->cq))
		return false;
	init.send_cq = init.recv_cq = e->cq;
	e->qp = ibv_create_qp(e->pd, &init);
	if (!side_found(s, "create_qp", e->qp) ||
	    !side_call(s, "modify_qp, INIT", qp_step(e->qp, &attr, IBV_QPS_INIT)) ||
	    !side_call(s, "query_gid", ibv_query_gid(e->ctx, 1, 0, &e->own.gid)) ||
	    !post_receive(s, e, m))
		return false;
	e->own.addr = (uintptr_t)m->target;
	e->own.rkey = e->mr->rkey;
	e->own.qpn = e->qp->qp_num;
	return true;
}

static bool end_connect(struct side *s, struct end *e)
{
	struct ibv_qp_attr attr = qp_attr_within(e->ctx, e->other.qpn);

	attr.max_rd_atomic = attr.max_dest_rd_atomic = 1;
	attr.ah_attr.grh.dgid = e->other.gid;
	if (s->scenario->type == IBV_QPT_UD) {
		e->ah = ibv_create_ah(e->pd, &attr.ah_attr);
		if (!side_found(s, "create_ah", e->ah))
			return false;
	}
	return side_call(s, "modify_qp, RTR", qp_step(e->qp, &attr, IBV_QPS_RTR)) &&
	       side_call(s, "modify_qp, RTS", qp_step(e->qp, &attr, IBV_QPS_RTS));
}

static bool request(struct side *s, struct end *e, struct memory *m)
{
	struct ibv_sge sge = {(uintptr_t)m->source, sizeof(m->source), e->mr->lkey};
	struct ibv_send_wr wr = {.opcode = s->scenario->opcode,
				 .send_flags = IBV_SEND_SIGNALED,
				 .sg_list = &sge,
				 .num_sge = 1},
			   *bad;
	struct ibv_wc wc = {0};

	if (wr.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		sge.length = 8;
		wr.wr.atomic.remote_addr = e->other.addr;
		wr.wr.atomic.rkey = e->other.rkey;
		wr.wr.atomic.compare_add = 1;
	} else if (s->scenario->type == IBV_QPT_UD) {
		wr.wr.ud.ah = e->ah;
		wr.wr.ud.remote_qpn = e->other.qpn;
		wr.wr.ud.remote_qkey = 1;
	} else {
		wr.wr.rdma.remote_addr = e->other.addr;
		wr.wr.rdma.rkey = e->other.rkey;
	}
	if (!side_call(s, "post_send", ibv_post_send(e->qp, &wr, &bad)))
		return false;
	int came = completion_poll(e->cq, &wc, 1, REQUEST_MS);

	return side_completion(s, "request", came, &wc);
}

/* What the other end's request, which was complete there, has done here. */
static bool request_seen(struct side *s, struct end *e, const struct memory *m)
{
	bool datagram = s->scenario->type == IBV_QPT_UD;
	struct ibv_wc wc = {0};
	int came;

	if (s->scenario->opcode != IBV_WR_SEND)
		return true;
	came = completion_poll(e->cq, &wc, 1, datagram ? DATAGRAM_MS : REQUEST_MS);
	if (datagram && !came) /* delivery is not promised */
		return true;
	if (!side_completion(s, "receive", came, &wc))
		return false;
	CHECK(m->target[0] == 7 && m->target[BYTES / 8 - 1] == 7);
	return true;
}

static bool request_did(const struct scenario *scenario, const struct memory *requester,
			const struct memory *responder)
{
	switch (scenario->opcode) {
	case IBV_WR_RDMA_WRITE:
		return responder->target[0] == 7 && responder->target[BYTES / 8 - 1] == 7;
	case IBV_WR_RDMA_READ:
		return requester->source[0] == 5 && requester->source[BYTES / 8 - 1] == 5;
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		return requester->source[0] == 5 && responder->target[0] == 6;
	default:
		return true;
	}
}

static void fill(struct memory *m)
{
	for (int i = 0; i < BYTES / 8; i++) {
		m->source[i] = 7;
		m->target[i] = 5;
	}
}

static void end_leave(struct side *s, struct end *e)
{
	if (e->ah)
		side_call(s, "destroy_ah", ibv_destroy_ah(e->ah));
	if (e->qp)
		side_call(s, "destroy_qp", ibv_destroy_qp(e->qp));
	if (e->cq)
		side_call(s, "destroy_cq", ibv_destroy_cq(e->cq));
	if (e->mr)
		side_call(s, "dereg_mr", ibv_dereg_mr(e->mr));
	if (e->pd)
		side_call(s, "dealloc_pd", ibv_dealloc_pd(e->pd));
}

/* One request from this side, or from the other one. */
static bool apart_request(struct side *s, struct end *e, struct memory *m, int requester)
{
	bool ok = true, mine = requester == s->index;
	struct memory theirs;

	if (mine)
		ok = request(s, e, m);
	ok = side_both(s, ok, NULL, NULL, 0);
	if (ok && !mine)
		ok = request_seen(s, e, m);
	ok = side_both(s, ok, m, &theirs, sizeof(*m));
	if (ok)
		CHECK(request_did(s->scenario, mine ? m : &theirs, mine ? &theirs : m));
	return ok;
}

static bool life_apart(struct side *s)
{
	struct memory *m = &memory[0];
	struct end e = {0};
	bool ok;

	fill(m);
	ok = open_device(s, &e) && end_make(s, &e, m);
	ok = side_both(s, ok, &e.own, &e.other, sizeof(e.own));
	ok = ok && end_connect(s, &e);
	ok = side_both(s, ok, NULL, NULL, 0);
	ok = ok && apart_request(s, &e, m, 0);
	if (ok) {
		fill(m);
		ok = side_both(s, true, NULL, NULL, 0) && apart_request(s, &e, m, 1);
	}
	end_leave(s, &e);
	if (e.ctx)
		side_call(s, "close_device", ibv_close_device(e.ctx));
	return side_both(s, side_well(s), NULL, NULL, 0) && ok;
}

static bool life_alone(struct side *s)
{
	struct end a = {0}, b = {0};
	bool ok;

	fill(&memory[0]);
	fill(&memory[1]);
	ok = open_device(s, &a);
	b.ctx = a.ctx;
	ok = ok && end_make(s, &a, &memory[0]) && end_make(s, &b, &memory[1]);
	a.other = b.own;
	b.other = a.own;
	ok = ok && end_connect(s, &a) && end_connect(s, &b);
	ok = ok && request(s, &a, &memory[0]) && request_seen(s, &b, &memory[1]);
	if (ok)
		CHECK(request_did(s->scenario, &memory[0], &memory[1]));
	end_leave(s, &a);
	end_leave(s, &b);
	if (a.ctx)
		side_call(s, "close_device", ibv_close_device(a.ctx));
	return ok && side_well(s);
}

#define APART(name, ...)                                                               \
	{                                                                              \
		"two processes, " name, 2, NULL, life_apart, __VA_ARGS__, false, false \
	}
#define WARM(name, ...)                                                                      \
	{                                                                                    \
		"acquainted processes, " name, 2, NULL, life_apart, __VA_ARGS__, true, false \
	}
#define UDP(name, ...)                                                        \
	{                                                                     \
		"udp, " name, 2, "udp", life_apart, __VA_ARGS__, false, false \
	}
#define ALONE(name, ...)                                                             \
	{                                                                            \
		"one process, " name, 1, NULL, life_alone, __VA_ARGS__, false, false \
	}

static const struct scenario scenarios[] = {
	APART("SEND", IBV_QPT_RC, IBV_WR_SEND),
	APART("WRITE", IBV_QPT_RC, IBV_WR_RDMA_WRITE),
	APART("READ", IBV_QPT_RC, IBV_WR_RDMA_READ),
	APART("ATOMIC", IBV_QPT_RC, IBV_WR_ATOMIC_FETCH_AND_ADD),
	APART("datagram", IBV_QPT_UD, IBV_WR_SEND),
	WARM("SEND", IBV_QPT_RC, IBV_WR_SEND),
	WARM("WRITE", IBV_QPT_RC, IBV_WR_RDMA_WRITE),
	UDP("SEND", IBV_QPT_RC, IBV_WR_SEND),
	UDP("WRITE", IBV_QPT_RC, IBV_WR_RDMA_WRITE),
	UDP("READ", IBV_QPT_RC, IBV_WR_RDMA_READ),
	UDP("ATOMIC", IBV_QPT_RC, IBV_WR_ATOMIC_FETCH_AND_ADD),
	UDP("datagram", IBV_QPT_UD, IBV_WR_SEND),
	ALONE("SEND", IBV_QPT_RC, IBV_WR_SEND),
	ALONE("READ", IBV_QPT_RC, IBV_WR_RDMA_READ),
	ALONE("datagram", IBV_QPT_UD, IBV_WR_SEND),
	{.name = NULL},
};

int main(int argc, char **argv)
{
	network_apart();
	return loop_main(argc, argv, scenarios);
}
