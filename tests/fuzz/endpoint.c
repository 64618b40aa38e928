/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The endpoint under test: its link, its queues, and the checks on the protocol. */
#include "endpoint.h"

#include <string.h>

#include "input.h"
#include "memory.h"
#include "support/protocol.h"
#include "transport/psn.h"
#include "wire/opcode.h"
#include "wire/packet.h"

/* A link gives room for exactly what was asked for. */
static void *reserve(struct vb_tqp *qp, const struct vb_send_wqe *wqe, const struct vb_run *run)
{
	struct endpoint *e = endpoint_of(qp);

	(void)wqe;
	DEMAND(run->length <= qp->max_run_bytes);
	if (!e->runs_left)
		return NULL;
	free(e->room);
	e->room = malloc(run->length ? run->length : 1);
	DEMAND(e->room);
	e->room_bytes = run->length;
	e->room_for = *run;
	e->reserved = true;
	return e->room;
}

/* Each run that is sent must be one that a peer's decoder accepts. */
static void check_packets(const struct vb_run *run, uint32_t mtu)
{
	static uint8_t packet[VB_PACKET_MOST];
	uint32_t total = 0;

	for (uint32_t i = 0; i < run->segments; i++) {
		size_t bytes = vb_packet_bytes(run, i, mtu);
		struct vb_run got;
		const uint8_t *payload;

		DEMAND(bytes && bytes <= sizeof(packet));
		DEMAND(vb_packet_header(run, i, mtu, packet) > 0);
		DEMAND(vb_packet_decode(packet, bytes, &got, &payload) == VB_REASON_NONE);
		DEMAND(got.op == run->op && got.psn == vb_psn_add(run->psn, i));
		total += got.length;
	}
	DEMAND(total == run->length);
}

static void commit(struct vb_tqp *qp, const struct vb_send_wqe *wqe, const struct vb_run *run)
{
	struct endpoint *e = endpoint_of(qp);

	(void)wqe;
	DEMAND(e->reserved && run->length == e->room_bytes && e->runs_left);
	DEMAND(run->op == e->room_for.op && run->service == e->room_for.service);
	DEMAND(!((run->flags ^ e->room_for.flags) & (VB_RUN_IMM | VB_RUN_INV)));
	DEMAND(!((run->flags ^ e->room_for.flags) & VB_RUN_FIRST) || !vb_op_is_request(run->op));
	e->reserved = false;
	e->runs_left--;
	e->sent = *run;
	e->runs_sent++;
	DEMAND(run->segments == vb_psn_count(run->length, qp->mtu));
	DEMAND(run->psn <= VB_PSN_MASK);
	if (run->op == VB_OP_DROP)
		DEMAND(qp->link_reliable);
	else
		check_packets(run, qp->mtu);
	if (e->watch)
		e->watch(e, run, e->room);
}

static uint64_t now(struct vb_tqp *qp)
{
	static uint64_t ns;

	(void)qp;
	return ns += 100000;
}

static void timer(struct vb_tqp *qp, uint64_t delay_ns)
{
	(void)qp;
	(void)delay_ns;
}

static void send_done(struct vb_tqp *qp, struct vb_send_wqe *wqe, enum ibv_wc_status status,
		      enum vb_reason reason)
{
	struct endpoint *e = endpoint_of(qp);

	DEMAND(e->completed != qp->sq_posted);
	DEMAND(wqe == vb_tqp_wqe(qp, e->completed) && wqe->wr_id == e->completed);
	DEMAND(!status == !reason);
	memset(wqe, 0xee, END_WQE_BYTES);
	e->completed++;
	e->send_status = status;
}

static struct vb_recv_wqe *recv_take(struct vb_tqp *qp)
{
	struct endpoint *e = endpoint_of(qp);

	if (e->recvs_taken == e->recvs_posted)
		return NULL;
	return &e->recv[e->recvs_taken++ % END_RECVS];
}

static void recv_untake(struct vb_tqp *qp, struct vb_recv_wqe *wqe)
{
	struct endpoint *e = endpoint_of(qp);

	DEMAND(e->recvs_taken && wqe == &e->recv[(e->recvs_taken - 1) % END_RECVS]);
	e->recvs_taken--;
}

/*
 * The responder must name the queue before it uses memory or receives. Odd numbers name no queue.
 */
static enum vb_reason srq_enter(struct vb_tqp *qp, uint32_t srqn)
{
	DEMAND(qp->service == VB_SERVICE_XRC && srqn <= VB_SRQN_MASK);
	endpoint_of(qp)->entered = !(srqn & 1);
	return srqn & 1 ? VB_REASON_SRQ_UNKNOWN : VB_REASON_NONE;
}

