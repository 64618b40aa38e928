/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The shared receive queues of an XRC domain: their numbers, and finding the queue that a request
 * names.
 */
#include <errno.h>

#include "object/context.h"
#include "engine/cq.h"
#include "engine/engine.h"
#include "engine/engines.h"
#include "process/process.h"
#include "qp/qp.h"
#include "engine/srq.h"
#include "xrc/table.h"

#define PLACE(srqn) ((srqn) & (VB_XRC_SRQS - 1))

/*
 * Under the engine's lock and the table's. A free number, the one used longest ago if possible; 0
 * if there is none (place 0 is never used).
 */
static uint32_t number_take(struct vb_xrc_domain *d)
{
	uint32_t *next = d->table ? &d->table->next_srq : &d->next_srq;

	for (uint32_t i = 0; i < VB_XRC_SRQS; i++) {
		uint32_t number = (*next + 1) & VB_SRQN_MASK;
		bool used = d->table ? d->table->srq[PLACE(number)].number
				     : d->srq[PLACE(number)] != NULL;

		*next = number;
		if (PLACE(number) && !used)
			return number;
	}
	return 0;
}

/*
 * Under the engine's lock. Gives the queue a number, which every process of the domain can look up.
 * -EBUSY, -ENOMEM.
 */
static int place_take(struct vb_xrc_domain *d, struct vb_srq *s)
{
	int err = d->table ? vb_xrc_table_lock(d) : 0;

	if (err)
		return err;
	s->number = number_take(d);
	if (s->number) {
		d->srq[PLACE(s->number)] = s;
		d->num_srqs++;
	}
	if (d->table) {
		struct vb_xrc_srq_place *p = &d->table->srq[PLACE(s->number)];

		p->seat = d->seat;
		if (s->number)
			__atomic_store_n(&p->number, s->number, __ATOMIC_RELEASE);
		vb_xrc_table_unlock(d);
	}
	return s->number ? 0
			 : vb_refuse(ENOMEM, VB_REASON_ARG_LIMIT,
				     "create_srq: the XRC domain has %u queues", VB_XRC_SRQS - 1);
}

static struct vb_xrcd *xrcd_of(const struct vb_srq *s)
{
	return s->own;
}

static int add(struct vb_srq *s)
{
	struct vb_xrc_domain *d = xrcd_of(s)->domain;
	int err = vb_process_start_progress();

	if (!err)
		err = vb_cq_attach(s->cq, d->engine);
	if (err)
		return err;
	vb_engine_take(d->engine);
	err = place_take(d, s);
	vb_lock_release(&d->engine->lock);
	if (err)
		vb_cq_detach(s->cq, d->engine);
	return err;
}

/* A message that is being received is abandoned: its next packet names a queue that is gone. */
static void forget(struct vb_qp *body, const struct vb_srq *s)
{
	if (body->recv_srq == s) {
		body->t.resp.recv = NULL;
		body->recv_srq = NULL;
	}
	if (vb_xrc_body_of(body)->srq == s)
		vb_xrc_body_of(body)->srq = NULL;
}

static void retire(struct vb_srq *s)
{
	struct vb_xrc_domain *d = xrcd_of(s)->domain;

	vb_engine_take(d->engine);
	if (d->table)
		__atomic_store_n(&d->table->srq[PLACE(s->number)].number, 0, __ATOMIC_RELEASE);
	d->srq[PLACE(s->number)] = NULL;
	d->num_srqs--;
	for (struct vb_qp *body = d->bodies; body; body = vb_xrc_body_of(body)->next)
		forget(body, s);
	vb_lock_release(&d->engine->lock);
	vb_cq_detach(s->cq, d->engine);
}

static int check(const struct ibv_srq_init_attr_ex *attr)
{
	if ((attr->comp_mask & IBV_SRQ_INIT_ATTR_XRCD) && attr->xrcd &&
	    (attr->comp_mask & IBV_SRQ_INIT_ATTR_CQ) && attr->cq)
		return 0;
	return vb_refuse(EINVAL, VB_REASON_ARG, "create_srq: an XRC queue needs xrcd and cq");
}

/* Gives the queue a place in its domain, and a CQ. */
static int join(struct vb_srq *s, struct ibv_context *ctx, const struct ibv_srq_init_attr_ex *attr)
{
	int err = vb_context_check(ctx, VB_HANDLE_CQ, attr->cq->handle, attr->cq, "cq");

	if (!err)
		err = vb_xrcd_get(ctx, attr->xrcd);
	if (err)
		return err;
	s->own = vb_xrcd_of(attr->xrcd);
	s->cq = vb_cq_of(attr->cq);
	err = add(s);
	if (err)
		vb_xrcd_put(s->own);
	return err;
}

static void leave(struct vb_srq *s)
{
	vb_xrcd_put(s->own);
}

static int admit(enum ibv_qp_type type)
{
	(void)type;
	return vb_refuse(EINVAL, VB_REASON_ARG, "create_qp: the srq is an XRC queue");
}

const struct vb_srq_kind vb_xrc_srq = {
	.check = check,
	.open = join,
	.retire = retire,
	.close = leave,
	.admit = admit,
};

int vb_srq_number(struct ibv_srq *srq, uint32_t *number)
{
	struct vb_srq *s = vb_srq_of(srq);
	int err = vb_context_check(srq->context, VB_HANDLE_SRQ, srq->handle, s, "srq");

	if (err)
		return err;
	if (s->kind != &vb_xrc_srq)
		return vb_refuse(EINVAL, VB_REASON_ARG,
				 "get_srq_num: only an XRC queue has a number");
	*number = s->number;
	return 0;
}

enum vb_reason vb_xrc_srq_enter(struct vb_tqp *t, uint32_t srqn)
{
	struct vb_qp *body = vb_qp_of_tqp(t);
	struct vb_srq *s = vb_xrc_body_of(body)->domain->srq[PLACE(srqn)];

	if (!s || s->number != srqn) {
		vb_xrc_body_of(body)->srq = NULL;
		vb_note(VB_REASON_SRQ_UNKNOWN, "qp 0x%x: the XRC domain has no queue 0x%x", t->qpn,
			srqn);
		return VB_REASON_SRQ_UNKNOWN;
	}
	vb_xrc_body_of(body)->srq = s;
	/* Rkeys are also those of the queue's protection domain (IBA A14). */
	body->pd_id = s->pd_id;
	return VB_REASON_NONE;
}
