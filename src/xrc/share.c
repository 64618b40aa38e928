/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A receive queue pair that several processes see: what this process's body takes from the shared
 * table, and what it leaves there.
 */
#include <stddef.h>
#include <string.h>

#include "engine/engine.h"
#include "process/limits.h"
#include "qp/parts.h"
#include "qp/qp.h"
#include "engine/srq.h"
#include "xrc/table.h"
#include "transport/psn.h"

static struct vb_xrc_qp_place *place(const struct vb_qp *body)
{
	return vb_xrc_place(vb_xrc_body_of(body)->domain, vb_xrc_shared_of(body)->place);
}

bool vb_xrc_is_gone(const struct vb_qp *body)
{
	return __atomic_load_n(&place(body)->qpn, __ATOMIC_ACQUIRE) != body->t.qpn;
}

/* Other values do not reach the protocol. */
static bool plausible(const struct ibv_qp_attr *a, uint32_t state)
{
	return state <= IBV_QPS_ERR && a->max_dest_rd_atomic <= VB_MAX_RD_ATOMIC &&
	       a->dest_qp_num <= VB_QPN_MASK && a->rq_psn <= VB_PSN_MASK &&
	       (state < IBV_QPS_RTR || state >= IBV_QPS_ERR ||
		(a->path_mtu >= IBV_MTU_256 && a->path_mtu <= IBV_MTU_4096));
}

static void pull_attributes(struct vb_qp *body)
{
	struct vb_xrc_qp_place *p = place(body);
	uint32_t version = __atomic_load_n(&p->version, __ATOMIC_ACQUIRE);
	struct ibv_qp_attr attr;
	uint32_t state;

	if (version == vb_xrc_shared_of(body)->version)
		return;
	vb_xrc_shared_of(body)->version = version;
	memcpy(&attr, &p->attr, sizeof(attr));
	state = __atomic_load_n(&p->state, __ATOMIC_RELAXED);
	if (!plausible(&attr, state)) {
		vb_note(VB_REASON_PEER_CORRUPT, "xrc: qp 0x%x: impossible attributes", body->t.qpn);
		state = IBV_QPS_ERR;
		attr = body->attrs->set;
	}
	vb_qp_mirror(body, &attr, (enum ibv_qp_state)state);
}

/*
 * READs and ATOMICs that may be requested again. An answer that is owed is owed by the process that
 * executed the request.
 */
static void pull_resources(struct vb_responder *to, const struct vb_xrc_qp_place *from)
{
	uint32_t known = to->res_known < VB_MAX_RD_ATOMIC ? to->res_known : VB_MAX_RD_ATOMIC;

	to->res_known = known;
	for (uint32_t n = to->res_head - known; n != to->res_head; n++) {
		struct vb_resource *r = vb_resource_at(to, n);

		*r = from->res[n % VB_RESOURCES];
		r->active = false;
	}
}

static void pull_responder(struct vb_qp *body)
{
	struct vb_xrc_qp_place *p = place(body);
	struct vb_responder *r = &body->t.resp;
	uint32_t saves = __atomic_load_n(&p->saves, __ATOMIC_ACQUIRE);
	struct vb_recv_wqe *recv = r->recv;

	if (saves == vb_xrc_shared_of(body)->saves)
		return;
	vb_xrc_shared_of(body)->saves = saves;
	memcpy(r, &p->resp, offsetof(struct vb_responder, res));
	r->epsn &= VB_PSN_MASK;
	r->msn &= VB_PSN_MASK;
	r->ack_psn &= VB_PSN_MASK;
	r->owed = 0;
	r->res_serve = r->res_head;
	pull_resources(r, p);
	vb_xrc_shared_of(body)->res_saved = r->res_head;
	/*
	 * A receive belongs to its process. A message that has begun elsewhere cannot continue here
	 * without it.
	 */
	r->recv = recv;
	if (r->message != VB_OP_WRITE &&
	    (r->message != VB_OP_SEND || !recv || r->done > recv->length)) {
		r->message = VB_OP_COUNT;
		r->done = 0;
	}
	if (recv && r->message == VB_OP_COUNT)
		vb_responder_recv_return(&body->t);
}

void vb_xrc_pull(struct vb_qp *body)
{
	pull_attributes(body);
	pull_responder(body);
}

void vb_xrc_save(struct vb_qp *body)
{
	struct vb_xrc_qp_place *p = place(body);
	const struct vb_responder *r = &body->t.resp;

	memcpy(&p->resp, r, offsetof(struct vb_responder, res));
	if (r->res_head - vb_xrc_shared_of(body)->res_saved > VB_RESOURCES)
		vb_xrc_shared_of(body)->res_saved =
			r->res_head - (r->res_known < VB_RESOURCES ? r->res_known : 0);
	for (; vb_xrc_shared_of(body)->res_saved != r->res_head;
	     vb_xrc_shared_of(body)->res_saved++)
		p->res[vb_xrc_shared_of(body)->res_saved % VB_RESOURCES] =
			*vb_resource_at(r, vb_xrc_shared_of(body)->res_saved);
	vb_xrc_shared_of(body)->saves = __atomic_add_fetch(&p->saves, 1, __ATOMIC_RELEASE);
}

void vb_xrc_leave(struct vb_qp *body)
{
	struct vb_xrc_qp_place *p = place(body);

	memcpy(&p->attr, &body->attrs->set, sizeof(p->attr));
	__atomic_store_n(&p->state, body->t.state, __ATOMIC_RELAXED);
	vb_xrc_shared_of(body)->version = __atomic_add_fetch(&p->version, 1, __ATOMIC_RELEASE);
	if (body->t.state == IBV_QPS_RESET) /* requests of a former connection */
		vb_xrc_forget_held(body);
	/*
	 * While the queue pair serves, the responder belongs to the process whose turn it is to
	 * execute. A change of state before or after that starts the responder afresh.
	 */
	if (body->t.state != IBV_QPS_RTS && body->t.state != IBV_QPS_SQD)
		vb_xrc_save(body);
}
