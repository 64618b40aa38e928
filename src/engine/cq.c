/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Completion queues: creation and end, resize, entries, and which engines feed them. */
#include "engine/cq.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/reason.h"
#include "engine/engine.h"
#include "engine/engine_life.h"
#include "object/comp_channel.h"
#include "object/context.h"
#include "process/limits.h"
#include "object/pd.h"

#define STAMP_FLAGS \
	(IBV_WC_EX_WITH_COMPLETION_TIMESTAMP | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)

#define MORE_FLAGS \
	(STAMP_FLAGS | IBV_WC_EX_WITH_CVLAN | IBV_WC_EX_WITH_FLOW_TAG | IBV_WC_EX_WITH_TM_INFO)

static uint32_t ring_size(uint32_t cqe)
{
	uint32_t size = 1;

	while (size < cqe)
		size <<= 1;
	return size;
}

/*
 * The entries, and what else is known of them; the parent domain's allocator gives both as one
 * block.
 */
struct ring {
	struct vb_queue_memory memory;
	struct vb_cqe *entries;
	struct vb_cqe_more *more;
	uint32_t mask;
};

static int ring_alloc(struct ring *r, struct ibv_pd *pd, uint32_t cqe, bool more)
{
	size_t size = ring_size(cqe);
	size_t bytes = size * sizeof(*r->entries);
	int err = vb_queue_memory_alloc(
		&r->memory, pd, bytes + (more ? size * sizeof(*r->more) : 0), VERBATIM_RESOURCE_CQ);

	if (err)
		return err;
	r->entries = r->memory.ptr;
	r->more = more ? (struct vb_cqe_more *)(void *)((char *)r->memory.ptr + bytes) : NULL;
	r->mask = (uint32_t)size - 1;
	return 0;
}

/* Exchanges the queue's ring and *r. */
static void ring_swap(struct vb_cq *cq, struct ring *r)
{
	struct ring old = {cq->memory, cq->ring, cq->more, cq->mask};

	cq->memory = r->memory;
	cq->ring = r->entries;
	cq->more = r->more;
	cq->mask = r->mask;
	*r = old;
}

/* The face has checked masks and flags. */
static int create_check(struct ibv_context *ctx, const struct ibv_cq_init_attr_ex *attr)
{
	if (attr->cqe == 0 || attr->cqe > VB_MAX_CQE)
		return vb_refuse(EINVAL, VB_REASON_ARG_LIMIT, "create_cq: cqe %u is not in 1..%u",
				 attr->cqe, VB_MAX_CQE);
	if (attr->comp_vector >= (uint32_t)ctx->num_comp_vectors)
		return vb_refuse(EINVAL, VB_REASON_ARG, "create_cq: comp_vector %u, there are %d",
				 attr->comp_vector, ctx->num_comp_vectors);
	if (attr->channel && attr->channel->context != ctx)
		return vb_refuse(EINVAL, VB_REASON_ARG,
				 "create_cq: the channel is of another context");
	return attr->channel ? vb_comp_channel_check(attr->channel, "create_cq") : 0;
}

static void events_init(struct vb_cq *cq)
{
	cq->comp_event.object = cq->error_event.object = &cq->ex;
	cq->comp_event.got = &cq->got.comp;
	cq->error_event.got = &cq->got.async;
	cq->error_event.type = IBV_EVENT_CQ_ERR;
}

static struct ibv_cq *public_cq(struct vb_cq *cq)
{
	return (struct ibv_cq *)(void *)&cq->ex;
}

/*
 * Gets the parent domain, whose allocator gives the memory and whose thread domain the queue
 * belongs to.
 */
static int domain_get(struct vb_cq *cq, struct ibv_context *ctx,
		      const struct ibv_cq_init_attr_ex *attr)
{
	int err;

	if (!(attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD))
		return 0;
	err = vb_pd_get(ctx, attr->parent_domain);
	if (err)
		return err;
	cq->pd = attr->parent_domain;
	if (!vb_pd_of(cq->pd)->base)
		return vb_refuse(EINVAL, VB_REASON_ARG, "create_cq: pd %u is no parent domain",
				 cq->pd->handle);
	return 0;
}

/*
 * One thread polls a queue of a thread domain, or one that was made for a single thread: its locks
 * are biased.
 */
