/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Queue pairs: create and destroy, what is published of them, events, entering the error state. */
#include "qp/qp.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/failure.h"
#include "base/reason.h"
#include "object/context.h"
#include "engine/cq.h"
#include "engine/engine_channel.h"
#include "process/limits.h"
#include "memory/mw.h"
#include "object/pd.h"
#include "device/port.h"
#include "engine/engines.h"
#include "process/process.h"
#include "qp/comp_cntr.h"
#include "qp/parts.h"
#include "qp/link.h"
#include "qp/qp_create.h"
#include "engine/recv_queue.h"
#include "engine/schedule.h"
#include "engine/send_wqe.h"
#include "engine/srq.h"
#include "engine/td_engine.h"
#include "object/td.h"
#include "transport/qp_state.h"

static uint8_t service_of(enum ibv_qp_type type)
{
	switch (type) {
	case IBV_QPT_UC:
		return VB_SERVICE_UC;
	case IBV_QPT_UD:
	case IBV_QPT_RAW_PACKET:
		return VB_SERVICE_UD;
	case IBV_QPT_XRC_SEND:
	case IBV_QPT_XRC_RECV:
		return VB_SERVICE_XRC;
	default:
		return VB_SERVICE_RC;
	}
}

static uint32_t power_of_two(uint32_t n)
{
	uint32_t size = 1;

	while (size < n)
		size <<= 1;
	return size;
}

static uint32_t smaller(size_t a, uint32_t b)
{
	return a < b ? (uint32_t)a : b;
}

/*
 * The attributes report the room that an entry has, not what was asked for (ibv_create_qp(3)): as
 * adapters do, and programs have come to send inline without having asked. Where no entry can be
 * posted there is no room.
 */
static void room_grant(struct vb_qp *qp)
{
	struct ibv_qp_cap *cap = &qp->attrs->cap;
	uint32_t room = qp->t.sq_stride - (uint32_t)sizeof(struct vb_send_wqe);

	if (cap->max_send_wr) {
		cap->max_inline_data = smaller(room, VB_MAX_INLINE);
		cap->max_send_sge = smaller(room / sizeof(struct ibv_sge), VB_MAX_SGE);
	}
	qp->max_inline = cap->max_inline_data;
	qp->max_sge = cap->max_send_sge;
}

static int send_queue_alloc(struct vb_qp *qp, struct ibv_pd *pd)
{
	int err;
	size_t tail = qp->attrs->cap.max_send_sge * sizeof(struct ibv_sge);

	if (tail < qp->attrs->cap.max_inline_data)
		tail = qp->attrs->cap.max_inline_data;
	if (tail < VB_ATOMIC_WRITE_BYTES)
		tail = VB_ATOMIC_WRITE_BYTES;
	if (tail < qp->kind->own_sge * sizeof(struct ibv_sge))
		tail = qp->kind->own_sge * sizeof(struct ibv_sge);
	qp->t.sq_stride = (uint16_t)((sizeof(struct vb_send_wqe) + tail + 63) & ~(size_t)63);
	room_grant(qp);
	qp->t.sq_size = power_of_two(qp->attrs->cap.max_send_wr + qp->kind->own_requests);
	qp->sq_max = qp->attrs->cap.max_send_wr;
	err = vb_queue_memory_alloc(&qp->sq_memory, pd, (size_t)qp->t.sq_size * qp->t.sq_stride,
				    VERBATIM_RESOURCE_SEND_QUEUE);
	qp->t.sq = qp->sq_memory.ptr;
	return err;
}

static int recv_queue_alloc(struct vb_qp *qp, struct ibv_pd *pd)
{
	struct ibv_qp_cap *cap = &qp->attrs->cap;
	int err;

	if (qp->srq || qp->t.sends_only)
		cap->max_recv_wr = cap->max_recv_sge = 0;
	err = vb_recv_queue_init(&qp->rq, pd, cap->max_recv_wr, cap->max_recv_sge);
	cap->max_recv_sge = qp->rq.max_sge;
	return err;
}