static void recv_done(struct vb_tqp *qp, const struct vb_recv_done *done)
{
	struct endpoint *e = endpoint_of(qp);

	DEMAND(e->recvs_taken && done->wqe == &e->recv[(e->recvs_taken - 1) % END_RECVS]);
	DEMAND(!done->status == !done->reason);
	if (!done->status && done->opcode == IBV_WC_RECV)
		DEMAND(done->byte_len <= done->wqe->length);
	e->received = *done;
	e->receives++;
}

static void event(struct vb_tqp *qp, enum ibv_event_type type)
{
	(void)qp;
	(void)type;
}

static void state_changed(struct vb_tqp *qp)
{
	struct endpoint *e = endpoint_of(qp);

	DEMAND(qp->state == IBV_QPS_ERR || qp->state == IBV_QPS_SQE);
	if (qp->state == IBV_QPS_ERR)
		e->recvs_taken = e->recvs_posted;
}

static void judged(struct vb_tqp *qp, enum vb_reason reason, const struct vb_run *run)
{
	DEMAND(reason && run);
	endpoint_of(qp)->said = reason;
}

static const struct vb_env environment = {
	.link.reserve = reserve,
	.link.commit = commit,
	PROTOCOL_MEMORY,
	.queue.timer = timer,
	.queue.now = now,
	.queue.send_done = send_done,
	.queue.srq_enter = srq_enter,
	.queue.recv_take = recv_take,
	.queue.recv_untake = recv_untake,
	.queue.recv_done = recv_done,
	.queue.event = event,
	.queue.state_changed = state_changed,
	.queue.drop = judged,
	.queue.explain = judged,
};

static void make_keys(struct endpoint *e)
{
	struct vb_key key = {
		.key = END_KEY,
		.access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			  IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |
			  IBV_ACCESS_FLUSH_GLOBAL | IBV_ACCESS_FLUSH_PERSISTENT,
		.pd = 1,
		.start = END_IOVA,
		.length = END_REGION,
		.base = (uintptr_t)e->region,
		.kind = VB_KEY_REGION,
	};

	e->keys[0] = key;
	key.key = END_KEY_DULL;
	key.access = 0;
	e->keys[1] = key;
}

static void set_attributes(struct vb_tqp *qp, const uint8_t *head)
{
	qp->env = &environment;
	qp->qpn = END_QPN;
	qp->dest_qpn = 0x222;
	qp->access = PROTOCOL_ACCESS | PROTOCOL_FLUSH;
	qp->mtu = 256u << head[HEAD_MTU] % 5;
	protocol_service(qp, (enum vb_service)(head[HEAD_SERVICE] % 64 % 3));
	if (qp->service == VB_SERVICE_RC && head[HEAD_SERVICE] & HEAD_XRC)
		protocol_service(qp, VB_SERVICE_XRC);
	qp->timeout = 14;
	qp->retry_cnt = head[HEAD_RETRY] & 7;
	qp->rnr_retry = head[HEAD_RETRY] >> 3 & 7;
	qp->min_rnr_timer = 12;
	qp->max_rd_atomic = head[HEAD_RD_ATOMIC] % 17;
	qp->max_dest_rd_atomic = head[HEAD_DEST_RD_ATOMIC] % 17;
	qp->link_reliable = head[HEAD_SERVICE] & 128;
	qp->max_run_bytes = (1u + head[HEAD_MTU] / 5 % 16) * qp->mtu;
	qp->window_packets = head[HEAD_WINDOW];
	qp->max_read_bytes = head[HEAD_WINDOW] & 1 ? 4 * qp->mtu : 0;
	qp->read_window_packets = head[HEAD_WINDOW] & 2 ? 8 : 0;
}

static uint32_t psn_at(const uint8_t *p)
{
	return (uint32_t)p[0] << 16 | (uint32_t)p[1] << 8 | p[2];
}

void endpoint_start(struct endpoint *e, const uint8_t *head)
{
	static const uint8_t states[] = {IBV_QPS_RTS, IBV_QPS_RTR, IBV_QPS_INIT};

	memset(e, 0, sizeof(*e));
	e->region = calloc(1, END_REGION);
	e->local = calloc(1, END_LOCAL);
	DEMAND(e->region && e->local);
	e->runs = head[HEAD_STATE] & 128;
	make_keys(e);
	set_attributes(&e->qp, head);
	protocol_send_queue(&e->qp, e->sq, END_SQ, END_WQE_BYTES);
	/* As many as a device gives it, so that the sanitizer sees an access beyond the last. */
	e->res = calloc(vb_resource_slots(e->qp.max_dest_rd_atomic) + 1u, sizeof(*e->res));
	e->rd_end = calloc(vb_resource_slots(e->qp.max_rd_atomic) + 1u, sizeof(*e->rd_end));
	DEMAND(e->res && e->rd_end);
	protocol_rings(&e->qp, e->res, e->rd_end);
	vb_tqp_reset(&e->qp);
	e->qp.state = states[head[HEAD_STATE] % 128 % 3];
	if (e->qp.state != IBV_QPS_INIT)
		protocol_walk(&e->qp, (enum ibv_qp_state)e->qp.state, psn_at(head + HEAD_RQ_PSN),
			      psn_at(head + HEAD_SQ_PSN));
	for (unsigned int i = 0; i < head[HEAD_RECEIVES] % END_RECVS; i++)
		endpoint_post_recv(e, 8192);
}

