/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Request and reply between hosts: the acknowledgement of the request travels with the reply.
 *
 * A packet to another host costs several microseconds of system call, and the peer waits for both.
 * Therefore, when a program was seen to post at once whenever a message had come, the
 * acknowledgement waits until the next drive. It is then sent in one burst with the reply, or
 * behind it. If the program polls again without a reply, the acknowledgement is sent before
 * anything else, and the habit is over. If the program stops polling, the acknowledgement is owed
 * until the progress thread notices (engine/progress_thread.c).
 *
 * All under the engine's lock.
 */
#ifndef VB_REMOTE_REPLY_H
#define VB_REMOTE_REPLY_H

#include <stdbool.h>

#include "qp/qp.h"
#include "remote/part.h"
#include "transport/run.h"

#define VB_UDP_HABIT 8u /* so many replies in a row make a habit */

/* A run was delivered. */
static inline void vb_udp_reply_heard(struct vb_qp *qp, const struct vb_run *run)
{
	if (run->flags & VB_RUN_LAST &&
	    (run->op == VB_OP_SEND || (run->op == VB_OP_WRITE && run->flags & VB_RUN_IMM)))
		qp->heard = true;
}

/* The program has posted. True: an acknowledgement has waited for that. */
static inline bool vb_udp_reply_posted(struct vb_qp *qp)
{
	if (!qp->heard)
		return false;
	qp->heard = false;
	if (qp->remote->habit < VB_UDP_HABIT)
		qp->remote->habit++;
	return qp->runnable && vb_tqp_owes_ack_alone(&qp->t);
}

/* Whether the acknowledgement is to wait for a reply. */
static inline bool vb_udp_reply_expected(const struct vb_qp *qp)
{
	return qp->heard && qp->remote->habit == VB_UDP_HABIT && vb_tqp_owes_ack_alone(&qp->t);
}

/* The program polls again and has not posted: the habit is over. */
static inline void vb_udp_reply_over(struct vb_qp *qp)
{
	qp->remote->habit = 0;
	qp->heard = false;
}

#endif
