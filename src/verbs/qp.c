/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Queue pairs: ibv_create_qp(3), ibv_create_qp_ex(3), ibv_modify_qp(3), ibv_query_qp(3). */
#include "verbs/events_wait.h"
#include "verbs/face.h"
#include "verbs/slots.h"

/* The attributes that ibv_create_qp_ex(3) defines, and those that devices of verbatim know. */
#define INIT_ATTR_KNOWN                                                                            \
	(IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_XRCD | IBV_QP_INIT_ATTR_CREATE_FLAGS |             \
	 IBV_QP_INIT_ATTR_MAX_TSO_HEADER | IBV_QP_INIT_ATTR_IND_TABLE | IBV_QP_INIT_ATTR_RX_HASH | \
	 IBV_QP_INIT_ATTR_SEND_OPS_FLAGS)
#define INIT_ATTR_OFFERED                                                              \
	(IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_XRCD | IBV_QP_INIT_ATTR_CREATE_FLAGS | \
	 IBV_QP_INIT_ATTR_SEND_OPS_FLAGS | IBV_QP_INIT_ATTR_IND_TABLE | IBV_QP_INIT_ATTR_RX_HASH)

static struct ibv_qp *begin(struct ibv_qp *qp)
{
	pthread_mutex_init(&qp->mutex, NULL);
	pthread_cond_init(&qp->cond, NULL);
	qp->events_completed = 0;
	return qp;
}

static struct ibv_qp *create(struct ibv_context *ctx, struct ibv_qp_init_attr_ex *attr)
{
	struct ibv_qp *qp = NULL;
	int err = vb_ops(ctx)->create_qp(ctx, attr, &qp);

	return err ? vb_answer_null(err) : begin(qp);
}

struct ibv_qp *vb_slot_open_qp(struct ibv_context *ctx, struct ibv_qp_open_attr *attr)
{
	struct ibv_qp *qp = NULL;
	int err = attr ? vb_ops(ctx)->open_qp(ctx, attr, &qp)
		       : vb_refuse_null("open_qp", "qp_open_attr");

	return err ? vb_answer_null(err) : begin(qp);
}

VB_EXPORT struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct ibv_qp_init_attr_ex given = {0};
	struct ibv_qp *qp;

	if (!pd || !attr)
		return vb_answer_null(vb_refuse_null("create_qp", pd ? "qp_init_attr" : "pd"));
	given.qp_context = attr->qp_context;
	given.send_cq = attr->send_cq;
	given.recv_cq = attr->recv_cq;
	given.srq = attr->srq;
	given.cap = attr->cap;
	given.qp_type = attr->qp_type;
	given.sq_sig_all = attr->sq_sig_all;
	given.comp_mask = IBV_QP_INIT_ATTR_PD;
	given.pd = pd;
	qp = create(pd->context, &given);
	if (qp)
		attr->cap = given.cap;
	return qp;
}

static int check_init_attr(const struct ibv_qp_init_attr_ex *attr)
{
	int err;

	if (!attr)
		return vb_refuse_null("create_qp_ex", "qp_init_attr_ex");
	err = vb_check_mask("create_qp_ex", "comp_mask", attr->comp_mask, INIT_ATTR_KNOWN);
	if (!err)
		err = vb_check_flags("create_qp_ex", "comp_mask", attr->comp_mask,
				     INIT_ATTR_OFFERED);
	if (err)
		return err;
	if (attr->qp_type == IBV_QPT_XRC_RECV) {
		if (!(attr->comp_mask & IBV_QP_INIT_ATTR_XRCD) || !attr->xrcd)
			return vb_refuse_null("create_qp_ex", "xrcd");
	} else if (!(attr->comp_mask & IBV_QP_INIT_ATTR_PD) || !attr->pd) {
		return vb_refuse_null("create_qp_ex", "pd");
	}
	return 0;
}

struct ibv_qp *vb_slot_create_qp_ex(struct ibv_context *ctx, struct ibv_qp_init_attr_ex *attr)
{
	struct ibv_qp_init_attr_ex given;
	struct ibv_qp *qp;
	int err = check_init_attr(attr);

