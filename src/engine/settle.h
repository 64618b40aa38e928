/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What follows when the protocol has run, or a run has arrived. All under the engine's lock. */
#ifndef VB_ENGINE_SETTLE_H
#define VB_ENGINE_SETTLE_H

#include "engine/qp.h"
#include "engine/schedule.h"

/* The state became ERR. Flushes receives, raises LAST_WQE_REACHED. */
void vb_qp_entered_error(struct vb_qp *qp);
/* Does what callbacks could only note while the protocol ran. */
void vb_qp_settle(struct vb_qp *qp);
/*
 * Something has happened to the queue pair. Does what follows from it, and makes it runnable for the
 * next drive.
 */
static inline void vb_qp_touched(struct vb_qp *qp)
{
	vb_qp_settle(qp);
	vb_engine_make_runnable(qp->engine, qp);
}
/* Flushes posted receives of its own queue as errors. */
void vb_qp_flush_receives(struct vb_qp *qp);
/* A run has arrived for the queue pair, by whatever link. */
void vb_qp_arrived(struct vb_qp *qp, const struct vb_run *run, const void *payload);

#endif