static void send_queue_free(struct vb_qp *qp)
{
	vb_queue_memory_free(&qp->sq_memory);
	qp->t.sq = NULL;
}

/*
 * On a thread domain the queue pairs share an engine, and their locks lean towards the thread that
 * posts.
 */
static int engine_get(struct vb_qp *qp, struct ibv_pd *pd)
{
	struct vb_td *td = vb_pd_of(pd)->td;
	int err;

	if (!td)
		return vb_cq_engine(qp->scq, &qp->engine);
	err = vb_td_engine(td, &qp->engine);
	if (!err)
		err = vb_bias_allow(&qp->wr_lock);
	if (!err)
		err = vb_bias_allow(&qp->rq.lock);
	return err;
}

void vb_qp_protocol_init(struct vb_qp *qp, enum ibv_qp_type type)
{
	qp->t.env = qp->kind->env;
	qp->t.service = service_of(type);
	qp->t.sender = vb_operation_sender(type);
	qp->t.sends_only = type == IBV_QPT_XRC_SEND;
	qp->t.state = IBV_QPS_RESET;
	vb_qp_link_none(qp);
	vb_qp_link_tune(qp);
	qp->t.mtu = VB_MTU_MOST;
	vb_tqp_reset(&qp->t);
}

static int parts_alloc(struct vb_qp *qp, const struct ibv_qp_init_attr_ex *attr)
{
	int err = vb_qp_attrs_alloc(qp);

	if (!err)
		err = vb_qp_events_alloc(qp);
	/* Without them ibv_qp_to_qp_ex(3) returns NULL. */
	if (!err && (attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) && attr->send_ops_flags)
		err = vb_qp_ex_init(qp);
	if (err)
		return err;
	qp->attrs->cap = attr->cap;
	return 0;
}

/* Queues, number and engine. resources_put() undoes this in reverse. */
static int resources_get(struct vb_qp *qp, struct ibv_context *ctx,
			 const struct ibv_qp_init_attr_ex *attr)
{
	int err = parts_alloc(qp, attr);

	if (!err)
		err = send_queue_alloc(qp, attr->pd);
	if (!err)
		err = recv_queue_alloc(qp, attr->pd);
	if (!err)
		err = vb_process_start_progress();
	if (!err && qp->kind->open)
		err = qp->kind->open(qp, ctx, attr);
	if (!err)
		err = engine_get(qp, attr->pd);
	if (!err)
		err = vb_node_qpn_alloc(qp->engine->node, &qp->t.qpn, &qp->pub);
	if (err)
		return err;
	vb_context_name_all();
	err = vb_context_add(ctx, VB_HANDLE_QP, qp, &qp->u.qp.handle);
	if (!err)
		err = vb_cq_attach(qp->scq, qp->engine);
	if (err)
		return err;
	err = vb_cq_attach(qp->rcq, qp->engine);
	if (!err && qp->kind->attach) {
		err = qp->kind->attach(qp);
		if (err)
			vb_cq_detach(qp->rcq, qp->engine);
	}
	if (err)
		vb_cq_detach(qp->scq, qp->engine);
	return err;
}

static void resources_put(struct vb_qp *qp)
{
	if (qp->pub)
		vb_node_qpn_free(qp->engine->node, qp->t.qpn);
	vb_comp_cntr_release(qp);
	if (qp->kind->close)
		qp->kind->close(qp);
	vb_recv_queue_fini(&qp->rq);
	send_queue_free(qp);
	vb_bias_forget(&qp->wr_lock);
	free(qp->t.resp.res);
	vb_qp_parts_free(qp);
	free(qp->t.req.rd_end);
	free(qp);
}

