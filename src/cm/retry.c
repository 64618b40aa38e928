/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Tries of REQ, REP, DREQ and SIDR_REQ.
 *
 * Linux tries 16 times, in distances of 6.1 s (REQ, an active side's DREQ) or 4.1 s (the others).
 * Here the first tries have a distance of one second, so that a lost packet costs less; the later
 * ones have that of Linux. The whole time is the same, so programs see a peer's silence after the
 * usual time.
 */
#include <errno.h>

#include "cm/core.h"

#define FAST_TRIES   5u
#define WHOLE_TRIES  16u
#define MRAS_MOST    16u
/* What is added to the time that an MRA asks for: the way of the answer. */
#define MRA_SLACK_NS 2000000000ull

uint64_t vb_cm_mra_ns(uint8_t code)
{
	return 4096ull << (code < VB_CM_MRA_TIMEOUT ? code : VB_CM_MRA_TIMEOUT);
}

static uint64_t late_distance(const struct vb_cm *cm, const struct vb_cm_conn *conn)
{
	if (conn->state == VB_CM_REQ_SENT || (conn->state == VB_CM_DREQ_SENT && conn->active))
		return cm->times.request;
	return cm->times.reply;
}

static void wait_for_answer(struct vb_cm *cm, struct vb_cm_conn *conn, uint64_t now)
{
	uint64_t late = late_distance(cm, conn);
	uint64_t due = now + (conn->tries < FAST_TRIES ? cm->times.fast : late);

	vb_cm_heap_set(&cm->timers, &conn->timer, due < conn->give_up ? due : conn->give_up);
}

void vb_cm_retry_start(struct vb_cm *cm, struct vb_cm_conn *conn, enum vb_cm_state state,
		       uint64_t now)
{
	vb_cm_wait_end(cm, conn);
	conn->state = (uint8_t)state;
	conn->tries = 0;
	conn->mras = 0;
	conn->mra = false;
	conn->give_up = now + WHOLE_TRIES * late_distance(cm, conn);
	vb_cm_send_again(cm, conn);
	wait_for_answer(cm, conn, now);
}

void vb_cm_retry_stop(struct vb_cm *cm, struct vb_cm_conn *conn)
{
	vb_cm_wait_end(cm, conn);
	vb_cm_heap_remove(&cm->timers, &conn->timer);
}

bool vb_cm_retry_stretch(struct vb_cm *cm, struct vb_cm_conn *conn, uint8_t service_timeout,
			 uint64_t now)
{
	uint64_t due = now + vb_cm_mra_ns(service_timeout) + MRA_SLACK_NS;

	if (conn->mra || conn->mras >= MRAS_MOST)
		return false;
	conn->mras++;
	conn->mra = true;
	conn->give_up = due + WHOLE_TRIES * late_distance(cm, conn);
	vb_cm_heap_set(&cm->timers, &conn->timer, due);
	return true;
}

/* Nobody answers. The peer is told with REJ, in case that it hears better than it is heard. */
static void gave_up(struct vb_cm *cm, struct vb_cm_conn *conn, uint64_t now)
{
	cm->env->drop(cm, VB_REASON_CM_TIMEOUT, &conn->path, NULL);
	if (conn->state == VB_CM_REQ_SENT || conn->state == VB_CM_REP_SENT)
		vb_cm_send_rej(cm, conn, VB_CM_REJ_TIMEOUT, NULL, 0);
	if (conn->state == VB_CM_DREQ_SENT || conn->closing) {
		vb_cm_disconnected(cm, conn, -ETIMEDOUT, now);
		return;
	}
	if (conn->state == VB_CM_SIDR_REQ_SENT)
		vb_cm_conn_idle(cm, conn);
	else
		vb_cm_conn_remember(cm, conn, VB_CM_REJ_SENT, now);
	vb_cm_report_plain(cm, conn, VB_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
	vb_cm_conn_put(cm, conn);
}

/* conn->give_up is the moment at which the answer is forgotten. */
void vb_cm_retry_unasked(struct vb_cm *cm, struct vb_cm_conn *conn, uint64_t now)
{
	conn->give_up = conn->timer.due;
	conn->tries = 0;
	vb_cm_heap_set(&cm->timers, &conn->timer, now + cm->times.fast);
}

/* True: the answer was repeated, or is waiting for the end of its time. */
static bool repeat_unasked(struct vb_cm *cm, struct vb_cm_conn *conn, uint64_t now)
{
	if (now >= conn->give_up)
		return false;
	conn->tries++;
	vb_cm_send_again(cm, conn);
	vb_cm_heap_set(&cm->timers, &conn->timer,
		       conn->tries < FAST_TRIES ? now + cm->times.fast : conn->give_up);
	return true;
}

/*
 * Where requests find no room, a response is given up when its sender has said nothing to the fast
 * tries. One that is there has answered: with RTU, or with MRA where its program takes its time.
 */
static bool given_up_early(const struct vb_cm *cm, const struct vb_cm_conn *conn, uint64_t now)
{
	return conn->state == VB_CM_REP_SENT && conn->tries + 1u >= FAST_TRIES && !conn->mras &&
	       !conn->path.near && vb_cm_is_pressed(cm, now);
}

void vb_cm_retry_expired(struct vb_cm *cm, struct vb_cm_conn *conn, uint64_t now)
{
	if (conn->state == VB_CM_REJ_SENT || conn->state == VB_CM_SIDR_REP_SENT) {
		if (!repeat_unasked(cm, conn, now)) {
			vb_cm_conn_idle(cm, conn);
			vb_cm_conn_put(cm, conn);
		}
		return;
	}
	if (now >= conn->give_up || given_up_early(cm, conn, now)) {
		gave_up(cm, conn, now);
		return;
	}
	if (conn->tries < FAST_TRIES)
		conn->tries++;
	conn->mra = false;
	vb_cm_send_again(cm, conn);
	wait_for_answer(cm, conn, now);
}
