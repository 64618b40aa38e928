/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Shared receive queues: ibv_create_srq(3), ibv_create_srq_ex(3), ibv_modify_srq(3). */
#include "verbs/events_wait.h"
#include "verbs/face.h"
#include "verbs/slots.h"

static struct ibv_srq *create(struct ibv_context *ctx, struct ibv_srq_init_attr_ex *attr)
{
	struct ibv_srq *srq = NULL;
	int err = vb_ops(ctx)->create_srq(ctx, attr, &srq);

	if (err)
		return vb_answer_null(err);
	pthread_mutex_init(&srq->mutex, NULL);
	pthread_cond_init(&srq->cond, NULL);
	srq->events_completed = 0;
	return srq;
}

VB_EXPORT struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	struct ibv_srq_init_attr_ex given = {0};
	struct ibv_srq *srq;

	if (!pd || !attr)
		return vb_answer_null(vb_refuse_null("create_srq", pd ? "srq_init_attr" : "pd"));
	given.srq_context = attr->srq_context;
	given.attr = attr->attr;
	given.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD;
	given.srq_type = IBV_SRQT_BASIC;
	given.pd = pd;
	srq = create(pd->context, &given);
	if (srq)
		attr->attr = given.attr;
	return srq;
}

static int check_init_attr(const struct ibv_srq_init_attr_ex *attr)
{
	int err;

	if (!attr)
		return vb_refuse_null("create_srq_ex", "srq_init_attr_ex");
	err = vb_check_mask("create_srq_ex", "comp_mask", attr->comp_mask,
			    IBV_SRQ_INIT_ATTR_RESERVED - 1);
	if (!err && (attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE) &&
	    (unsigned int)attr->srq_type > IBV_SRQT_TM)
		err = vb_refuse(EINVAL, VB_REASON_ARG, "create_srq_ex: type %d",
				(int)attr->srq_type);
	if (!err && (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_PD) || !attr->pd))
		err = vb_refuse_null("create_srq_ex", "pd");
	return err;
}

/* A basic queue may come with attributes that only other types use; they are ignored. */
struct ibv_srq *vb_slot_create_srq_ex(struct ibv_context *ctx, struct ibv_srq_init_attr_ex *attr)
{
	struct ibv_srq_init_attr_ex given;
	struct ibv_srq *srq;
	int err = check_init_attr(attr);

	if (err)
		return vb_answer_null(err);
	given = *attr;
	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE))
		given.srq_type = IBV_SRQT_BASIC;
	if (given.srq_type == IBV_SRQT_BASIC)
		given.comp_mask = IBV_SRQ_INIT_ATTR_PD;
	given.comp_mask |= IBV_SRQ_INIT_ATTR_TYPE;
	srq = create(ctx, &given);
	if (srq)
		attr->attr = given.attr;
	return srq;
}

VB_EXPORT int ibv_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask)
{
	int err;

	if (!srq || !attr)
		return vb_answer(vb_refuse_null("modify_srq", srq ? "srq_attr" : "srq"));
	err = vb_check_mask("modify_srq", "srq_attr_mask", (unsigned int)mask,
			    IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT);
	if (!err)
		err = vb_ops(srq->context)->modify_srq(srq, attr, mask);
	return vb_answer(err);
}

VB_EXPORT int ibv_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr)
{
	struct ibv_srq_attr found = {0};
	int err;

	if (!srq || !attr)
		return vb_answer(vb_refuse_null("query_srq", srq ? "srq_attr" : "srq"));
	err = vb_ops(srq->context)->query_srq(srq, &found);
	if (!err)
		*attr = found;
	return vb_answer(err);
}

VB_EXPORT int ibv_destroy_srq(struct ibv_srq *srq)
{
	struct vb_events_got got = {0};
	const struct vb_ops *ops;
	int err;

	if (!srq)
		return vb_answer(vb_refuse_null("destroy_srq", "srq"));
	ops = vb_ops(srq->context);
	err = ops->retire_srq(srq, &got);
	if (err)
		return vb_answer(err);
	vb_acks_wait((struct vb_acks){&srq->mutex, &srq->cond, &srq->events_completed}, got.async);
	pthread_cond_destroy(&srq->cond);
	pthread_mutex_destroy(&srq->mutex);
	ops->free_srq(srq);
	return 0;
}

/* ibv_post_srq_ops(3) */
int vb_slot_post_srq_ops(struct ibv_srq *srq, struct ibv_ops_wr *wr, struct ibv_ops_wr **bad_wr)
{
	return vb_answer(vb_ops(srq->context)->post_srq_ops(srq, wr, bad_wr));
}
