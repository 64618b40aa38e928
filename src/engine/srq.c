/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Shared receive queues: entries, their order, the limit. */
#include "engine/srq.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/reason.h"
#include "object/context.h"
#include "engine/cq.h"
#include "engine/fastpath.h"
#include "process/limits.h"
#include "object/pd.h"

static struct vb_recv_wqe *entry(const struct vb_srq *s, uint32_t index)
{
	return (struct vb_recv_wqe *)(void *)(s->mem + (size_t)index * s->stride);
}

/* The place in the fifo of a position that is less than one lap behind its end. */
static inline uint32_t fifo_at(const struct vb_srq *s, uint32_t position)
{
	return position < s->max_wr ? position : position - s->max_wr;
}

/*
 * Entries, the ring of posted ones and the stack of free ones are one block of memory, which a
 * parent domain's allocator may give.
 */
static int memory_alloc(struct vb_srq *s, struct ibv_pd *pd)
{
	size_t entries = (size_t)s->max_wr * (s->stride = vb_recv_wqe_stride(s->max_sge));
	int err = vb_queue_memory_alloc(&s->memory, pd,
					entries + (size_t)s->max_wr * 2 * sizeof(uint32_t),
					VERBATIM_RESOURCE_SRQ);

	if (err)
		return err;
	s->mem = s->memory.ptr;
	s->fifo = (uint32_t *)(void *)(s->mem + entries);
	s->free = s->fifo + s->max_wr;
	for (uint32_t i = 0; i < s->max_wr; i++)
		s->free[i] = s->max_wr - 1 - i;
	s->num_free = s->max_wr;
	return 0;
}

static int create_check(const struct ibv_srq_init_attr_ex *attr)
{
	if (attr->attr.max_wr == 0 || attr->attr.max_wr > VB_MAX_SRQ_WR)
		return vb_refuse(EINVAL, VB_REASON_ARG_LIMIT,
				 "create_srq: max_wr %u is not in 1..%u", attr->attr.max_wr,
				 VB_MAX_SRQ_WR);
	if (attr->attr.max_sge > VB_MAX_SRQ_SGE)
		return vb_refuse(EINVAL, VB_REASON_ARG_LIMIT, "create_srq: max_sge %u exceeds %u",
				 attr->attr.max_sge, VB_MAX_SRQ_SGE);
	return 0;
}

static void events_init(struct vb_srq *s)
{
	s->limit_event.type = IBV_EVENT_SRQ_LIMIT_REACHED;
	s->limit_event.object = &s->srq;
	s->limit_event.got = &s->got.async;
}

const struct vb_srq_kind vb_srq_ordinary = {.check = NULL};

int vb_srq_create(struct ibv_context *ctx, const struct vb_srq_kind *kind,
		  struct ibv_srq_init_attr_ex *attr, struct ibv_srq **srq)
{
	int err = kind->check ? kind->check(attr) : 0;
	struct vb_srq *s;

	if (!err)
		err = create_check(attr);
	if (err)
		return err;
	err = vb_pd_get(ctx, attr->pd);
	if (err)
		return err;
	s = aligned_alloc(_Alignof(struct vb_srq), sizeof(*s));
	if (!s) {
		err = vb_refuse(ENOMEM, VB_REASON_NO_MEMORY, "create_srq");
		goto put_pd;
	}
	memset(s, 0, sizeof(*s));
	vb_lock_place(&s->lock, VB_ORDER_SRQ);
	err = vb_object_count(&vb_srq_type, VB_HANDLE_SRQ);
	if (err) {
		free(s);
		goto put_pd;
	}
	s->kind = kind;
	s->max_wr = attr->attr.max_wr;
	s->max_sge = vb_recv_wqe_room(attr->attr.max_sge);
	s->pd_id = vb_pd_of(attr->pd)->id;
	err = memory_alloc(s, attr->pd);
	if (!err && vb_pd_of(attr->pd)->td)
		err = vb_bias_allow(&s->lock);
	if (err)
		goto uncount;
	s->srq.context = ctx;
	s->srq.srq_context = attr->srq_context;
	s->srq.pd = attr->pd;
	events_init(s);
	err = vb_context_add(ctx, VB_HANDLE_SRQ, s, &s->srq.handle);
	if (err)
		goto uncount;
	if (kind->open)
		err = kind->open(s, ctx, attr);
	if (err) {
		vb_context_remove(ctx, VB_HANDLE_SRQ, s->srq.handle, s);
		goto uncount;
	}
	attr->attr.max_wr = s->max_wr;
	attr->attr.max_sge = s->max_sge;
	*srq = &s->srq;
	return 0;
uncount:
	vb_object_uncount(VB_HANDLE_SRQ);
	vb_queue_memory_free(&s->memory);
	vb_bias_forget(&s->lock);
	free(s);
put_pd:
	vb_pd_put(attr->pd);
	return err;
}