static int locks_init(struct vb_cq *cq, const struct ibv_cq_init_attr_ex *attr)
{
	int err;

	vb_lock_place(&cq->lock, VB_ORDER_COMPLETIONS);
	vb_lock_place(&cq->poll_lock, VB_ORDER_POLL);
	cq->single_threaded = ((attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS) &&
			       (attr->flags & IBV_CREATE_CQ_ATTR_SINGLE_THREADED)) ||
			      (cq->pd && vb_pd_of(cq->pd)->td);
	if (!cq->single_threaded)
		return 0;
	err = vb_bias_allow(&cq->lock);
	return err ? err : vb_bias_allow(&cq->poll_lock);
}

static void memory_free(struct vb_cq *cq)
{
	vb_queue_memory_free(&cq->memory); /* calls the parent domain's free() */
	if (cq->pd)
		vb_pd_put(cq->pd);
	vb_bias_forget(&cq->lock);
	vb_bias_forget(&cq->poll_lock);
	free(cq);
}

int vb_cq_create(struct ibv_context *ctx, const struct ibv_cq_init_attr_ex *attr, bool extended,
		 struct ibv_cq **out)
{
	int err = create_check(ctx, attr);
	struct ring ring;
	size_t bytes = extended ? sizeof(struct vb_cq_extended) : sizeof(struct vb_cq);
	struct vb_cq *cq;

	if (err)
		return err;
	if (posix_memalign((void **)&cq, 64, bytes))
		return vb_refuse(ENOMEM, VB_REASON_NO_MEMORY, "create_cq");
	memset(cq, 0, bytes);
	err = vb_object_count(&vb_cq_type, VB_HANDLE_CQ);
	if (err) {
		free(cq);
		return err;
	}
	err = domain_get(cq, ctx, attr);
	if (!err)
		err = ring_alloc(&ring, cq->pd, attr->cqe,
				 extended && (attr->wc_flags & MORE_FLAGS));
	if (err)
		goto fail;
	ring_swap(cq, &ring);
	err = locks_init(cq, attr);
	if (!err)
		err = vb_context_add(ctx, VB_HANDLE_CQ, cq, &cq->ex.handle);
	cq->handle = cq->ex.handle;
	if (err)
		goto fail;
	cq->ignore_overrun = (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS) &&
			     (attr->flags & IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN);
	cq->stamped = extended && (attr->wc_flags & STAMP_FLAGS);
	cq->ex.context = ctx;
	cq->ex.channel = attr->channel;
	cq->ex.cq_context = attr->cq_context;
	cq->ex.cqe = (int)attr->cqe;
	events_init(cq);
	cq->extended = extended;
	if (extended)
		vb_cq_ex_init(cq);
	if (attr->channel)
		vb_comp_channel_get(attr->channel);
	*out = public_cq(cq);
	return 0;
fail:
	memory_free(cq);
	vb_object_uncount(VB_HANDLE_CQ);
	return err;
}

static int cq_check(struct ibv_cq *cq)
{
	return vb_context_check(cq->context, VB_HANDLE_CQ, cq->handle, cq, "cq");
}

/* Under the lock: the entries that were not polled move to *r, which becomes the ring. */
static int ring_move(struct vb_cq *cq, struct ring *r, int cqe)
{
	uint32_t tail = atomic_load(&cq->tail);
	uint32_t used = cq->head - tail;

	if ((uint32_t)cqe < used)
		return vb_refuse(EINVAL, VB_REASON_ARG,
				 "resize_cq: %u entries are unpolled, %d asked for", used, cqe);
	ring_swap(cq, r);
	for (uint32_t i = tail; i != cq->head; i++) {
		cq->ring[i & cq->mask] = r->entries[i & r->mask];
		if (cq->more)
			cq->more[i & cq->mask] = r->more[i & r->mask];
	}
	cq->ex.cqe = cqe;
	return 0;
}

int vb_cq_resize(struct ibv_cq *ibcq, int cqe)
{
	struct vb_cq *cq = vb_cq_of(ibcq);
	struct ring r;
	int err = cq_check(ibcq);

	if (err)
		return err;
	if (cqe <= 0 || (uint32_t)cqe > VB_MAX_CQE)
		return vb_refuse(EINVAL, VB_REASON_ARG_LIMIT, "resize_cq: cqe %d is not in 1..%u",
				 cqe, VB_MAX_CQE);
	err = ring_alloc(&r, cq->pd, (uint32_t)cqe, cq->more != NULL);
	if (err)
		return err;
	vb_lock_take(&cq->lock);
	err = ring_move(cq, &r, cqe);
	vb_lock_release(&cq->lock);
	vb_queue_memory_free(&r.memory); /* the old ring, or the new one where it was refused */
	return err;
}