static void public_init(struct vb_qp *qp, struct ibv_context *ctx,
			const struct ibv_qp_init_attr_ex *attr)
{
	struct ibv_qp *q = &qp->u.qp;

	q->context = ctx;
	q->qp_context = attr->qp_context;
	q->pd = attr->pd;
	q->send_cq = attr->send_cq;
	q->recv_cq = attr->recv_cq;
	q->srq = attr->srq;
	q->qp_num = qp->t.qpn;
	q->state = IBV_QPS_RESET;
	q->qp_type = attr->qp_type;
}

/* A datagram is one packet: its limit is the MTU of the port (IBA 9.8.3). */
static void datagram_limit(struct vb_qp *qp, struct ibv_context *ctx)
{
	struct ibv_port_attr port;

	if (qp->t.service == VB_SERVICE_UD && !qp->kind->frames &&
	    !vb_port_query(vb_context_of(ctx)->device, VB_PORT, &port))
		qp->t.mtu = 128u << port.active_mtu;
}

static struct vb_qp *qp_alloc(const struct vb_qp_kind *kind, const struct ibv_qp_init_attr_ex *attr)
{
	struct vb_qp *qp;

	if (posix_memalign((void **)&qp, 64, sizeof(*qp)))
		return NULL;
	memset(qp, 0, sizeof(*qp));
	vb_lock_place(&qp->wr_lock, VB_ORDER_POST);
	qp->kind = kind;
	vb_qp_protocol_init(qp, attr->qp_type);
	qp->scq = vb_cq_of(attr->send_cq);
	qp->rcq = qp->t.sends_only ? qp->scq : vb_cq_of(attr->recv_cq);
	qp->srq = attr->srq ? vb_srq_of(attr->srq) : NULL;
	qp->pd_id = vb_pd_of(attr->pd)->id;
	qp->sq_sig_all = attr->sq_sig_all;
	qp->block_self = (attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) &&
			 (attr->create_flags & IBV_QP_CREATE_BLOCK_SELF_MCAST_LB);
	return qp;
}

int vb_qp_create(struct ibv_context *ctx, const struct vb_qp_kind *kind,
		 struct ibv_qp_init_attr_ex *attr, struct ibv_qp **out)
{
	int err = vb_qp_create_check(ctx, kind, attr);
	struct vb_qp *qp;

	if (err)
		return err;
	if (kind->create)
		return kind->create(ctx, attr, out);
	err = vb_pd_get(ctx, attr->pd);
	if (err)
		return err;
	if (attr->srq) {
		err = vb_srq_get(ctx, attr->srq, attr->qp_type);
		if (err)
			goto put_pd;
		if (vb_srq_of(attr->srq)->kind->qp)
			kind = vb_srq_of(attr->srq)->kind->qp;
	}
	err = vb_object_count(&vb_qp_type, VB_HANDLE_QP);
	if (err)
		goto put_srq;
	qp = qp_alloc(kind, attr);
	err = qp ? resources_get(qp, ctx, attr)
		 : vb_refuse(ENOMEM, VB_REASON_NO_MEMORY, "create_qp");
	if (err)
		goto put_qp;
	public_init(qp, ctx, attr);
	datagram_limit(qp, ctx);
	if (!kind->frames)
		vb_qp_table_add(qp);
	vb_engine_take(qp->engine);
	vb_engine_add_qp(qp->engine, qp);
	vb_qp_publish(qp);
	vb_lock_release(&qp->engine->lock);
	attr->cap = qp->attrs->cap;
	*out = &qp->u.qp;
	vb_failures_past();
	return 0;
put_qp:
	if (qp) {
		vb_handle_remove(&vb_context_of(ctx)->handles[VB_HANDLE_QP], qp->u.qp.handle, qp);
		resources_put(qp);
	}
	vb_object_uncount(VB_HANDLE_QP);
put_srq:
	if (attr->srq)
		vb_srq_put(vb_srq_of(attr->srq));
put_pd:
	vb_pd_put(attr->pd);
	return err;
}

