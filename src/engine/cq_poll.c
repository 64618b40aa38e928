/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Polling and arming. A poll drives the engines that feed the CQ, then takes entries. */
#include <errno.h>

#include "base/lock.h"
#include "base/reason.h"
#include "base/seldom.h"
#include "object/comp_channel.h"
#include "engine/cq.h"
#include "engine/drive.h"
#include "engine/engine.h"
#include "engine/engines.h"
#include "engine/fastpath.h"
#include "engine/give_way.h"
#include "engine/poll_others.h"

#define RENEW_EVERY 8u  /* polls without a drive between two renewals of the lease */
#define DRIVE_EVERY 64u /* and between two drives, whatever the queue holds */

/*
 * A drive of an engine that reads sockets costs a system call, so it is left out while there are
 * entries to take. It is also left out for a queue that waits for an event: a new entry would raise
 * the event and be taken by the same call, and the program would then find nothing.
 */
static inline bool can_wait(const struct vb_engine *e, bool armed)
{
	return armed || __atomic_load_n(&e->reads, __ATOMIC_RELAXED);
}

/*
 * The engines count as polled, although nobody drives them. Returns the first one, by which the
 * thread is known to poll this queue (poll_others.h).
 */
static struct vb_engine *lease_renew(struct vb_cq *cq)
{
	struct vb_engine *first = NULL;

	if (!vb_lock_try(&cq->poll_lock))
		return NULL;
	for (uint32_t i = 0; i < cq->num_engines; i++)
		vb_engine_count_poll(cq->engines[i].engine);
	if (cq->num_engines && !cq->engines[0].engine->lock.bias)
		first = cq->engines[0].engine;
	vb_lock_release(&cq->poll_lock);
	return first;
}

/*
 * The queue holds entries. Whether the poll may do without a drive for that: but not for ever, since a
 * queue never becomes empty where requests are complete when they are posted.
 */
static inline bool can_skip(struct vb_cq *cq, uint32_t *skipped)
{
	*skipped = atomic_load_explicit(&cq->skipped, memory_order_relaxed) + 1;
	atomic_store_explicit(&cq->skipped, *skipped, memory_order_relaxed);
	return *skipped % DRIVE_EVERY != 0;
}

struct vb_engine *vb_cq_drive(struct vb_cq *cq, uint32_t wanted)
{
	uint32_t skipped, entries = atomic_load_explicit(&cq->head, memory_order_relaxed) -
				    atomic_load_explicit(&cq->tail, memory_order_relaxed);
	bool skips = entries && can_skip(cq, &skipped);
	struct vb_engine *first = NULL;

	/*
	 * The queue holds all that the program asks for. Taking more out of the rings would only
	 * move a backlog from where senders see it, and wait, to where they do not: until the
	 * receives run out.
	 */
	if (skips && entries >= wanted)
		return skipped % RENEW_EVERY == 0 ? lease_renew(cq) : NULL;
	struct vb_engine *sole = atomic_load_explicit(&cq->sole, memory_order_acquire);

	if (sole) {
		bool armed = atomic_load_explicit(&cq->armed, memory_order_relaxed) != VB_CQ_IDLE;

		if (!skips || !can_wait(sole, armed))
			vb_engine_poll(sole, armed, &cq->sole);
		return sole;
	}
	/*
	 * Another poller is driving: what it finds becomes entries, which this poll looks at next.
	 */
	if (!vb_lock_try(&cq->poll_lock))
		return NULL;
	bool armed = atomic_load_explicit(&cq->armed, memory_order_relaxed) != VB_CQ_IDLE;

	for (uint32_t i = 0; i < cq->num_engines; i++) {
		if (!skips || !can_wait(cq->engines[i].engine, armed))
			vb_engine_poll(cq->engines[i].engine, armed, NULL);
	}
	if (cq->num_engines && !cq->engines[0].engine->lock.bias)
		first = cq->engines[0].engine;
	vb_lock_release(&cq->poll_lock);
	return first;
}

