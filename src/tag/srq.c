/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Tag-matching shared receive queues: list operations, messages into tagged buffers, rendezvous. */
#include "tag/srq.h"

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/reason.h"
#include "object/context.h"
#include "engine/cq.h"
#include "qp/comp_cntr.h"
#include "qp/env.h"
#include "process/limits.h"
#include "memory/memory.h"
#include "qp/qp.h"
#include "engine/schedule.h"
#include "engine/send_wqe.h"
#include "engine/srq.h"
#include "tag/match.h"

struct vb_tm {
	struct vb_tag_list list; /* under the srq's lock */
};

static struct vb_tm *tm_of(const struct vb_srq *s)
{
	return s->own;
}

/*
 * Requests of the device's own that one queue pair may have unfinished: a READ and a FIN for each
 * rendezvous.
 */
#define OWN_REQUESTS 16u

/* What queue pairs of such a queue have besides the parts of others (vb_qp.own). */
struct tagged {
	struct vb_tag_entry *first, *last; /* rendezvous to be read */
	uint32_t busy;                     /* the device's own requests that are not finished */
	uint32_t opcode;                   /* opcode of the completion of an ordinary receive */
};

static struct tagged *tagged_of(const struct vb_qp *qp)
{
	return qp->own;
}

/* vb_send_wqe.owner of the device's own requests. */
#define OWNER_FIN 1u /* a larger value: a READ, the entry's address */

static int check_cap(const struct ibv_srq_init_attr_ex *attr)
{
	const struct ibv_tm_cap *cap = &attr->tm_cap;

	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_TM) ||
	    !(attr->comp_mask & IBV_SRQ_INIT_ATTR_CQ) || !attr->cq)
		return vb_refuse(EINVAL, VB_REASON_ARG,
				 "create_srq: a tag-matching queue needs cq and tm_cap");
	if (!cap->max_num_tags || cap->max_num_tags > VB_MAX_TAGS)
		return vb_refuse(EINVAL, VB_REASON_ARG_LIMIT,
				 "create_srq: max_num_tags %u is not in 1..%u", cap->max_num_tags,
				 VB_MAX_TAGS);
	if (cap->max_ops > VB_MAX_TAG_OPS)
		return vb_refuse(EINVAL, VB_REASON_ARG_LIMIT, "create_srq: max_ops %u exceeds %u",
				 cap->max_ops, VB_MAX_TAG_OPS);
	return 0;
}

static int list_open(struct vb_srq *s, struct ibv_context *ctx,
		     const struct ibv_srq_init_attr_ex *attr)
{
	int err = check_cap(attr);
	struct vb_tm *tm;

	if (!err)
		err = vb_context_check(ctx, VB_HANDLE_CQ, attr->cq->handle, attr->cq, "cq");
	if (err)
		return err;
	tm = calloc(1, sizeof(*tm));
	if (!tm || vb_tag_list_init(&tm->list, attr->tm_cap.max_num_tags, VB_MAX_TAG_SGE)) {
		free(tm);
		return vb_refuse(ENOMEM, VB_REASON_NO_MEMORY, "create_srq: matching list");
	}
	s->own = tm;
	s->cq = vb_cq_of(attr->cq);
	vb_cq_hold(s->cq);
	return 0;
}

static void list_close(struct vb_srq *s)
{
	vb_cq_unhold(s->cq);
	vb_tag_list_fini(&tm_of(s)->list);
	free(s->own);
}

/* The completion of a list operation. */
static void complete_op(struct vb_srq *s, const struct ibv_ops_wr *wr, enum ibv_wc_opcode opcode,
			enum ibv_wc_status status, bool agrees)
{
	struct vb_cqe cqe;

	if (status == IBV_WC_SUCCESS && !(wr->flags & IBV_OPS_SIGNALED))
		return;
	memset(&cqe, 0, sizeof(cqe));
	cqe.wc.wr_id = wr->wr_id;
	cqe.wc.status = status;
	cqe.wc.opcode = opcode;
	cqe.wc.wc_flags = agrees ? 0 : IBV_WC_TM_SYNC_REQ;
	if (status != IBV_WC_SUCCESS) {
		cqe.solicited = 1;
		cqe.wc.vendor_err = VB_REASON_TAG_GONE;
		vb_note_failed(status, VB_REASON_TAG_GONE,
			       "post_srq_ops: wr_id 0x%llx: handle 0x%x: %s",
			       (unsigned long long)wr->wr_id, wr->tm.handle,
			       vb_reason_text(VB_REASON_TAG_GONE));
	}
	vb_cq_push(s->cq, &cqe);
}