static int srq_check(struct ibv_srq *srq)
{
	return vb_context_check(srq->context, VB_HANDLE_SRQ, srq->handle, srq, "srq");
}

/*
 * Under the lock. *table has max_wr entries: it takes the posted ones in their order and becomes
 * the queue's; *table gets the old one. The armed limit need not be checked: it is not above the
 * number of posted entries, or the event would have been raised.
 */
static int resize(struct vb_srq *s, struct vb_srq *table)
{
	uint32_t in_use = s->max_wr - s->num_free;
	uint32_t taken = in_use - s->posted;
	struct vb_queue_memory old = s->memory;

	if (table->max_wr < in_use)
		return vb_refuse(EINVAL, VB_REASON_ARG, "modify_srq: max_wr %u is below %u posted",
				 table->max_wr, in_use);
	if (taken)
		return vb_refuse(EBUSY, VB_REASON_BUSY, "modify_srq: a message is being received");
	for (uint32_t i = 0; i < s->posted; i++) {
		uint32_t at = s->fifo[fifo_at(s, s->fifo_head + i)];

		memcpy(table->mem + (size_t)i * table->stride, entry(s, at), s->stride);
		table->fifo[i] = i;
	}
	s->num_free = table->max_wr - s->posted;
	for (uint32_t i = 0; i < s->num_free; i++)
		table->free[i] = table->max_wr - 1 - i;
	s->memory = table->memory;
	s->mem = table->mem;
	s->fifo = table->fifo;
	s->free = table->free;
	s->max_wr = table->max_wr;
	s->fifo_head = 0;
	table->memory = old;
	return 0;
}

/* The table to which ibv_modify_srq(3) resizes, allocated before any lock is taken. */
static int table_alloc(const struct vb_srq *s, uint32_t max_wr, struct vb_srq *table)
{
	if (max_wr == 0 || max_wr > VB_MAX_SRQ_WR)
		return vb_refuse(EINVAL, VB_REASON_ARG_LIMIT,
				 "modify_srq: max_wr %u is not in 1..%u", max_wr, VB_MAX_SRQ_WR);
	table->max_wr = max_wr;
	table->max_sge = s->max_sge;
	return memory_alloc(table, s->srq.pd);
}

static void limit_raise(struct vb_srq *s)
{
	s->limit = 0;
	vb_event_queue_raise(&vb_context_of(s->srq.context)->async, &s->limit_event);
}

int vb_srq_modify(struct ibv_srq *srq, const struct ibv_srq_attr *attr, int mask)
{
	struct vb_srq *s = vb_srq_of(srq);
	struct vb_srq table = {.max_wr = 0};
	int err = srq_check(srq);

	if (err)
		return err;
	err = mask & IBV_SRQ_MAX_WR ? table_alloc(s, attr->max_wr, &table) : 0;
	if (err)
		return err;
	vb_lock_take(&s->lock);
	uint32_t max_wr = mask & IBV_SRQ_MAX_WR ? attr->max_wr : s->max_wr;

	if ((mask & IBV_SRQ_LIMIT) && attr->srq_limit > max_wr)
		err = vb_refuse(EINVAL, VB_REASON_ARG, "modify_srq: limit %u exceeds max_wr %u",
				attr->srq_limit, max_wr);
	if (!err && (mask & IBV_SRQ_MAX_WR))
		err = resize(s, &table);
	if (!err && (mask & IBV_SRQ_LIMIT)) {
		s->limit = attr->srq_limit;
		/* Already below the limit: raises the event now, because no later take would. */
		if (s->posted < s->limit)
			limit_raise(s);
	}
	vb_lock_release(&s->lock);
	/* The old table, or the new one where it was refused. */
	vb_queue_memory_free(&table.memory);
	return err;
}

int vb_srq_query(struct ibv_srq *srq, struct ibv_srq_attr *attr)
{
	struct vb_srq *s = vb_srq_of(srq);
	int err = srq_check(srq);

	if (err)
		return err;
	vb_lock_take(&s->lock);
	attr->max_wr = s->max_wr;
	attr->max_sge = s->max_sge;
	attr->srq_limit = s->limit;
	vb_lock_release(&s->lock);
	return 0;
}

