/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Request and reply: the acknowledgement of the request travels with the reply, in one slot of a
 * ring or in one burst of packets.
 *
 * A slot of its own costs each side as much as a message does: cache lines that go from one core to
 * the other. A packet to another host costs several microseconds of system call. The peer waits for
 * both. Therefore, when a program was seen to post at once whenever a message had come, the
 * acknowledgement waits until the next drive. It is then sent with the reply. If the program has
 * polled the message and polls again without a reply, the acknowledgement is sent before anything
 * else, and the habit is over.
 * If the program stops polling, the acknowledgement is owed until the progress thread notices
 * (engine/progress_thread.c).
 *
 * A link that does so calls these functions; all under the engine's lock.
 */
#ifndef VB_ENGINE_REPLY_H
#define VB_ENGINE_REPLY_H

#include <stdbool.h>

#include "engine/cq.h"
#include "engine/qp.h"
#include "transport/run.h"

#define VB_REPLY_HABIT    8u /* so many replies in a row make a habit */
#define VB_REPLY_PATIENCE 4u /* polls, at most, before the message is polled */

/* A run was delivered. */
static inline void vb_reply_heard(struct vb_qp *qp, const struct vb_run *run)
{
	if (!(run->flags & VB_RUN_LAST) || run->op > VB_OP_WRITE)
		return;
	qp->heard = true;
	qp->silent = run->op == VB_OP_WRITE && !(run->flags & VB_RUN_IMM);
}

/* The program has posted. True: an acknowledgement has waited for that. */
static inline bool vb_reply_posted(struct vb_qp *qp)
{
	if (!qp->heard)
		return false;
	qp->heard = false;
	qp->patience = VB_REPLY_PATIENCE;
	if (qp->habit < VB_REPLY_HABIT)
		qp->habit++;
	return qp->runnable && vb_tqp_owes_ack_alone(&qp->t);
}

/* Whether the acknowledgement is to wait for a reply. */
static inline bool vb_reply_expected(const struct vb_qp *qp)
{
	return qp->heard && qp->habit == VB_REPLY_HABIT && qp->patience &&
	       vb_tqp_owes_ack_alone(&qp->t);
}

/*
 * The program polls again, and has not polled the message yet: it looks at another queue first, as
 * one that waits for its own requests' completions does. When it sees a WRITE, nobody knows.
 */
static inline bool vb_reply_unseen(struct vb_qp *qp)
{
	const struct vb_cq *cq = qp->rcq;

	return vb_reply_expected(qp) && --qp->patience &&
	       (qp->silent || atomic_load_explicit(&cq->head, memory_order_relaxed) !=
				      atomic_load_explicit(&cq->tail, memory_order_relaxed));
}

/* vb_link.defer */
static inline bool vb_reply_defer(struct vb_qp *qp, enum vb_turn turn)
{
	if (turn == VB_TURN_ARRIVED)
		return vb_reply_expected(qp);
	if (turn == VB_TURN_AGAIN && vb_reply_unseen(qp))
		return true;
	qp->habit = 0;
	qp->heard = false;
	return false;
}

#endif