static int add_tag(struct vb_srq *s, struct ibv_ops_wr *wr)
{
	struct vb_tag_list *list = &tm_of(s)->list;

	if (wr->tm.add.num_sge < 0 || (uint32_t)wr->tm.add.num_sge > list->max_sge)
		return vb_refuse(EINVAL, VB_REASON_SGE_COUNT,
				 "post_srq_ops: %d elements, a tagged buffer has at most %u",
				 wr->tm.add.num_sge, list->max_sge);
	if (!vb_tag_list_add(list, wr, &wr->tm.handle))
		return vb_refuse(ENOMEM, VB_REASON_QUEUE_FULL,
				 "post_srq_ops: %u tagged buffers are listed or in use",
				 list->size);
	complete_op(s, wr, IBV_WC_TM_ADD, IBV_WC_SUCCESS, vb_tag_list_agrees(list));
	return 0;
}

static int remove_tag(struct vb_srq *s, const struct ibv_ops_wr *wr)
{
	struct vb_tag_list *list = &tm_of(s)->list;

	if (!vb_tag_list_knows(list, wr->tm.handle))
		return vb_refuse(EINVAL, VB_REASON_ARG, "post_srq_ops: no such handle 0x%x",
				 wr->tm.handle);
	bool there = vb_tag_list_remove(list, wr->tm.handle);

	complete_op(s, wr, IBV_WC_TM_DEL, there ? IBV_WC_SUCCESS : IBV_WC_TM_ERR,
		    vb_tag_list_agrees(list));
	return 0;
}

/* Under the lock. */
static int one_op(struct vb_srq *s, struct ibv_ops_wr *wr)
{
	struct vb_tag_list *list = &tm_of(s)->list;
	int err;

	if (wr->flags & ~(IBV_OPS_SIGNALED | IBV_OPS_TM_SYNC))
		return vb_refuse(EINVAL, VB_REASON_ARG_MASK, "post_srq_ops: flags 0x%x",
				 (unsigned int)wr->flags);
	if ((unsigned int)wr->opcode > IBV_WR_TAG_SYNC)
		return vb_refuse(EINVAL, VB_REASON_OPCODE, "post_srq_ops: no such opcode %d",
				 (int)wr->opcode);
	if (wr->flags & IBV_OPS_TM_SYNC)
		vb_tag_list_report(list, wr->tm.unexpected_cnt);
	switch (wr->opcode) {
	case IBV_WR_TAG_ADD:
		err = add_tag(s, wr);
		break;
	case IBV_WR_TAG_DEL:
		err = remove_tag(s, wr);
		break;
	default:
		err = 0;
		complete_op(s, wr, IBV_WC_TM_SYNC, IBV_WC_SUCCESS, vb_tag_list_agrees(list));
		break;
	}
	return err;
}

int vb_tm_post_ops(struct ibv_srq *srq, struct ibv_ops_wr *wr, struct ibv_ops_wr **bad)
{
	struct vb_srq *s = vb_srq_of(srq);
	int err = vb_context_check(srq->context, VB_HANDLE_SRQ, srq->handle, s, "srq");

	if (!err && s->kind != &vb_tm_srq)
		err = vb_refuse(EINVAL, VB_REASON_ARG,
				"post_srq_ops: the queue is not a tag-matching one");
	if (err) {
		*bad = wr;
		return err;
	}
	vb_lock_take(&s->lock);
	for (; wr; wr = wr->next) {
		err = one_op(s, wr);
		if (err) {
			*bad = wr;
			break;
		}
	}
	vb_lock_release(&s->lock);
	return err;
}

static struct vb_tag_list *list_of(const struct vb_qp *qp)
{
	return &tm_of(qp->srq)->list;
}

static struct vb_tag_entry *entry_of(const struct vb_qp *qp, const struct vb_recv_wqe *wqe)
{
	return vb_tag_entry_of(list_of(qp), wqe);
}