int vb_cq_modify(struct ibv_cq *ibcq, const struct ibv_modify_cq_attr *attr)
{
	struct vb_cq *cq = vb_cq_of(ibcq);
	int err = cq_check(ibcq);

	if (err)
		return err;
	if (!(attr->attr_mask & IBV_CQ_ATTR_MODERATE))
		return 0;
	vb_lock_take(&cq->lock);
	cq->mod_count = attr->moderate.cq_count;
	cq->mod_period = attr->moderate.cq_period;
	/* The new values decide about entries that the old ones were holding back. */
	if (atomic_load(&cq->armed) != VB_CQ_IDLE)
		vb_cq_tell_of(cq, vb_cq_untold(cq));
	vb_lock_release(&cq->lock);
	return 0;
}

int vb_cq_retire(struct ibv_cq *ibcq, struct vb_events_got *got)
{
	struct vb_cq *cq = vb_cq_of(ibcq);
	struct vb_context *ctx = vb_context_of(ibcq->context);
	int err = cq_check(ibcq);

	if (err)
		return err;
	vb_lock_take(&cq->poll_lock);
	uint32_t users = cq->users;

	vb_lock_release(&cq->poll_lock);
	if (users)
		return vb_refuse(EBUSY, VB_REASON_BUSY,
				 "destroy_cq: queue pairs or work queues use it");
	err = vb_context_remove(ibcq->context, VB_HANDLE_CQ, ibcq->handle, cq);
	if (err)
		return err;
	if (cq->own)
		vb_engine_destroy(cq->own);
	cq->own = NULL;
	vb_cq_moderate_end(cq);
	if (ibcq->channel)
		vb_event_queue_drop(&vb_comp_channel_of(ibcq->channel)->queue, &cq->comp_event);
	vb_event_queue_drop(&ctx->async, &cq->error_event);
	*got = cq->got;
	return 0;
}

void vb_cq_free(struct ibv_cq *ibcq)
{
	struct vb_cq *cq = vb_cq_of(ibcq);

	if (ibcq->channel)
		vb_comp_channel_put(ibcq->channel);
	free(cq->engines);
	if (cq->extended)
		pthread_mutex_destroy(&vb_cq_extended_of(cq)->consume);
	memory_free(cq);
	vb_object_uncount(VB_HANDLE_CQ);
}

static void overrun(struct vb_cq *cq)
{
	if (cq->overrun)
		return;
	cq->overrun = 1;
	vb_note(VB_REASON_CQ_OVERRUN, "cq 0x%x: %d entries are unpolled, one more does not fit",
		cq->ex.handle, cq->ex.cqe);
	vb_event_queue_raise(&vb_context_of(cq->ex.context)->async, &cq->error_event);
}

void vb_cq_fire(struct vb_cq *cq)
{
	atomic_store_explicit(&cq->armed, VB_CQ_IDLE, memory_order_relaxed);
	cq->event_from = cq->told;
	cq->told = cq->head;
	cq->seen_empty = false;
	cq->mod_pending = 0;
	cq->mod_at = 0;
	vb_event_queue_raise(&vb_comp_channel_of(cq->ex.channel)->queue, &cq->comp_event);
}

/*
 * The oldest entry is lost. One that an iteration has passed was consumed then, and must not be
 * consumed again.
 */
static void lose_oldest(struct vb_cq *cq, uint32_t tail)
{
	if (!cq->iterating || (int32_t)(cq->iter_tail - tail) <= 0)
		vb_cq_consume(&cq->ring[tail & cq->mask]);
	atomic_store_explicit(&cq->tail, tail + 1, memory_order_relaxed);
}

void vb_cq_more_fill(struct vb_cq *cq, const struct vb_cqe_more *more)
{
	struct vb_cqe_more *to = &cq->more[cq->head & cq->mask];

	*to = more ? *more : (struct vb_cqe_more){0};
	if (cq->stamped)
		to->stamp = vb_clock_ns();
}

bool vb_cq_full(struct vb_cq *cq)
{
	if (!cq->ignore_overrun) {
		overrun(cq);
		return true;
	}
	lose_oldest(cq, atomic_load_explicit(&cq->tail, memory_order_relaxed));
	return false;
}

