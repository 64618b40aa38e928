/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A side of the simulation: the environment of its queue pair, its receives, its posting. */
#include <string.h>

#include "support/protocol.h"
#include "world.h"

static struct sim_side *side_of(struct vb_tqp *qp)
{
	return (struct sim_side *)(void *)qp;
}

static uint64_t now(struct vb_tqp *qp)
{
	return ((struct sim_side *)(void *)qp)->world->now;
}

static void set_timer(struct vb_tqp *qp, uint64_t delay_ns)
{
	struct sim_side *s = side_of(qp);

	s->timer_generation++;
	if (delay_ns)
		world_schedule(s->world, SIM_EVENT_TIMER, s->number, delay_ns, s->timer_generation);
}

static void send_done(struct vb_tqp *qp, struct vb_send_wqe *wqe, enum ibv_wc_status status,
		      enum vb_reason reason)
{
	struct sim_side *s = side_of(qp);
	uint64_t id = wqe->wr_id;

	trace_line(s->world, "%c: request %llu: %s (%s)", 'A' + (int)s->number,
		   (unsigned long long)id, status ? vb_reason_name(reason) : "done",
		   status ? vb_reason_text(reason) : "success");
	if (status && !reason)
		world_fault(s->world, "side %u: request %llu fails without a reason", s->number,
			    (unsigned long long)id);
	memset(wqe, 0xee, SIM_WQE_BYTES); /* the entry is the program's again */
	s->completed++;
	s->world->last_done_ns = s->world->now;
	oracle_send_done(&s->world->oracle, s->number, id, status);
}

static struct vb_recv_wqe *recv_take(struct vb_tqp *qp)
{
	struct sim_side *s = side_of(qp);

	return s->recvs_taken < s->recvs_posted ? &s->recv[s->recvs_taken++].wqe : NULL;
}

static void recv_untake(struct vb_tqp *qp, struct vb_recv_wqe *wqe)
{
	struct sim_side *s = side_of(qp);

	if (!s->recvs_taken || wqe != &s->recv[s->recvs_taken - 1].wqe)
		world_fault(s->world, "side %u gives back a receive that it did not take last",
			    s->number);
	else
		s->recvs_taken--;
}

static void recv_done(struct vb_tqp *qp, const struct vb_recv_done *done)
{
	struct sim_side *s = side_of(qp);
	struct oracle_message m = {
		.id = done->wqe->wr_id,
		.status = done->status,
		.opcode = done->opcode,
		.length = done->byte_len,
		.flags = done->wc_flags,
		.imm = done->imm,
		.solicited = done->solicited,
	};

	trace_line(s->world, "%c: receive %llu: %s, %u bytes", 'A' + (int)s->number,
		   (unsigned long long)m.id, m.status ? vb_reason_name(done->reason) : "done",
		   m.length);
	if (m.status && !done->reason)
		world_fault(s->world, "side %u: receive %llu fails without a reason", s->number,
			    (unsigned long long)m.id);
	oracle_recv_done(&s->world->oracle, s->number, &m);
}

static void flush_receives(struct sim_side *s)
{
	while (s->recvs_taken < s->recvs_posted) {
		struct oracle_message m = {.id = s->recv[s->recvs_taken++].id,
					   .status = IBV_WC_WR_FLUSH_ERR};

		oracle_recv_done(&s->world->oracle, s->number, &m);
	}
}

static void raise_event(struct vb_tqp *qp, enum ibv_event_type type)
{
	struct sim_side *s = side_of(qp);

	trace_line(s->world, "%c: event %d", 'A' + (int)s->number, type);
	oracle_event(&s->world->oracle, s->number, type);
}

static void state_changed(struct vb_tqp *qp)
{
	struct sim_side *s = side_of(qp);

	trace_line(s->world, "%c: state %d", 'A' + (int)s->number, qp->state);
	if (qp->state == IBV_QPS_SQE)
		return;
	oracle_stopped(&s->world->oracle, s->number, false);
	flush_receives(s);
}