/*
 * Whether the run can be a rendezvous request: in one packet, with both headers, not longer than
 * max_rndv_hdr_size.
 */
static bool is_request(const struct vb_run *run)
{
	return (run->flags & VB_RUN_LAST) && run->length <= VB_TM_RNDV_MAX &&
	       run->length >= VB_TM_HEADER + sizeof(struct ibv_rvh);
}

static struct vb_recv_wqe *entry_take(struct vb_qp *qp, struct vb_tag_entry *e,
				      const struct ibv_tmh *tmh)
{
	e->qp = qp;
	e->app_ctx = tmh->app_ctx;
	e->rndv = tmh->opcode == IBV_TMH_RNDV;
	e->rndv_next = NULL;
	/* The protocol may also bring the header, which is not copied into the buffer. */
	e->wqe.length = e->rndv ? VB_TM_RNDV_MAX : e->space + VB_TM_HEADER;
	return &e->wqe;
}

/* A message begins: chooses its receive. */
static struct vb_recv_wqe *recv_match(struct vb_tqp *t, const struct vb_run *run,
				      const void *payload)
{
	struct vb_qp *qp = vb_qp_of_tqp(t);
	struct vb_tag_list *list = list_of(qp);
	struct vb_recv_wqe *wqe;
	struct ibv_tmh tmh;
	bool tagged;

	if (run->length < VB_TM_HEADER)
		memset(&tmh, 0, sizeof(tmh));
	else
		memcpy(&tmh, payload, sizeof(tmh));
	tagged = tmh.opcode == IBV_TMH_EAGER || (tmh.opcode == IBV_TMH_RNDV && is_request(run));
	tagged_of(qp)->opcode = tagged ? IBV_WC_TM_RECV : IBV_WC_TM_NO_TAG;
	if (tagged) {
		vb_lock_take(&qp->srq->lock);
		struct vb_tag_entry *e = vb_tag_list_match(list, be64toh(tmh.tag));

		vb_lock_release(&qp->srq->lock);
		if (e)
			return entry_take(qp, e, &tmh);
	}
	wqe = vb_env_recv_take(t);
	if (wqe && tagged) {
		vb_lock_take(&qp->srq->lock);
		list->unexpected++;
		vb_lock_release(&qp->srq->lock);
	}
	return wqe;
}

static void recv_untake(struct vb_tqp *t, struct vb_recv_wqe *wqe)
{
	struct vb_qp *qp = vb_qp_of_tqp(t);
	struct vb_tag_entry *e = entry_of(qp, wqe);

	if (!e) {
		vb_env_recv_untake(t, wqe);
		return;
	}
	vb_lock_take(&qp->srq->lock);
	vb_tag_list_untake(list_of(qp), e);
	vb_lock_release(&qp->srq->lock);
}

static struct vb_mem buffer_memory(const struct vb_qp *qp)
{
	return (struct vb_mem){
		.keys = vb_node_keyring(qp->engine->node), .pd = qp->srq->pd_id, .qpn = qp->t.qpn};
}

static enum vb_reason recv_scatter(struct vb_tqp *t, struct vb_recv_wqe *wqe, uint64_t offset,
				   const void *src, uint32_t length)
{
	struct vb_qp *qp = vb_qp_of_tqp(t);
	struct vb_tag_entry *e = entry_of(qp, wqe);
	struct vb_mem mem = buffer_memory(qp);
	uint32_t header;

	if (!e)
		return vb_env_recv_scatter(t, wqe, offset, src, length);
	if (e->rndv) { /* one packet, its length was checked */
		memcpy(e->request + offset, src, length);
		return VB_REASON_NONE;
	}
	header = offset < VB_TM_HEADER ? VB_TM_HEADER - (uint32_t)offset : 0;
	if (header >= length)
		return VB_REASON_NONE;
	return vb_mem_scatter(&mem, vb_recv_wqe_sge(wqe), wqe->num_sge,
			      offset + header - VB_TM_HEADER, (const char *)src + header,
			      length - header);
}