	if (err)
		return vb_answer_null(err);
	given = *attr;
	if (!(given.comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS))
		given.create_flags = 0;
	if (!(given.comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS))
		given.send_ops_flags = 0;
	qp = create(ctx, &given);
	if (qp)
		attr->cap = given.cap;
	return qp;
}

/* Every QP has room for the builder, but only a QP made with send_ops_flags has wr_start. */
VB_EXPORT struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *qp)
{
	struct ibv_qp_ex *qpx = (struct ibv_qp_ex *)(void *)qp;

	return qpx && qpx->wr_start ? qpx : NULL;
}

VB_EXPORT int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask)
{
	int err;

	if (!qp || !attr)
		return vb_answer(vb_refuse_null("modify_qp", qp ? "attr" : "qp"));
	err = vb_ops(qp->context)->modify_qp(qp, attr, attr_mask);
	if (!err && (attr_mask & IBV_QP_STATE))
		qp->state = attr->qp_state;
	return vb_answer(err);
}

VB_EXPORT int ibv_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask,
			   struct ibv_qp_init_attr *init_attr)
{
	struct ibv_qp_attr found = {0};
	struct ibv_qp_init_attr found_init = {0};
	int err;

	if (!qp || !attr)
		return vb_answer(vb_refuse_null("query_qp", qp ? "attr" : "qp"));
	err = vb_ops(qp->context)->query_qp(qp, &found, attr_mask, &found_init);
	if (err)
		return vb_answer(err);
	*attr = found;
	if (init_attr)
		*init_attr = found_init;
	if (attr_mask & IBV_QP_STATE)
		qp->state = found.qp_state;
	return 0;
}

/* ibv_query_qp_data_in_order(3): 0 also stands for every failure. */
VB_EXPORT int ibv_query_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode op, uint32_t flags)
{
	const uint32_t known = IBV_QUERY_QP_DATA_IN_ORDER_RETURN_CAPS |
			       IBV_QUERY_QP_DATA_IN_ORDER_DEVICE_ONLY;
	int bits;

	bits = qp ? vb_check_flags("query_qp_data_in_order", "flags", flags, known)
		  : vb_refuse_null("query_qp_data_in_order", "qp");
	if (!bits)
		bits = vb_ops(qp->context)->query_qp_data_in_order(qp, op, flags);
	if (bits < 0) {
		errno = -bits;
		return 0;
	}
	if (bits & IBV_QUERY_QP_DATA_IN_ORDER_WHOLE_MSG)
		bits |= IBV_QUERY_QP_DATA_IN_ORDER_ALIGNED_128_BYTES;
	if (flags & IBV_QUERY_QP_DATA_IN_ORDER_RETURN_CAPS)
		return bits;
	return !!(bits & IBV_QUERY_QP_DATA_IN_ORDER_WHOLE_MSG);
}

VB_EXPORT int ibv_set_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	if (!qp || !ece)
		return vb_answer(vb_refuse_null("set_ece", qp ? "ece" : "qp"));
	return vb_answer(vb_ops(qp->context)->set_ece(qp, ece));
}

VB_EXPORT int ibv_query_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	if (!qp || !ece)
		return vb_answer(vb_refuse_null("query_ece", qp ? "ece" : "qp"));
	return vb_answer(vb_ops(qp->context)->query_ece(qp, ece));
}

int vb_slot_modify_qp_rate_limit(struct ibv_qp *qp, struct ibv_qp_rate_limit_attr *attr)
{
	if (!attr)
		return vb_answer(vb_refuse_null("modify_qp_rate_limit", "attr"));
	return vb_answer(vb_ops(qp->context)->modify_qp_rate_limit(qp, attr));
}

VB_EXPORT int ibv_destroy_qp(struct ibv_qp *qp)
{
	struct vb_events_got got = {0};
	const struct vb_ops *ops;
	int err;

	if (!qp)
		return vb_answer(vb_refuse_null("destroy_qp", "qp"));
	ops = vb_ops(qp->context);
	err = ops->retire_qp(qp, &got);
	if (err)
		return vb_answer(err);
	vb_acks_wait((struct vb_acks){&qp->mutex, &qp->cond, &qp->events_completed}, got.async);
	pthread_cond_destroy(&qp->cond);
	pthread_mutex_destroy(&qp->mutex);
	ops->free_qp(qp);
	return 0;
}
