/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Packet pacing: credit, and the verb that sets the rate. */
#include "engine/pace.h"

#include <errno.h>

#include "base/reason.h"
#include "object/context.h"
#include "process/limits.h"
#include "qp/qp.h"
#include "remote/qp.h"
#include "transport/qp_state.h"

#define UNITS_PER_BYTE 8000000ll
#define DEFAULT_NS     4000000ll     /* somebody who waits is looked at every 2 ms at the latest */
#define LONGEST_NS     1000000000ull /* more time than this counts as so much: no product overflows */

void vb_pace_set(struct vb_pace *p, uint32_t kbps, uint32_t burst_bytes, uint64_t now)
{
	int64_t least = (int64_t)VB_MTU_BYTES * UNITS_PER_BYTE;

	p->kbps = kbps;
	p->burst = burst_bytes ? burst_bytes * UNITS_PER_BYTE : kbps * DEFAULT_NS;
	if (!burst_bytes && p->burst < least)
		p->burst = least;
	p->credit = p->burst;
	p->filled = now;
}

bool vb_pace_ready(struct vb_pace *p, uint64_t now)
{
	uint64_t passed = now > p->filled ? now - p->filled : 0;

	if (passed > LONGEST_NS)
		passed = LONGEST_NS;
	p->filled = now;
	p->credit += (int64_t)(passed * p->kbps);
	if (p->credit > p->burst)
		p->credit = p->burst;
	return p->credit > 0;
}

void vb_pace_spend(struct vb_pace *p, uint64_t bytes)
{
	p->credit -= (int64_t)bytes * UNITS_PER_BYTE;
}

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

/* No run is longer than the burst, whatever the link would take (under the engine's lock). */
static void shorten_runs(struct vb_qp *qp)
{
	struct vb_tqp *t = &qp->t;
	uint64_t packets;

	if (t->service == VB_SERVICE_UD) /* one packet is a run */
		return;
	vb_udp_qp_tune(qp, qp->path_local);
	if (!qp->pace.kbps)
		return;
	packets = (uint64_t)(qp->pace.burst / UNITS_PER_BYTE) / t->mtu;
	if (packets < t->max_run_bytes / t->mtu)
		t->max_run_bytes = packets ? (uint32_t)packets * t->mtu : t->mtu;
}

int vb_pace_modify(struct ibv_qp *ibqp, const struct ibv_qp_rate_limit_attr *attr)
{
	struct vb_qp *qp = vb_qp_of(ibqp);
	int err = vb_context_check(ibqp->context, VB_HANDLE_QP, ibqp->handle, qp, "qp");

	if (err)
		return err;
	if (!(VB_PACE_TYPES & 1u << ibqp->qp_type))
		return vb_refuse(EINVAL, VB_REASON_ARG,
				 "modify_qp_rate_limit: not for queue pairs of type %d",
				 (int)ibqp->qp_type);
	vb_lock_take(&qp->engine->lock);
	err = attr_check(qp, attr);
	if (!err) {
		vb_pace_set(&qp->pace, attr->rate_limit, attr->max_burst_sz, vb_clock_ns());
		qp->attr.rate_limit = attr->rate_limit;
		shorten_runs(qp);
	}
	vb_lock_release(&qp->engine->lock);
	return err;
}
