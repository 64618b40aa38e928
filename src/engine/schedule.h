/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Which queue pairs an engine has, and which of them it must run, now or at some time. */
#ifndef VB_ENGINE_SCHEDULE_H
#define VB_ENGINE_SCHEDULE_H

#include <stdint.h>

#include "engine/engine.h"
#include "engine/qp.h"

/* Under the lock: the queue pair belongs to the engine from now on. */
void vb_engine_add_qp(struct vb_engine *engine, struct vb_qp *qp);
/* Under the lock: forgets the queue pair (destroy). */
void vb_engine_remove_qp(struct vb_engine *engine, struct vb_qp *qp);
/* Under the lock: the queue pair has work for the next drive. */
void vb_engine_make_runnable(struct vb_engine *engine, struct vb_qp *qp);
/*
 * The same where drives go on anyway: the queue pair was taken from the list in this drive, and its
 * turn comes again in the next one.
 */
static inline void vb_engine_put_runnable(struct vb_engine *e, struct vb_qp *qp)
{
	qp->runnable = true;
	qp->run_next = e->runnable;
	if (!e->runnable)
		e->runnable_last = qp;
	e->runnable = qp;
}
/*
 * Under the lock: what the queue pair was to do in the next drive is done. It leaves the list if it
 * is alone there; else that drive finds nothing to do for it.
 */
static inline void vb_engine_unneeded(struct vb_engine *e, struct vb_qp *qp)
{
	if (!qp->runnable || e->runnable != qp || qp->run_next)
		return;
	qp->runnable = false;
	e->runnable = NULL;
	__atomic_store_n(&e->deferred, false, __ATOMIC_RELAXED);
	atomic_store_explicit(&e->waiting, false, memory_order_relaxed);
}
/* Under the lock: env->queue.timer. 0: no timer any more. */
void vb_engine_timer(struct vb_engine *engine, struct vb_qp *qp, uint64_t delay_ns);

#endif