/* Pushes one completion of a tagged buffer. */
static void complete_tag(struct vb_qp *qp, const struct vb_tag_entry *e, enum ibv_wc_status status,
			 enum vb_reason reason, uint32_t flags, uint32_t bytes, uint32_t imm,
			 bool solicited)
{
	struct vb_cqe_more more = {0};
	struct vb_cqe cqe;

	memset(&cqe, 0, sizeof(cqe));
	cqe.wc.wr_id = e->wqe.wr_id;
	cqe.wc.status = status;
	cqe.wc.opcode = IBV_WC_TM_RECV;
	cqe.wc.byte_len = bytes;
	cqe.wc.qp_num = qp->t.qpn;
	cqe.wc.wc_flags = flags;
	cqe.wc.imm_data = imm;
	cqe.wc.vendor_err = reason;
	cqe.owner = &qp->completions;
	cqe.solicited = solicited || status != IBV_WC_SUCCESS;
	if (flags & IBV_WC_TM_MATCH) {
		more.tag = e->matched;
		more.priv = ntohl(e->app_ctx);
	}
	if (status != IBV_WC_SUCCESS)
		vb_note_failed(status, reason,
			       "qp 0x%x: tagged buffer wr_id 0x%llx, tag 0x%llx: status %d: %s",
			       qp->t.qpn, (unsigned long long)e->wqe.wr_id,
			       (unsigned long long)e->matched, (int)status, vb_reason_text(reason));
	/* Of the two completions of a rendezvous the second one is counted. */
	if (qp->counted && (flags != IBV_WC_TM_MATCH || status != IBV_WC_SUCCESS))
		vb_comp_cntr_count(qp, IBV_QP_ATTACH_COMP_CNTR_OP_RECV, bytes,
				   status == IBV_WC_SUCCESS);
	if (!vb_cq_push_more(qp->srq->cq, &cqe, &more))
		qp->overrun = true;
}

static void entry_release(struct vb_qp *qp, struct vb_tag_entry *e)
{
	vb_lock_take(&qp->srq->lock);
	vb_tag_list_release(list_of(qp), e);
	vb_lock_release(&qp->srq->lock);
}

static struct ibv_rvh request_of(const struct vb_tag_entry *e)
{
	struct ibv_rvh rvh;

	memcpy(&rvh, e->request + VB_TM_HEADER, sizeof(rvh));
	return rvh;
}

/* A rendezvous request has matched: the data is to be read, if the buffer has room for it. */
static void request_taken(struct vb_qp *qp, struct vb_tag_entry *e, bool solicited)
{
	struct ibv_rvh rvh = request_of(e);
	bool fits = ntohl(rvh.len) <= e->space;

	complete_tag(qp, e, fits ? IBV_WC_SUCCESS : IBV_WC_TM_RNDV_INCOMPLETE,
		     fits ? VB_REASON_NONE : VB_REASON_RECV_TOO_SMALL, IBV_WC_TM_MATCH,
		     ntohl(rvh.len), 0, solicited);
	if (!fits) {
		entry_release(qp, e);
		return;
	}
	if (tagged_of(qp)->last)
		tagged_of(qp)->last->rndv_next = e;
	else
		tagged_of(qp)->first = e;
	tagged_of(qp)->last = e;
	vb_engine_make_runnable(qp->engine, qp);
}

static void tag_done(struct vb_qp *qp, struct vb_tag_entry *e, const struct vb_recv_done *done)
{
	uint32_t flags = IBV_WC_TM_MATCH | IBV_WC_TM_DATA_VALID | done->wc_flags;

	if (done->status == IBV_WC_SUCCESS && e->rndv) {
		request_taken(qp, e, done->solicited);
		return;
	}
	if (done->status == IBV_WC_SUCCESS)
		complete_tag(qp, e, IBV_WC_SUCCESS, VB_REASON_NONE, flags,
			     done->byte_len - VB_TM_HEADER, done->imm, done->solicited);
	else
		complete_tag(qp, e, done->status, done->reason, 0, 0, 0, false);
	entry_release(qp, e);
}