/*
 * Direct access bypasses the responder. It is allowed only where the responder would accept every
 * request, and has nothing to add.
 */
static bool direct_possible(const struct vb_qp *qp)
{
	/*
	 * UD has no one-sided requests. Only the responder knows whose memory an XRC request is
	 * for. One-sided requests that are counted must be counted by the responder.
	 */
	return qp->t.service != VB_SERVICE_UD && qp->t.service != VB_SERVICE_XRC && !qp->t.tells;
}

/* In RTR the responder still owes COMM_EST for the first packet. */
static bool direct_opens(const struct vb_qp *qp)
{
	return direct_possible(qp) && qp->t.state == IBV_QPS_RTR && !qp->t.resp.established;
}

static bool direct_allowed(const struct vb_qp *qp)
{
	return direct_possible(qp) && !direct_opens(qp) &&
	       (qp->t.state == IBV_QPS_RTR || qp->t.state == IBV_QPS_RTS ||
		qp->t.state == IBV_QPS_SQD);
}

void vb_qp_ordinary_publish(struct vb_qp *qp)
{
	struct vb_page_qp *p = qp->pub;
	uint32_t access = qp->t.access | (qp->t.max_dest_rd_atomic ? VB_PAGE_ANSWERS : 0);
	uint32_t opens = direct_opens(qp) ? VB_PAGE_OPENS : 0;
	uint32_t opened = __atomic_load_n(&p->access, __ATOMIC_RELAXED) & VB_PAGE_OPENS;

	atomic_store(&qp->state, qp->t.state);
	/*
	 * Closed while the entry changes. An initiator that saw it open has set a mark, which
	 * revocation waits for.
	 */
	__atomic_store_n(&p->direct, 0, __ATOMIC_SEQ_CST);
	__atomic_store_n(&p->state, qp->t.state, __ATOMIC_RELAXED);
	__atomic_store_n(&p->service, qp->t.service, __ATOMIC_RELAXED);
	__atomic_store_n(&p->access, access | opens | opened, __ATOMIC_RELAXED);
	__atomic_store_n(&p->pd, qp->pd_id, __ATOMIC_RELAXED);
	__atomic_store_n(&p->dest_qpn, qp->t.dest_qpn, __ATOMIC_RELAXED);
	__atomic_store_n(&p->engine, qp->engine->index, __ATOMIC_RELAXED);
	__atomic_store_n(&p->first_psn, qp->t.resp.first_psn, __ATOMIC_RELAXED);
	__atomic_store_n(&p->qpn, qp->t.qpn, __ATOMIC_RELEASE);
	__atomic_fetch_add(&p->generation, 1, __ATOMIC_RELAXED);
	__atomic_store_n(&p->direct, direct_allowed(qp), __ATOMIC_SEQ_CST);
	/* At no time does the entry say that it is closed for good, while it is being opened. */
	if (opened && !opens)
		__atomic_store_n(&p->access, access, __ATOMIC_RELEASE);
}

void vb_qp_ordinary_event(struct vb_qp *qp, enum ibv_event_type type)
{
	vb_qp_raise(qp, type);
}

void vb_qp_stop(struct vb_qp *qp)
{
	__atomic_store_n(&qp->pub->direct, 0, __ATOMIC_SEQ_CST);
	__atomic_store_n(&qp->pub->qpn, 0, __ATOMIC_SEQ_CST);
	__atomic_fetch_add(&qp->pub->generation, 1, __ATOMIC_SEQ_CST);
	vb_qp_table_remove(qp);
	vb_mw_release(&qp->windows);
	vb_tqp_reset(&qp->t);
	vb_qp_queues_clear(qp);
	vb_engine_remove_qp(qp->engine, qp);
	vb_qp_links_release(qp);
}