static void drop(struct vb_tqp *qp, enum vb_reason reason, const struct vb_run *run)
{
	struct sim_side *s = side_of(qp);

	trace_line(s->world, "%c: drops op %u psn %06x: %s", 'A' + (int)s->number, run->op,
		   run->psn, vb_reason_name(reason));
}

static void explain(struct vb_tqp *qp, enum vb_reason reason, const struct vb_run *run)
{
	struct sim_side *s = side_of(qp);

	trace_line(s->world, "%c: refuses op %u psn %06x: %s", 'A' + (int)s->number, run->op,
		   run->psn, vb_reason_name(reason));
}

#define ENVIRONMENT                                                                                \
	PROTOCOL_MEMORY, .memory.bind = memory_bind, .queue.srq_enter = memory_srq_enter,          \
			 .link.reserve = link_reserve, .link.commit = link_commit,                 \
			 .queue.timer = set_timer, .queue.now = now, .queue.send_done = send_done, \
			 .queue.recv_take = recv_take, .queue.recv_untake = recv_untake,           \
			 .queue.recv_done = recv_done, .queue.event = raise_event,                 \
			 .queue.state_changed = state_changed, .queue.drop = drop,                 \
			 .queue.explain = explain

const struct vb_env sim_env = {ENVIRONMENT};
const struct vb_env sim_env_direct = {ENVIRONMENT, .link.direct = memory_direct,
				      .link.direct_list = memory_direct_list,
				      .link.direct_waits = memory_direct_waits};

static void make_keys(struct sim_side *s)
{
	struct vb_key all = {
		.key = SIM_KEY_ALL,
		.access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			  IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |
			  IBV_ACCESS_FLUSH_GLOBAL | IBV_ACCESS_FLUSH_PERSISTENT,
		.pd = 1,
		.start = SIM_IOVA,
		.length = SIM_TARGET_BYTES + SIM_ATOMIC_BYTES,
		.base = SIM_TARGET_AT,
		.kind = VB_KEY_REGION,
	};

	s->keys[0] = all;
	all.key = SIM_KEY_NO_RIGHTS;
	all.access = IBV_ACCESS_LOCAL_WRITE;
	s->keys[1] = all;
	memset(&s->keys[2], 0, sizeof(s->keys[2]));
	s->keys[3] = s->keys[0];
	s->keys[3].key = SIM_KEY_SECOND;
	s->keys[3].pd = 2;
}

static void set_attributes(struct sim_side *s)
{
	const struct sim_config *c = &s->world->config;
	struct vb_tqp *qp = &s->qp;

	memset(qp, 0, offsetof(struct vb_tqp, resp));
	memset(&qp->resp, 0, offsetof(struct vb_responder, res));
	/* Resources from before a reset must not matter. */
	memset(s->res, 0xdd, sizeof(s->res));
	qp->env = c->direct ? &sim_env_direct : &sim_env;
	qp->qpn = 0x100 + s->number;
	qp->dest_qpn = 0x100 + s->world->sides - 1 - s->number;
	protocol_service(qp, c->xrc ? VB_SERVICE_XRC : (enum vb_service)c->service);
	qp->access = PROTOCOL_ACCESS | PROTOCOL_FLUSH;
	qp->mtu = c->mtu;
	qp->timeout = c->timeout;
	qp->retry_cnt = c->retry_cnt;
	qp->rnr_retry = c->rnr_retry;
	qp->min_rnr_timer = c->min_rnr_timer;
	qp->max_rd_atomic = c->max_rd_atomic;
	qp->max_dest_rd_atomic = c->max_dest_rd_atomic;
	protocol_rings(qp, s->res, s->rd_end);
	qp->link_reliable = c->reliable;
	qp->acks_ride = c->acks_ride;
	qp->max_run_bytes = c->run_packets * c->mtu;
	qp->window_packets = c->window;
	qp->max_read_bytes = c->read_packets * c->mtu;
	qp->read_window_packets = c->read_window;
	protocol_send_queue(qp, s->sq, SIM_SQ, SIM_WQE_BYTES);
}

