/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The table of the link between hosts. */
#include "engine/engine.h"
#include "engine/reply.h"
#include "qp/qp.h"
#include "remote/admit.h"
#include "remote/deliver.h"
#include "remote/link.h"
#include "remote/part.h"
#include "remote/qp.h"
#include "remote/steer.h"
#include "remote/stray.h"
#include "remote/udp.h"

/* A datagram is sent by the sockets that its queue pair holds, or not at all. */
static bool reaches(const struct vb_qp *qp, bool near)
{
	return !near && (qp->t.service != VB_SERVICE_UD || (qp->remote && qp->remote->families));
}

static void *reserve(struct vb_qp *qp, const struct vb_send_wqe *wqe, const struct vb_run *run)
{
	(void)wqe;
	return vb_udp_reserve(qp, run->length);
}

static bool posted(struct vb_qp *qp, bool *more)
{
	if (!vb_reply_posted(qp))
		return false;
	vb_udp_pair_begin(qp);
	*more = vb_tqp_run_reply(&qp->t);
	vb_udp_pair_end(qp);
	return true;
}

static bool drain(struct vb_engine *e, bool polled)
{
	bool worked = vb_udp_deliver_late(e);

	if (e->reads)
		worked |= vb_udp_link_drain(e, polled);
	return worked;
}

/* With right steering the packet would have come to this process directly. */
static void passed(struct vb_engine *e, const struct vb_run *run, const uint8_t *payload)
{
	if (run->src_qpn != VB_QPN_SERVICES) /* queue pair 1 is in every process */
		vb_udp_steer_lost();
	vb_udp_admit(e, run, payload);
}

/* The engine is in no list any more. */
static void fini(struct vb_engine *e)
{
	vb_udp_stray_fini(e);
	vb_udp_engine_fini(e);
}

static void lost(struct vb_engine *e, struct vb_channel *channel, bool peer_dead)
{
	(void)peer_dead;
	vb_udp_stray_forget(e, channel);
}

const struct vb_link vb_udp_link = {
	.name = "udp",
	.reaches = reaches,
	.path_check = vb_udp_qp_path_check,
	.lacks = vb_udp_qp_lacks,
	.open = vb_udp_qp_open,
	.connect = vb_udp_qp_connect,
	.listen = vb_udp_qp_datagrams,
	.tune = vb_udp_qp_tune,
	.release = vb_udp_qp_release,
	.reserve = reserve,
	.commit = vb_udp_commit,
	.posted = posted,
	.defer = vb_reply_defer,
	.drain = drain,
	.passed = passed,
	.lost = lost,
	.leave = vb_udp_stray_finish,
	.fini = fini,
};