/* Takes the locks for taking entries; waits while an iteration of ibv_cq_ex is under way. */
static bool consume_begin(struct vb_cq *cq)
{
	vb_lock_take(&cq->lock);
	if (!VB_SELDOM(cq->iterating))
		return false;
	vb_lock_release(&cq->lock);
	vb_mutex_take(&vb_cq_extended_of(cq)->consume, VB_ORDER_CONSUME);
	vb_lock_take(&cq->lock);
	return true;
}

static void consume_end(struct vb_cq *cq, bool waited)
{
	vb_lock_release(&cq->lock);
	if (waited)
		vb_mutex_release(&vb_cq_extended_of(cq)->consume);
}

/*
 * A polled send completion frees its queue entry, and the unsignalled ones before it (IBA 10.8.2).
 */
void vb_cq_consume(const struct vb_cqe *cqe)
{
	if (cqe->is_send)
		atomic_store_explicit(&cqe->owner->released, cqe->sq_index + 1,
				      memory_order_release);
}

/*
 * There is nothing to take and nothing to note: neither an overrun, nor that the poll came to the
 * end of the queue.
 */
static inline bool is_empty(const struct vb_cq *cq)
{
	return atomic_load_explicit(&cq->head, memory_order_relaxed) ==
		       atomic_load_explicit(&cq->tail, memory_order_relaxed) &&
	       !cq->overrun && atomic_load_explicit(&cq->seen_empty, memory_order_relaxed);
}

int vb_poll_cq(struct ibv_cq *ibcq, int num_entries, struct ibv_wc *wc)
{
	struct vb_cq *cq = vb_cq_of(ibcq);
	int n = 0;

	if (VB_SELDOM(num_entries <= 0))
		return num_entries ? vb_refuse(EINVAL, VB_REASON_ARG, "poll_cq: num_entries %d",
					       num_entries)
				   : 0;
	struct vb_engine *e = vb_cq_drive(cq, (uint32_t)num_entries);

	if (is_empty(cq)) {
		if (e)
			vb_poll_others(e);
		if (!vb_polled_in_vain(e))
			return 0;
		e = vb_cq_drive(cq, (uint32_t)num_entries);
		if (is_empty(cq))
			return 0;
	}
	bool waited = consume_begin(cq);
	uint32_t tail = atomic_load_explicit(&cq->tail, memory_order_relaxed);
	uint32_t head = atomic_load_explicit(&cq->head, memory_order_relaxed);

	for (; n < num_entries && tail != head; n++, tail++) {
		const struct vb_cqe *cqe = &cq->ring[tail & cq->mask];

		wc[n] = cqe->wc;
		vb_cq_consume(cqe);
	}
	atomic_store_explicit(&cq->tail, tail, memory_order_relaxed);
	atomic_store_explicit(&cq->seen_empty, n < num_entries, memory_order_relaxed);
	if (!n && cq->overrun)
		n = -EIO;
	consume_end(cq, waited);
	if (e && n > 0)
		vb_poll_found(e);
	else if (e && !n)
		vb_poll_others(e);
	if (n)
		vb_polled_well();
	return n;
}

int vb_req_notify_cq(struct ibv_cq *ibcq, int solicited_only)
{
	struct vb_cq *cq = vb_cq_of(ibcq);

	if (ibcq->handle != cq->handle)
		return -vb_refuse(ENOENT, VB_REASON_HANDLE, "req_notify_cq: cq %u is not known",
				  ibcq->handle);
	if (!ibcq->channel)
		return 0;
	/*
	 * From now on it may be that no thread polls, so senders must ring. What has arrived by now
	 * becomes an entry before the queue is armed.
	 */
	vb_lock_take(&cq->poll_lock);
	for (uint32_t i = 0; i < cq->num_engines; i++) {
		struct vb_engine *e = cq->engines[i].engine;

		vb_engine_take(e);
		vb_engine_sleep(e);
		vb_lock_release(&e->lock);
	}
	vb_cq_arm(cq, solicited_only ? VB_CQ_SOLICITED : VB_CQ_ANY);
	vb_lock_release(&cq->poll_lock);
	return 0;
}