void endpoint_start(struct world *w, unsigned int number)
{
	struct sim_side *s = &w->side[number];
	uint8_t *memory = s->memory;

	memset(&s->completed, 0,
	       offsetof(struct sim_side, reserved) - offsetof(struct sim_side, completed));
	s->plans = 0;
	s->world = w;
	s->number = number;
	s->memory = memory;
	set_attributes(s);
	make_keys(s);
	vb_tqp_reset(&s->qp);
	s->qp.state = IBV_QPS_INIT;
}

void endpoint_ready(struct sim_side *s)
{
	const struct sim_config *c = &s->world->config;

	unsigned int sender = s->world->sides - 1 - s->number;
	uint32_t off = c->fault == SIM_FAULT_PSN && sender == c->fault_side ? c->psn_off : 0;

	protocol_walk(&s->qp, IBV_QPS_RTS, c->psn[sender] + off, c->psn[s->number]);
}

/* Posts the next planned request, if the queue has room for it. */
void endpoint_post(struct sim_side *s)
{
	unsigned int n = s->qp.sq_posted;
	struct vb_send_wqe *w;

	if (n == s->plans || s->qp.state < IBV_QPS_RTS || vb_tqp_outstanding(&s->qp) == SIM_SQ)
		return;
	w = vb_tqp_wqe(&s->qp, n);
	*w = s->plan[n];
	if (w->is_inline) {
		char data[SIM_SGE * sizeof(struct ibv_sge)];
		uint32_t at = 0;

		for (uint32_t i = 0; i < w->num_sge; i++) {
			memcpy(data + at, s->memory + s->plan_sge[n][i].addr,
			       s->plan_sge[n][i].length);
			at += s->plan_sge[n][i].length;
		}
		memcpy(vb_send_wqe_inline(w), data, at);
		w->num_sge = 0;
	} else {
		memcpy(vb_send_wqe_sge(w), s->plan_sge[n], sizeof(s->plan_sge[n]));
	}
	oracle_posted(&s->world->oracle, s->number);
	s->qp.sq_posted++;
}

static void split_recv(struct sim_side *s, struct sim_recv *r, struct oracle_piece *piece,
		       uint32_t length)
{
	struct world *w = s->world;
	unsigned int pieces = length ? 1 + sim_below(w, SIM_SGE) : sim_below(w, 2);

	r->wqe.num_sge = pieces;
	for (unsigned int i = 0; i < pieces; i++) {
		uint32_t part = i + 1 == pieces ? length : sim_below(w, length + 1);

		piece[i].at = SIM_RECV_AT + s->recv_used;
		piece[i].length = part;
		r->sge[i] =
			(struct ibv_sge){.addr = piece[i].at, .length = part, .lkey = SIM_KEY_ALL};
		s->recv_used += part + sim_below(w, 9);
		length -= part;
	}
}

void endpoint_post_recv(struct sim_side *s, unsigned int count)
{
	const struct sim_config *c = &s->world->config;

	for (; count && s->recvs_posted < s->recvs_wanted; count--) {
		struct sim_recv *r = &s->recv[s->recvs_posted];
		struct oracle_piece piece[ORACLE_PIECES];
		uint32_t length = s->recv_length[s->recvs_posted] & 0x7fffffff;

		memset(r, 0, sizeof(*r));
		r->id = s->recvs_posted;
		r->wqe.wr_id = r->id;
		r->wqe.length = length;
		split_recv(s, r, piece, length);
		/* The high bit of the length asks for a receive with a bad key. */
		if (s->recv_length[s->recvs_posted] != length) {
			for (unsigned int i = 0; i < SIM_SGE; i++)
				r->sge[i].lkey = SIM_KEY_WRONG;
		}
		oracle_recv_posted(&s->world->oracle, s->number, piece, r->wqe.num_sge);
		s->recvs_posted++;
		if (s->qp.state == IBV_QPS_ERR)
			flush_receives(s);
	}
	if (s->recv_used > SIM_RECV_BYTES)
		world_fault(s->world, "receive memory used up (service %u)", c->service);
}
