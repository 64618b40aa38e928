/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Carries plans out: one side as requester, as target, or both at once. */
#include <arpa/inet.h>
#include <string.h>
#include <time.h>

#include "plan.h"

enum { WINDOW = 16, SGES = 4 };
#define RECEIVE_ID 0x1000u

struct progress {
	const struct plan *out;
	const struct plan *in;
	const char *name;
	unsigned int posted;   /* of out */
	unsigned int done;     /* of out */
	unsigned int received; /* of in's that take a receive */
	unsigned int receives;
	unsigned int next_in; /* index in `in` that the next receive completion belongs to */
};

static void post_receives(struct exchange *x, struct end *e, const struct plan *plan)
{
	for (unsigned int i = 0; i < plan->count; i++) {
		const struct op *op = &plan->ops[i];
		struct ibv_sge sge[SGES];
		struct ibv_recv_wr wr = {.wr_id = RECEIVE_ID + i, .sg_list = sge}, *bad;

		if (!op_takes_receive(op))
			continue;
		if (op->opcode != IBV_WR_RDMA_WRITE_WITH_IMM)
			wr.num_sge = op_split(op, area_of(x, AREA_SINK), x->mr->lkey, sge);
		must(ibv_post_recv(e->qp, &wr, &bad), "ibv_post_recv");
	}
}

static void post(struct exchange *x, struct end *e, const struct plan *plan, unsigned int i)
{
	const struct op *op = &plan->ops[i];
	struct ibv_sge sge[SGES];
	struct ibv_send_wr wr = {.wr_id = i, .sg_list = sge, .opcode = op->opcode}, *bad;
	bool brings = false;

	wr.imm_data = htonl(op->imm);
	wr.wr.rdma.rkey = e->peer.rkey;
	wr.wr.rdma.remote_addr = peer_area(e, AREA_SINK) + op->offset;
	if (op->opcode == IBV_WR_RDMA_READ) {
		brings = true;
		wr.wr.rdma.remote_addr = peer_area(e, AREA_STORE) + op->offset;
	} else if (op->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ||
		   op->opcode == IBV_WR_ATOMIC_CMP_AND_SWP) {
		brings = true;
		wr.wr.atomic.rkey = e->peer.rkey;
		wr.wr.atomic.remote_addr = peer_area(e, AREA_SINK) + word_offset(op->word);
		wr.wr.atomic.compare_add = op->compare_add;
		wr.wr.atomic.swap = op->swap;
	}
	wr.num_sge = op_split(op, area_of(x, brings ? AREA_RESULT : AREA_SOURCE), x->mr->lkey, sge);
	must(ibv_post_send(e->qp, &wr, &bad), "ibv_post_send");
}

static void on_receive(struct progress *p, const struct ibv_wc *wc)
{
	const struct op *op;
	bool write = wc->opcode == IBV_WC_RECV_RDMA_WITH_IMM;

	if (!p->in)
		fail("%s: a receive completion, nothing was asked for", p->name);
	while (p->next_in < p->in->count && !op_takes_receive(&p->in->ops[p->next_in]))
		p->next_in++;
	if (p->next_in == p->in->count)
		fail("%s: a receive completion too many", p->name);
	op = &p->in->ops[p->next_in];
	if (wc->wr_id != RECEIVE_ID + p->next_in)
		fail("%s: receive %u completed instead of %u", p->name,
		     (unsigned int)wc->wr_id - RECEIVE_ID, p->next_in);
	if (write != (op->opcode == IBV_WR_RDMA_WRITE_WITH_IMM))
		fail("%s: receive %u: completion opcode %d", p->name, p->next_in, wc->opcode);
	if (wc->byte_len != op->length)
		fail("%s: receive %u: byte_len %u instead of %u", p->name, p->next_in, wc->byte_len,
		     op->length);
	if (op_has_imm(op) != !!(wc->wc_flags & IBV_WC_WITH_IMM))
		fail("%s: receive %u: wc_flags 0x%x", p->name, p->next_in, wc->wc_flags);
	if (op_has_imm(op) && ntohl(wc->imm_data) != op->imm)
		fail("%s: receive %u: immediate 0x%x instead of 0x%x", p->name, p->next_in,
		     ntohl(wc->imm_data), op->imm);
	p->next_in++;
	p->received++;
}

static void on_send(struct progress *p, const struct ibv_wc *wc)
{
	if (wc->wr_id != p->done)
		fail("%s: request %u completed instead of %u", p->name, (unsigned int)wc->wr_id,
		     p->done);
	p->done++;
}

static void work(struct exchange *x, struct end *e, struct progress *p)
{
	unsigned int wanted = p->out ? p->out->count : 0;

	while (p->done < wanted || p->received < p->receives) {
		struct ibv_wc wc;

		while (p->posted < wanted && p->posted - p->done < WINDOW)
			post(x, e, p->out, p->posted++);
		if (!completion_within(x, &wc, 60))
			fail("%s: no completion in 60 s: %u of %u requests, %u of %u receives done",
			     p->name, p->done, wanted, p->received, p->receives);
		if (wc.status)
			fail("%s: %s %u: %s (vendor 0x%x); %u requests and %u receives were done",
			     p->name, wc.wr_id >= RECEIVE_ID ? "receive" : "request",
			     (unsigned int)wc.wr_id % RECEIVE_ID, ibv_wc_status_str(wc.status),
			     wc.vendor_err, p->done, p->received);
		if (wc.opcode & IBV_WC_RECV)
			on_receive(p, &wc);
		else
			on_send(p, &wc);
	}
}

static void sleep_ms(unsigned int ms)
{
	struct timespec t = {ms / 1000, (long)(ms % 1000) * 1000000};

	nanosleep(&t, NULL);
}

void transfer(struct exchange *x, struct end *e, const struct plan *out, const struct plan *in,
	      const char *name, unsigned int late_receives_ms)
{
	struct progress p = {.out = out, .in = in, .name = name};

	if (out)
		plan_prepare_requester(x, out);
	if (in) {
		plan_prepare_target(x, in);
		for (unsigned int i = 0; i < in->count; i++)
			p.receives += op_takes_receive(&in->ops[i]);
		if (!late_receives_ms)
			post_receives(x, e, in);
	}
	barrier(x, name);
	if (in && late_receives_ms) {
		sleep_ms(late_receives_ms);
		post_receives(x, e, in);
	}
	work(x, e, &p);
	barrier(x, name);
	if (out)
		plan_check_requester(x, out, name);
	if (in)
		plan_check_target(x, in, name);
	barrier(x, name);
}
