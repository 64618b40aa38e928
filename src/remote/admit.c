/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A queue pair takes a packet from the wire (admit.h). */
#include "remote/admit.h"

#include <string.h>

#include "base/reason.h"
#include "engine/count.h"
#include "engine/engine.h"
#include "engine/hook.h"
#include "engine/reply.h"
#include "engine/settle.h"
#include "qp/qp.h"
#include "remote/drop.h"
#include "remote/part.h"
#include "remote/udp.h"
#include "udp/address.h"

/*
 * The rules of the wire that shared memory does not need: which host may send to this queue pair.
 */
static enum vb_reason judge(const struct vb_qp *qp, const struct vb_run *run)
{
	if (!qp->remote || !qp->remote->families)
		return vb_udp_no_part(qp->engine->node, run->dest_qpn);
	if (qp->t.service == VB_SERVICE_UD)
		return VB_REASON_NONE;
	return qp->link != &vb_udp_link || memcmp(run->path.sgid, qp->path.dgid, 16)
		       ? VB_REASON_DROP_SOURCE
		       : VB_REASON_NONE;
}

void vb_udp_admit(struct vb_engine *e, const struct vb_run *run, const uint8_t *payload)
{
	struct vb_qp *qp = vb_qp_lookup(e, run->dest_qpn);
	enum vb_reason reason = qp ? judge(qp, run) : VB_REASON_DROP_QPN;

	if (!qp && vb_engine_hooks_take(e, run, payload, true))
		return;
	if (reason) {
		vb_count_arrived(e, run);
		vb_count_fault(e, reason);
		vb_udp_drop(reason, run);
		return;
	}
	if (qp->t.service != VB_SERVICE_UD)
		vb_reply_heard(qp, run);
	else if (e->port && vb_udp_is_multicast(run->path.dgid))
		e->port->rx_multicast += run->segments;
	vb_qp_arrived(qp, run, payload);
}