/* An ordinary receive got the whole message with its header: unexpected, or not tagged. */
static void recv_done(struct vb_tqp *t, const struct vb_recv_done *done)
{
	struct vb_qp *qp = vb_qp_of_tqp(t);
	struct vb_tag_entry *e = entry_of(qp, done->wqe);
	struct vb_recv_done told = *done;

	if (e) {
		tag_done(qp, e, done);
		return;
	}
	if (done->opcode == IBV_WC_RECV && done->status == IBV_WC_SUCCESS)
		told.opcode = (enum ibv_wc_opcode)tagged_of(qp)->opcode;
	vb_env_recv_done(t, &told);
}

/* The queue pair will send no more: rendezvous that were to be read fail. */
static void flush(struct vb_qp *qp)
{
	while (tagged_of(qp)->first) {
		struct vb_tag_entry *e = tagged_of(qp)->first;

		tagged_of(qp)->first = e->rndv_next;
		complete_tag(qp, e, IBV_WC_WR_FLUSH_ERR, VB_REASON_FLUSHED, 0, 0, 0, false);
		entry_release(qp, e);
	}
	tagged_of(qp)->last = NULL;
}

static void fill_read(struct vb_qp *qp, struct vb_send_wqe *wqe, struct vb_tag_entry *e)
{
	const struct ibv_sge *from = vb_recv_wqe_sge(&e->wqe);
	struct ibv_sge *sge = vb_send_wqe_sge(wqe);
	struct ibv_rvh rvh = request_of(e);
	uint32_t left = ntohl(rvh.len);

	vb_send_wqe_begin(qp, wqe, e->wqe.wr_id, IBV_WR_RDMA_READ, 0);
	wqe->owner = (uintptr_t)e;
	wqe->remote_addr = be64toh(rvh.va);
	wqe->rkey = ntohl(rvh.rkey);
	wqe->length = left;
	for (uint32_t i = 0; left && i < e->wqe.num_sge; i++) {
		sge[i] = from[i];
		if (sge[i].length > left)
			sge[i].length = left;
		left -= sge[i].length;
		wqe->num_sge = i + 1;
	}
}

/* FIN tells the sender that its memory is its own again: hence the fence. */
static void fill_fin(struct vb_qp *qp, struct vb_send_wqe *wqe, const struct vb_tag_entry *e)
{
	struct ibv_tmh tmh;

	memcpy(&tmh, e->request, sizeof(tmh));
	tmh.opcode = IBV_TMH_FIN;
	vb_send_wqe_begin(qp, wqe, e->wqe.wr_id, IBV_WR_SEND, IBV_SEND_FENCE);
	wqe->owner = OWNER_FIN;
	wqe->is_inline = 1;
	wqe->length = sizeof(tmh);
	memcpy(vb_send_wqe_inline(wqe), &tmh, sizeof(tmh));
}

static void request_start(struct vb_qp *qp)
{
	struct vb_tag_entry *e = tagged_of(qp)->first;

	tagged_of(qp)->first = e->rndv_next;
	if (!tagged_of(qp)->first)
		tagged_of(qp)->last = NULL;
	fill_read(qp, vb_tqp_wqe(&qp->t, qp->t.sq_posted), e);
	fill_fin(qp, vb_tqp_wqe(&qp->t, qp->t.sq_posted + 1), e);
	vb_tqp_posted_set(&qp->t, qp->t.sq_posted + 2);
	qp->sq_internal += 2;
	tagged_of(qp)->busy += 2;
}

/* Starts rendezvous that are to be read. True: they must wait for the program to finish posting. */
static bool pump(struct vb_qp *qp)
{
	if (!tagged_of(qp)->first)
		return false;
	if (qp->t.state >= IBV_QPS_SQE)
		flush(qp);
	/* While the program posts, the place of the next request is the program's. */
	if (qp->t.state != IBV_QPS_RTS || tagged_of(qp)->busy + 2 > OWN_REQUESTS)
		return false;
	if (!vb_lock_try(&qp->wr_lock))
		return true;
	while (tagged_of(qp)->first && tagged_of(qp)->busy + 2 <= OWN_REQUESTS)
		request_start(qp);
	vb_lock_release(&qp->wr_lock);
	return false;
}

/* A request of the device's own is finished. */
static void own_done(struct vb_qp *qp, const struct vb_send_wqe *wqe, enum ibv_wc_status status,
		     enum vb_reason reason)
{
	struct vb_tag_entry *e = (struct vb_tag_entry *)(uintptr_t)wqe->owner;

