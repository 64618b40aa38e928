/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ibv_modify_qp_rate_limit(3). */
#include <errno.h>

#include "base/reason.h"
#include "engine/engines.h"
#include "engine/pace.h"
#include "object/context.h"
#include "qp/parts.h"
#include "qp/link.h"
#include "qp/qp.h"
#include "transport/qp_state.h"

static int attr_check(const struct vb_qp *qp, const struct ibv_qp_rate_limit_attr *attr)
{
	if (attr->comp_mask)
		return vb_refuse(EINVAL, VB_REASON_ARG_MASK, "modify_qp_rate_limit: comp_mask 0x%x",
				 attr->comp_mask);
	if (attr->rate_limit > VB_PACE_MAX_KBPS)
		return vb_refuse(EINVAL, VB_REASON_ARG_LIMIT,
				 "modify_qp_rate_limit: %u kbps exceeds %u", attr->rate_limit,
				 VB_PACE_MAX_KBPS);
	if (!attr->rate_limit && (attr->max_burst_sz || attr->typical_pkt_sz))
		return vb_refuse(EINVAL, VB_REASON_ARG,
				 "modify_qp_rate_limit: a burst or packet size without a rate");
	if (qp->t.state != IBV_QPS_RTS)
		return vb_refuse(EINVAL, VB_REASON_QP_STATE,
				 "modify_qp_rate_limit: qp 0x%x is in %s, not in RTS", qp->t.qpn,
				 vb_qp_state_name(qp->t.state));
	return 0;
}

/* No run is longer than the burst, whatever the link would carry. Under the engine's lock. */
static void shorten_runs(struct vb_qp *qp)
{
	struct vb_tqp *t = &qp->t;
	uint64_t packets;

	if (t->service == VB_SERVICE_UD) /* a run is one packet */
		return;
	vb_qp_link_tune(qp);
	if (!qp->pace.kbps)
		return;
	packets = vb_pace_burst_bytes(&qp->pace) / t->mtu;
	if (packets < t->max_run_bytes / t->mtu)
		t->max_run_bytes = packets ? (uint32_t)packets * t->mtu : t->mtu;
}

int vb_qp_modify_rate_limit(struct ibv_qp *ibqp, const struct ibv_qp_rate_limit_attr *attr)
{
	struct vb_qp *qp = vb_qp_of(ibqp);
	int err = vb_context_check(ibqp->context, VB_HANDLE_QP, ibqp->handle, qp, "qp");

	if (err)
		return err;
	if (!(VB_PACE_TYPES & 1u << ibqp->qp_type))
		return vb_refuse(EINVAL, VB_REASON_ARG,
				 "modify_qp_rate_limit: not for queue pairs of type %d",
				 (int)ibqp->qp_type);
	vb_engine_take(qp->engine);
	err = attr_check(qp, attr);
	if (!err) {
		vb_pace_set(&qp->pace, attr->rate_limit, attr->max_burst_sz, vb_clock_ns());
		qp->attrs->set.rate_limit = attr->rate_limit;
		shorten_runs(qp);
	}
	vb_lock_release(&qp->engine->lock);
	return err;
}