bool vb_cq_push_more(struct vb_cq *cq, const struct vb_cqe *cqe, const struct vb_cqe_more *more)
{
	struct vb_cqe *place = vb_cq_begin(cq);

	if (!place)
		return false;
	*place = *cqe;
	vb_cq_end(cq, place, more);
	return true;
}

bool vb_cq_push(struct vb_cq *cq, const struct vb_cqe *cqe)
{
	return vb_cq_push_more(cq, cqe, NULL);
}

void vb_cq_remove(struct vb_cq *cq, const struct vb_cq_owner *owner)
{
	vb_lock_take(&cq->lock);
	uint32_t to = atomic_load(&cq->tail);
	uint32_t iter_tail = cq->iter_tail;
	uint32_t told = cq->told;
	uint32_t event_from = cq->event_from;

	for (uint32_t from = to; from != cq->head; from++) {
		if (cq->ring[from & cq->mask].owner == owner) {
			/* Entries that an iteration has passed stay passed. */
			if ((int32_t)(from - iter_tail) < 0)
				cq->iter_tail--;
			if ((int32_t)(from - told) < 0)
				cq->told--;
			if ((int32_t)(from - event_from) < 0)
				cq->event_from--;
			continue;
		}
		cq->ring[to & cq->mask] = cq->ring[from & cq->mask];
		if (cq->more)
			cq->more[to & cq->mask] = cq->more[from & cq->mask];
		to++;
	}
	cq->head = to;
	vb_lock_release(&cq->lock);
}

void vb_cq_disown(struct vb_cq *cq, const struct vb_cq_owner *owner)
{
	vb_lock_take(&cq->lock);
	for (uint32_t at = atomic_load(&cq->tail); at != cq->head; at++) {
		struct vb_cqe *cqe = &cq->ring[at & cq->mask];

		if (cqe->owner == owner)
			cqe->owner = NULL;
	}
	vb_lock_release(&cq->lock);
}

int vb_cq_engine(struct vb_cq *cq, struct vb_engine **engine)
{
	int err = 0;

	vb_lock_take(&cq->poll_lock);
	if (!cq->own)
		err = vb_engine_create(&cq->own, cq->ex.context->device, false);
	*engine = cq->own;
	vb_lock_release(&cq->poll_lock);
	return err;
}

/* Under poll_lock, after a change of the engines. */
static void sole_note(struct vb_cq *cq)
{
	bool alone = cq->num_engines == 1 && !cq->engines[0].engine->lock.bias;

	atomic_store(&cq->sole, alone ? cq->engines[0].engine : NULL);
}

int vb_cq_attach(struct vb_cq *cq, struct vb_engine *engine)
{
	int err = 0;

	vb_lock_take(&cq->poll_lock);
	for (uint32_t i = 0; i < cq->num_engines; i++) {
		if (cq->engines[i].engine == engine) {
			cq->engines[i].qps++;
			goto done;
		}
	}
	struct vb_cq_engine *more = realloc(cq->engines, (cq->num_engines + 1) * sizeof(*more));

	if (!more) {
		err = vb_refuse(ENOMEM, VB_REASON_NO_MEMORY, "create_qp: engines of a cq");
		goto unlock;
	}
	cq->engines = more;
	cq->engines[cq->num_engines++] = (struct vb_cq_engine){.engine = engine, .qps = 1};
	sole_note(cq);
done:
	cq->users++;
unlock:
	vb_lock_release(&cq->poll_lock);
	return err;
}

void vb_cq_detach(struct vb_cq *cq, struct vb_engine *engine)
{
	vb_lock_take(&cq->poll_lock);
	for (uint32_t i = 0; i < cq->num_engines; i++) {
		if (cq->engines[i].engine != engine)
			continue;
		if (--cq->engines[i].qps == 0)
			cq->engines[i] = cq->engines[--cq->num_engines];
		sole_note(cq);
		break;
	}
	cq->users--;
	vb_lock_release(&cq->poll_lock);
}

void vb_cq_hold(struct vb_cq *cq)
{
	vb_lock_take(&cq->poll_lock);
	cq->users++;
	vb_lock_release(&cq->poll_lock);
}

void vb_cq_unhold(struct vb_cq *cq)
{
	vb_lock_take(&cq->poll_lock);
	cq->users--;
	vb_lock_release(&cq->poll_lock);
}

const struct vb_object_type vb_cq_type = {
	.name = "cq",
	.limit = VB_MAX_CQ,
	.process_wide = true,
	.forked = vb_cq_forked,
};