	tagged_of(qp)->busy--;
	if (tagged_of(qp)->first)
		vb_engine_make_runnable(qp->engine, qp);
	if (wqe->owner == OWNER_FIN)
		return;
	complete_tag(qp, e, status, reason, status == IBV_WC_SUCCESS ? IBV_WC_TM_DATA_VALID : 0,
		     (uint32_t)wqe->length, 0, false);
	entry_release(qp, e);
}

static void send_done(struct vb_tqp *t, struct vb_send_wqe *wqe, enum ibv_wc_status status,
		      enum vb_reason reason)
{
	if (wqe->owner)
		own_done(vb_qp_of_tqp(t), wqe, status, reason);
	else
		vb_env_send_done(t, wqe, status, reason);
}

static enum vb_reason scatter_response(struct vb_tqp *t, struct vb_send_wqe *wqe, uint64_t offset,
				       const void *src, uint32_t length)
{
	struct vb_mem mem = buffer_memory(vb_qp_of_tqp(t));

	if (!wqe->owner)
		return vb_env_scatter_response(t, wqe, offset, src, length);
	return vb_mem_scatter(&mem, vb_send_wqe_sge(wqe), wqe->num_sge, offset, src, length);
}

static const struct vb_env tm_env = {
	.link = {VB_ENV_LINK},
	.memory = {VB_ENV_MEMORY, .scatter_response = scatter_response},
	.queue =
		{
			VB_ENV_QUEUE,
			.send_done = send_done,
			.recv_take = vb_env_recv_take,
			.recv_match = recv_match,
			.recv_untake = recv_untake,
			.recv_scatter = recv_scatter,
			.recv_done = recv_done,
		},
};

static int qp_open(struct vb_qp *qp, struct ibv_context *ctx,
		   const struct ibv_qp_init_attr_ex *attr)
{
	(void)ctx;
	(void)attr;
	qp->own = calloc(1, sizeof(struct tagged));
	return qp->own ? 0 : vb_refuse(ENOMEM, VB_REASON_NO_MEMORY, "create_qp: tag matching");
}

static void qp_close(struct vb_qp *qp)
{
	free(qp->own);
}

/* The queue pair's engine feeds the CQ of the queue. */
static int qp_attach(struct vb_qp *qp)
{
	return vb_cq_attach(qp->srq->cq, qp->engine);
}

static void qp_detach(struct vb_qp *qp)
{
	vb_cq_detach(qp->srq->cq, qp->engine);
}

static void qp_clear(struct vb_qp *qp)
{
	struct vb_tag_list *list = list_of(qp);

	vb_lock_take(&qp->srq->lock);
	for (uint32_t i = 0; i < list->size; i++) {
		struct vb_tag_entry *e = vb_tag_entry_at(list, i);

		if (e->state == VB_TAG_TAKEN && e->qp == qp)
			vb_tag_list_release(list, e);
	}
	vb_lock_release(&qp->srq->lock);
	*tagged_of(qp) = (struct tagged){0};
	qp->sq_internal = 0;
	vb_cq_remove(qp->srq->cq, &qp->completions);
	vb_qp_ordinary_clear(qp);
}

static const struct vb_qp_kind tm_qp = {
	.env = &tm_env,
	.own_requests = OWN_REQUESTS,
	.own_sge = VB_MAX_TAG_SGE,
	.open = qp_open,
	.close = qp_close,
	.attach = qp_attach,
	.detach = qp_detach,
	.psns = vb_qp_ordinary_psns,
	.retire = vb_qp_ordinary_retire,
	.free = vb_qp_ordinary_free,
	.publish = vb_qp_ordinary_publish,
	.event = vb_qp_ordinary_event,
	.clear = qp_clear,
	.receive = vb_qp_ordinary_receive,
	.pump = pump,
};

static int admit(enum ibv_qp_type type)
{
	return type == IBV_QPT_RC
		       ? 0
		       : vb_refuse(EINVAL, VB_REASON_ARG,
				   "create_qp: only RC queue pairs match tags, not type %d",
				   (int)type);
}

const struct vb_srq_kind vb_tm_srq = {
	.open = list_open,
	.close = list_close,
	.admit = admit,
	.qp = &tm_qp,
};