int vb_srq_retire(struct ibv_srq *srq, struct vb_events_got *got)
{
	struct vb_srq *s = vb_srq_of(srq);
	struct vb_context *ctx = vb_context_of(srq->context);
	int err = srq_check(srq);

	if (err)
		return err;
	vb_lock_take(&s->lock);
	uint32_t users = s->users;

	vb_lock_release(&s->lock);
	if (users)
		return vb_refuse(EBUSY, VB_REASON_BUSY, "destroy_srq: %u queue pairs use it",
				 users);
	err = vb_context_remove(srq->context, VB_HANDLE_SRQ, srq->handle, s);
	if (err)
		return err;
	if (s->kind->retire)
		s->kind->retire(s);
	vb_event_queue_drop(&ctx->async, &s->limit_event);
	*got = s->got;
	return 0;
}

void vb_srq_free(struct ibv_srq *srq)
{
	struct vb_srq *s = vb_srq_of(srq);
	struct ibv_pd *pd = srq->pd;

	if (s->kind->close)
		s->kind->close(s);
	vb_queue_memory_free(&s->memory); /* calls the parent domain's free() */
	vb_pd_put(pd);
	vb_bias_forget(&s->lock);
	free(s);
	vb_object_uncount(VB_HANDLE_SRQ);
}

int vb_srq_get(struct ibv_context *ctx, struct ibv_srq *srq, enum ibv_qp_type type)
{
	int err = vb_context_check(ctx, VB_HANDLE_SRQ, srq->handle, srq, "srq");

	if (!err && vb_srq_of(srq)->kind->admit)
		err = vb_srq_of(srq)->kind->admit(type);
	if (err)
		return err;
	vb_lock_take(&vb_srq_of(srq)->lock);
	vb_srq_of(srq)->users++;
	vb_lock_release(&vb_srq_of(srq)->lock);
	return 0;
}

void vb_srq_put(struct vb_srq *s)
{
	vb_lock_take(&s->lock);
	s->users--;
	vb_lock_release(&s->lock);
}

struct vb_recv_wqe *vb_srq_take(struct vb_srq *s)
{
	struct vb_recv_wqe *wqe = NULL;

	vb_lock_take(&s->lock);
	if (s->posted) {
		uint32_t index = s->fifo[s->fifo_head];

		wqe = entry(s, index);
		wqe->index = index;
		s->fifo_head = fifo_at(s, s->fifo_head + 1);
		/* "Below the limit", not at it (ibv_modify_srq(3)). */
		if (--s->posted < s->limit)
			limit_raise(s);
	}
	vb_lock_release(&s->lock);
	return wqe;
}

void vb_srq_untake(struct vb_srq *s, const struct vb_recv_wqe *wqe)
{
	vb_lock_take(&s->lock);
	s->fifo_head = fifo_at(s, s->fifo_head + s->max_wr - 1);
	s->fifo[s->fifo_head] = wqe->index;
	s->posted++;
	vb_lock_release(&s->lock);
}

void vb_srq_release(struct vb_srq *s, const struct vb_recv_done *done, uint32_t count)
{
	vb_lock_take(&s->lock);
	for (uint32_t i = 0; i < count; i++)
		s->free[s->num_free++] = done[i].wqe->index;
	vb_lock_release(&s->lock);
}

static int post_one(struct vb_srq *s, const struct ibv_recv_wr *wr)
{
	if (wr->num_sge < 0 || (uint32_t)wr->num_sge > s->max_sge)
		return -vb_refuse(EINVAL, VB_REASON_SGE_COUNT,
				  "post_srq_recv: %d elements, the queue takes %u", wr->num_sge,
				  s->max_sge);
	if (!s->num_free)
		return -vb_refuse(ENOMEM, VB_REASON_QUEUE_FULL,
				  "post_srq_recv: %u receives are posted", s->max_wr);
	uint32_t index = s->free[--s->num_free];
	struct vb_recv_wqe *wqe = entry(s, index);

	vb_recv_wqe_fill(wqe, wr);
	s->fifo[fifo_at(s, s->fifo_head + s->posted)] = index;
	s->posted++;
	return 0;
}

int vb_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	struct vb_srq *s = vb_srq_of(srq);
	int err = 0;

	vb_lock_take(&s->lock);
	for (; wr; wr = wr->next) {
		err = post_one(s, wr);
		if (err) {
			*bad_wr = wr;
			break;
		}
	}
	vb_lock_release(&s->lock);
	return err;
}

/* Other objects than queue pairs know only the queues of XRC domains. */
static void end(struct vb_context *c, void *object, uint32_t handle)
{
	struct vb_srq *s = object;

	vb_context_remove(&c->vctx.context, VB_HANDLE_SRQ, handle, s);
	if (s->kind->retire)
		s->kind->retire(s);
}

static void forked(void *object)
{
	((struct vb_srq *)object)->inherited = true;
}

const struct vb_object_type vb_srq_type = {
	.name = "srq",
	.limit = VB_MAX_SRQ,
	.process_wide = true,
	.end = end,
	.forked = forked,
};
