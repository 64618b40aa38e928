/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The queue pairs of an engine: the list of all, of those that have work for the next drive, and of
 * those that wait for a time. drive.c takes them off the last two.
 */
#include "engine/schedule.h"

#include "base/clock.h"
#include "base/list.h"
#include "engine/await.h"
#include "engine/engines.h"
#include "process/process.h"

void vb_engine_add_qp(struct vb_engine *e, struct vb_qp *qp)
{
	vb_lock_assert_held(&e->lock);
	VB_LIST_PUSH(e->qps, qp, all_next, all_prev);
}

static void timer_unlink(struct vb_engine *e, struct vb_qp *qp)
{
	if (!qp->timer_at)
		return;
	VB_LIST_REMOVE(e->timed, qp, timer_next, timer_prev);
	qp->timer_at = 0;
	if (!e->timed)
		atomic_store_explicit(&e->deadline, 0, memory_order_relaxed);
}

static void runnable_unlink(struct vb_engine *e, struct vb_qp *qp)
{
	struct vb_qp *before = NULL;

	if (!qp->runnable)
		return;
	for (struct vb_qp *at = e->runnable; at && at != qp; at = at->run_next)
		before = at;
	if (before)
		before->run_next = qp->run_next;
	else
		e->runnable = qp->run_next;
	if (e->runnable_last == qp)
		e->runnable_last = before;
}

void vb_engine_remove_qp(struct vb_engine *e, struct vb_qp *qp)
{
	vb_lock_assert_held(&e->lock);
	timer_unlink(e, qp);
	vb_await_end(e, qp);
	runnable_unlink(e, qp);
	VB_LIST_REMOVE(e->qps, qp, all_next, all_prev);
}

void vb_engine_make_runnable(struct vb_engine *e, struct vb_qp *qp)
{
	vb_lock_assert_held(&e->lock);
	if (qp->runnable)
		return;
	vb_engine_put_runnable(e, qp);
	atomic_store_explicit(&e->waiting, true, memory_order_relaxed);
	if (__atomic_load_n(&e->pub->asleep, __ATOMIC_RELAXED))
		vb_engines_watch(e);
}

void vb_engine_timer(struct vb_engine *e, struct vb_qp *qp, uint64_t delay_ns)
{
	vb_lock_assert_held(&e->lock);
	timer_unlink(e, qp);
	if (!delay_ns)
		return;
	uint64_t deadline = atomic_load_explicit(&e->deadline, memory_order_relaxed);

	qp->timer_at = vb_clock_ns() + delay_ns;
	VB_LIST_PUSH(e->timed, qp, timer_next, timer_prev);
	if (!deadline || qp->timer_at < deadline)
		atomic_store_explicit(&e->deadline, qp->timer_at, memory_order_relaxed);
	/*
	 * An engine that is polled sees its timers itself; the progress thread looks every
	 * VB_LEASE_NS anyway.
	 */
	if (__atomic_load_n(&e->pub->asleep, __ATOMIC_RELAXED) || delay_ns > VB_LEASE_NS) {
		vb_engines_watch(e);
		vb_progress_expect(qp->timer_at);
	}
}