void endpoint_stop(struct endpoint *e)
{
	if (e->qp.state == IBV_QPS_ERR)
		DEMAND(!vb_tqp_outstanding(&e->qp));
	vb_tqp_to_error(&e->qp);
	DEMAND(e->completed == e->qp.sq_posted && !vb_tqp_outstanding(&e->qp));
	DEMAND(!e->qp.resp.recv);
	free(e->region);
	free(e->res);
	free(e->rd_end);
	free(e->local);
	free(e->room);
}

void endpoint_post_recv(struct endpoint *e, uint32_t length)
{
	struct vb_recv_wqe *w = &e->recv[e->recvs_posted % END_RECVS];
	/* One place less than there is: the receive in use still counts as taken. */
	if (e->qp.state == IBV_QPS_ERR || e->recvs_posted - e->recvs_taken >= END_RECVS - 1)
		return;
	w->wr_id = e->recvs_posted++;
	w->length = length;
	w->num_sge = length == 32 ? 2 : 1; /* two: memory that fails */
}

void endpoint_post_send(struct endpoint *e, uint8_t what)
{
	static const uint8_t opcodes[] = {IBV_WR_SEND,
					  IBV_WR_SEND_WITH_IMM,
					  IBV_WR_RDMA_WRITE,
					  IBV_WR_RDMA_WRITE_WITH_IMM,
					  IBV_WR_RDMA_READ,
					  IBV_WR_ATOMIC_CMP_AND_SWP,
					  IBV_WR_ATOMIC_FETCH_AND_ADD,
					  IBV_WR_SEND_WITH_INV};
	struct vb_tqp *qp = &e->qp;
	const struct vb_operation *op = vb_operation(opcodes[what & 7]);
	struct vb_send_wqe *w;
	uint32_t length = (uint32_t)(what >> 3) * 511;

	if (qp->state < IBV_QPS_RTS || vb_tqp_outstanding(qp) == END_SQ ||
	    !(op->senders & qp->sender))
		return;
	if ((op->kind == VB_REQUEST_READ || op->kind == VB_REQUEST_ATOMIC) && !qp->max_rd_atomic)
		return;
	if (qp->service == VB_SERVICE_UD && length > qp->mtu)
		length = qp->mtu;
	w = vb_tqp_wqe(qp, qp->sq_posted);
	memset(w, 0, sizeof(*w));
	w->wr_id = qp->sq_posted;
	w->opcode = opcodes[what & 7];
	w->length = op->kind == VB_REQUEST_ATOMIC ? 8 : length;
	w->num_sge = w->length ? 1 : 0;
	w->peer_hint = what == 0xfc; /* the longest READ: memory that fails */
	w->remote_addr = 0x4000;
	w->rkey = 0x99;
	w->remote_qpn = 0x333;
	w->fence = what >> 7;
	w->solicited = what >> 6 & 1;
	qp->sq_posted++;
	if (qp->state == IBV_QPS_ERR) /* as the device does */
		vb_tqp_to_error(qp);
}

void endpoint_event(struct endpoint *e, uint8_t what)
{
	struct vb_tqp *qp = &e->qp;

	switch (what % 6) {
	case 0: /* the region is deregistered, or registered again */
		e->keys[0].key ^= END_KEY;
		break;
	case 1:
		if (qp->state == IBV_QPS_RTS)
			qp->state = IBV_QPS_SQD;
		else if (qp->state == IBV_QPS_SQD || qp->state == IBV_QPS_SQE)
			qp->state = IBV_QPS_RTS;
		break;
	case 2:
		qp->access ^= what >> 4 & 14;
		break;
	case 3:
		vb_tqp_peer_dead(qp);
		break;
	case 4:
		vb_tqp_unreachable(qp, VB_REASON_DROP_UNREACHABLE);
		break;
	default:
		vb_tqp_to_error(qp);
		e->recvs_taken = e->recvs_posted;
		break;
	}
}

void endpoint_run(struct endpoint *e, uint32_t runs)
{
	bool waits;

	e->runs_left = runs;
	waits = vb_tqp_run(&e->qp);
	DEMAND(!waits || !e->runs_left);
}