int vb_qp_retire(struct ibv_qp *ibqp, struct vb_events_got *got)
{
	struct vb_qp *qp = vb_qp_of(ibqp);
	int err = vb_context_check(ibqp->context, VB_HANDLE_QP, ibqp->handle, qp, "qp");

	return err ? err : qp->kind->retire(qp, got);
}

int vb_qp_ordinary_retire(struct vb_qp *qp, struct vb_events_got *got)
{
	int err;

	if (qp->mcast_groups)
		return vb_refuse(EBUSY, VB_REASON_BUSY,
				 "destroy_qp 0x%x: attached to %u multicast groups", qp->t.qpn,
				 qp->mcast_groups);
	err = vb_context_remove(qp->u.qp.context, VB_HANDLE_QP, qp->u.qp.handle, qp);
	if (err)
		return err;
	vb_engine_take(qp->engine);
	vb_qp_stop(qp);
	vb_lock_release(&qp->engine->lock);
	vb_process_quiesce(qp->t.qpn, 0);
	vb_qp_events_end(qp, got);
	return 0;
}

void vb_qp_free(struct ibv_qp *ibqp)
{
	struct vb_qp *qp = vb_qp_of(ibqp);

	qp->kind->free(qp);
}

void vb_qp_ordinary_free(struct vb_qp *qp)
{
	struct ibv_pd *pd = qp->u.qp.pd;

	if (qp->kind->detach)
		qp->kind->detach(qp);
	vb_cq_detach(qp->rcq, qp->engine);
	vb_cq_detach(qp->scq, qp->engine);
	if (qp->srq)
		vb_srq_put(qp->srq);
	resources_put(qp); /* calls the parent domain's free() */
	vb_pd_put(pd);
	vb_object_uncount(VB_HANDLE_QP);
}

void vb_qp_ordinary_clear(struct vb_qp *qp)
{
	vb_cq_remove(qp->scq, &qp->completions);
	if (qp->rcq != qp->scq)
		vb_cq_remove(qp->rcq, &qp->completions);
}

void vb_qp_queues_clear(struct vb_qp *qp)
{
	vb_recv_queue_clear(&qp->rq);
	qp->kind->clear(qp);
	qp->sq_done = 0;
	vb_tqp_posted_set(&qp->t, 0);
	atomic_store(&qp->completions.released, 0);
	qp->last_wqe_raised = false;
	qp->psn_moved = false;
	qp->overrun = qp->peer_lost = qp->draining = false;
	qp->unreachable = 0;
	vb_engine_set_channel(qp, NULL);
	qp->peer_qp = NULL;
	qp->seeking = false;
}

void vb_qp_ordinary_receive(struct vb_qp *qp, const struct vb_run *run, const void *payload)
{
	vb_tqp_receive(&qp->t, run, payload);
}

const struct vb_qp_kind vb_qp_ordinary = {
	.plain = true,
	.env = &vb_qp_env,
	.psns = vb_qp_ordinary_psns,
	.retire = vb_qp_ordinary_retire,
	.free = vb_qp_ordinary_free,
	.publish = vb_qp_ordinary_publish,
	.event = vb_qp_ordinary_event,
	.clear = vb_qp_ordinary_clear,
	.receive = vb_qp_ordinary_receive,
};

int vb_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode op, uint32_t flags)
{
	(void)qp;
	(void)op;
	(void)flags;
	/*
	 * Only the last aligned 8 bytes are promised to be stored last; neither capability
	 * expresses that.
	 */
	return 0;
}

static void end(struct vb_context *c, void *object, uint32_t handle)
{
	const struct vb_qp *qp = object;
	struct vb_events_got got;

	if (qp->mcast_leave)
		qp->mcast_leave(object);
	if (vb_qp_retire(object, &got))
		vb_context_remove(&c->vctx.context, VB_HANDLE_QP, handle, object);
}

const struct vb_object_type vb_qp_type = {
	.name = "qp",
	.limit = VB_MAX_QP,
	.process_wide = true,
	.end = end,
	.forked = vb_qp_forked,
};
