/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Which link a queue pair takes, and the functions by which the protocol uses it. */
#include "qp/link.h"

#include "base/clock.h"
#include "engine/qp.h"

const struct vb_link *vb_qp_link_to(const struct vb_qp *qp, bool near)
{
	const struct vb_link *last = NULL;

	for (uint32_t i = 0; vb_links[i]; i++) {
		last = vb_links[i];
		if (last->reaches && last->reaches(qp, near))
			break;
	}
	return last;
}

void vb_qp_link_tune(struct vb_qp *qp)
{
	struct vb_tqp *t = &qp->t;

	t->link_reliable = qp->link->lossless;
	t->acks_ride = qp->link->acks_ride && t->service == VB_SERVICE_RC;
	t->lends = qp->link->lend && t->service == VB_SERVICE_RC;
	t->window_packets = 0;
	t->max_read_bytes = 0;
	t->read_window_packets = 0;
	t->max_run_bytes = VB_QP_RUN_BYTES;
	if (qp->link->tune && t->service != VB_SERVICE_UD)
		qp->link->tune(qp);
}

bool vb_qp_links_lack(const struct vb_qp *qp)
{
	bool lack = false;

	for (uint32_t i = 0; vb_links[i]; i++)
		lack |= vb_links[i]->lacks && vb_links[i]->lacks(qp, NULL);
	return lack;
}

void vb_qp_links_open(struct vb_qp *qp)
{
	for (uint32_t i = 0; vb_links[i]; i++) {
		if (vb_links[i]->lacks && vb_links[i]->lacks(qp, NULL))
			(void)vb_links[i]->open(qp, NULL);
	}
}

void vb_qp_links_listen(struct vb_qp *qp)
{
	for (uint32_t i = 0; vb_links[i]; i++) {
		if (vb_links[i]->listen)
			vb_links[i]->listen(qp);
	}
}

void vb_qp_link_none(struct vb_qp *qp)
{
	for (uint32_t i = 0; vb_links[i]; i++)
		qp->link = vb_links[i];
	qp->heard = false;
}

void vb_qp_links_release(struct vb_qp *qp)
{
	for (uint32_t i = 0; vb_links[i]; i++) {
		if (vb_links[i]->release)
			vb_links[i]->release(qp);
	}
	vb_qp_link_none(qp);
}

void *vb_qp_link_reserve(struct vb_tqp *t, const struct vb_send_wqe *wqe, const struct vb_run *run)
{
	struct vb_qp *qp = vb_qp_of_tqp(t);

	/* Answers without data are not paced. */
	if (qp->pace.kbps && run->length && !vb_pace_ready(&qp->pace, vb_clock_ns()))
		return NULL;
	if (t->service == VB_SERVICE_UD) {
		if (!wqe)
			return NULL;
		qp->link = vb_qp_link_to(qp, wqe->peer_hint == VB_HINT_LOCAL);
	}
	return qp->link->reserve(qp, wqe, run);
}

void vb_qp_link_commit(struct vb_tqp *t, const struct vb_send_wqe *wqe, const struct vb_run *run)
{
	struct vb_qp *qp = vb_qp_of_tqp(t);

	(void)wqe;
	qp->psn_moved = true;
	if (qp->pace.kbps)
		vb_pace_spend(&qp->pace, run->length);
	qp->link->commit(qp, run);
}

enum vb_direct vb_qp_link_direct(struct vb_tqp *t, struct vb_send_wqe *wqe)
{
	struct vb_qp *qp = vb_qp_of_tqp(t);

	/*
	 * The keys of the device's own requests need not belong to the queue pair's protection
	 * domain.
	 */
	return qp->link->direct && !wqe->owner ? qp->link->direct(qp, wqe) : VB_DIRECT_DECLINED;
}

uint32_t vb_qp_link_direct_list(struct vb_tqp *t, struct vb_send_wqe *wqe)
{
	struct vb_qp *qp = vb_qp_of_tqp(t);

	return qp->link->direct_list && !wqe->owner ? qp->link->direct_list(qp, wqe) : 0;
}

bool vb_qp_link_direct_waits(struct vb_tqp *t, const struct vb_send_wqe *wqe, bool two_sided)
{
	struct vb_qp *qp = vb_qp_of_tqp(t);

	return qp->link->direct_waits && !wqe->owner && qp->link->direct_waits(qp, wqe, two_sided);
}

bool vb_qp_link_lend(struct vb_tqp *t, struct vb_send_wqe *wqe, uint64_t offset, uint32_t length,
		     struct vb_lent *lent)
{
	struct vb_qp *qp = vb_qp_of_tqp(t);

	return qp->link->lend && qp->link->lend(qp, wqe, offset, length, lent);
}

enum vb_fetch vb_qp_link_fetch(struct vb_tqp *t, struct vb_recv_wqe *recv, uint64_t offset,
			       const struct vb_run *run, uint64_t from, enum vb_reason *reason)
{
	struct vb_qp *qp = vb_qp_of_tqp(t);

	return qp->link->fetch ? qp->link->fetch(qp, recv, offset, run, from, reason)
			       : VB_FETCH_DECLINED;
}
