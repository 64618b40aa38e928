/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Completion queues: ibv_create_cq(3), ibv_create_cq_ex(3), ibv_resize_cq(3), ibv_modify_cq(3). */
#include "verbs/events_wait.h"
#include "verbs/face.h"
#include "verbs/slots.h"

static struct vb_acks comp_acks(struct ibv_cq *cq)
{
	return (struct vb_acks){&cq->mutex, &cq->cond, &cq->comp_events_completed};
}

static struct vb_acks async_acks(struct ibv_cq *cq)
{
	return (struct vb_acks){&cq->mutex, &cq->cond, &cq->async_events_completed};
}

/*
 * No thread can have fetched an event of a queue that no thread has seen: the counters may start
 * here.
 */
static struct ibv_cq *create(struct ibv_context *ctx, const struct ibv_cq_init_attr_ex *attr,
			     bool extended)
{
	struct ibv_cq *cq = NULL;
	int err = vb_ops(ctx)->create_cq(ctx, attr, extended, &cq);

	if (err)
		return vb_answer_null(err);
	pthread_mutex_init(&cq->mutex, NULL);
	pthread_cond_init(&cq->cond, NULL);
	cq->comp_events_completed = 0;
	cq->async_events_completed = 0;
	return cq;
}

VB_EXPORT struct ibv_cq *ibv_create_cq(struct ibv_context *ctx, int cqe, void *cq_context,
				       struct ibv_comp_channel *channel, int comp_vector)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = (uint32_t)cqe,
		.cq_context = cq_context,
		.channel = channel,
		.comp_vector = (uint32_t)comp_vector,
		.wc_flags = IBV_WC_STANDARD_FLAGS,
	};

	if (!ctx)
		return vb_answer_null(vb_refuse_null("create_cq", "context"));
	if (cqe <= 0 || comp_vector < 0)
		return vb_answer_null(vb_refuse(EINVAL, VB_REASON_ARG,
						"create_cq: cqe %d, comp_vector %d", cqe,
						comp_vector));
	return create(ctx, &attr, false);
}

static int check_init_attr(const struct ibv_cq_init_attr_ex *attr)
{
	int err;

	if (!attr)
		return vb_refuse_null("create_cq_ex", "cq_attr");
	err = vb_check_mask("create_cq_ex", "comp_mask", attr->comp_mask,
			    IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD);
	if (!err && (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS))
		err = vb_check_mask("create_cq_ex", "flags", attr->flags,
				    IBV_CREATE_CQ_ATTR_SINGLE_THREADED |
					    IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN);
	if (!err)
		err = vb_check_flags("create_cq_ex", "wc_flags", attr->wc_flags,
				     IBV_CREATE_CQ_SUP_WC_FLAGS);
	if (!err && (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD) && !attr->parent_domain)
		err = vb_refuse_null("create_cq_ex", "parent_domain");
	if (!err && !attr->cqe)
		err = vb_refuse(EINVAL, VB_REASON_ARG, "create_cq_ex: cqe 0");
	return err;
}

struct ibv_cq_ex *vb_slot_create_cq_ex(struct ibv_context *ctx, struct ibv_cq_init_attr_ex *attr)
{
	struct ibv_cq_init_attr_ex given;
	int err = check_init_attr(attr);

	if (err)
		return vb_answer_null(err);
	given = *attr;
	if (!(given.comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS))
		given.flags = 0;
	if (!(given.comp_mask & IBV_CQ_INIT_ATTR_MASK_PD))
		given.parent_domain = NULL;
	return (struct ibv_cq_ex *)create(ctx, &given, true);
}

VB_EXPORT int ibv_resize_cq(struct ibv_cq *cq, int cqe)
{
	if (!cq)
		return vb_answer(vb_refuse_null("resize_cq", "cq"));
	if (cqe <= 0)
		return vb_answer(vb_refuse(EINVAL, VB_REASON_ARG, "resize_cq: cqe %d", cqe));
	return vb_answer(vb_ops(cq->context)->resize_cq(cq, cqe));
}

int vb_slot_modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr)
{
	int err;

	if (!cq || !attr)
		return vb_answer(vb_refuse_null("modify_cq", cq ? "attr" : "cq"));
	err = vb_check_mask("modify_cq", "attr_mask", attr->attr_mask, IBV_CQ_ATTR_MODERATE);
	if (!err)
		err = vb_ops(cq->context)->modify_cq(cq, attr);
	return vb_answer(err);
}

/* ibv_get_cq_event(3): EBUSY is answered at once, unacknowledged events are waited for. */
VB_EXPORT int ibv_destroy_cq(struct ibv_cq *cq)
{
	struct vb_events_got got = {0};
	const struct vb_ops *ops;
	int err;

	if (!cq)
		return vb_answer(vb_refuse_null("destroy_cq", "cq"));
	ops = vb_ops(cq->context);
	err = ops->retire_cq(cq, &got);
	if (err)
		return vb_answer(err);
	vb_acks_wait(comp_acks(cq), got.comp);
	vb_acks_wait(async_acks(cq), got.async);
	pthread_cond_destroy(&cq->cond);
	pthread_mutex_destroy(&cq->mutex);
	ops->free_cq(cq);
	return 0;
}

VB_EXPORT void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int nevents)
{
	if (cq && nevents)
		vb_acks_add(comp_acks(cq), nevents);
}
