/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Completion counters (IBVERBS_1.18). */
#include <string.h>

#include "verbs/face.h"

/* The caller's structure may be older (shorter) or newer (longer) than this library's. */
VB_EXPORT int _ibv_query_comp_cntr_caps(struct ibv_context *ctx, struct ibv_comp_cntr_caps *caps,
					size_t caps_size)
{
	struct ibv_comp_cntr_caps all = {0};
	int err;

	if (!ctx || !caps)
		return vb_answer(vb_refuse_null("query_comp_cntr_caps", ctx ? "caps" : "context"));
	err = vb_ops(ctx)->query_comp_cntr_caps(ctx, &all);
	if (err)
		return vb_answer(err);
	memset(caps, 0, caps_size);
	memcpy(caps, &all, caps_size < sizeof(all) ? caps_size : sizeof(all));
	return 0;
}

VB_EXPORT struct ibv_comp_cntr *ibv_create_comp_cntr(struct ibv_context *ctx,
						     struct ibv_comp_cntr_init_attr *attr)
{
	struct ibv_comp_cntr *cntr = NULL;
	int err;

	if (!ctx || !attr)
		return vb_answer_null(vb_refuse_null("create_comp_cntr", ctx ? "attr" : "context"));
	err = vb_check_mask("create_comp_cntr", "comp_mask", attr->comp_mask, 0);
	if (!err)
		err = vb_check_mask("create_comp_cntr", "flags", attr->flags, 0);
	if (!err && (unsigned int)attr->type > IBV_COMP_CNTR_TYPE_BYTES)
		err = vb_refuse(ENOTSUP, VB_REASON_UNSUPPORTED, "create_comp_cntr: type %d",
				(int)attr->type);
	if (!err)
		err = vb_ops(ctx)->create_comp_cntr(ctx, attr, &cntr);
	return err ? vb_answer_null(err) : cntr;
}

VB_EXPORT int ibv_destroy_comp_cntr(struct ibv_comp_cntr *cntr)
{
	if (!cntr)
		return vb_answer(vb_refuse_null("destroy_comp_cntr", "comp_cntr"));
	return vb_answer(vb_ops(cntr->context)->destroy_comp_cntr(cntr));
}

static int change(const char *verb, struct ibv_comp_cntr *cntr, bool errors, bool set,
		  uint64_t value)
{
	if (!cntr)
		return vb_answer(vb_refuse_null(verb, "comp_cntr"));
	return vb_answer(vb_ops(cntr->context)->change_comp_cntr(cntr, errors, set, value));
}

VB_EXPORT int ibv_set_comp_cntr(struct ibv_comp_cntr *cntr, uint64_t value)
{
	return change("set_comp_cntr", cntr, false, true, value);
}

VB_EXPORT int ibv_set_err_comp_cntr(struct ibv_comp_cntr *cntr, uint64_t value)
{
	return change("set_err_comp_cntr", cntr, true, true, value);
}

VB_EXPORT int ibv_inc_comp_cntr(struct ibv_comp_cntr *cntr, uint64_t amount)
{
	return change("inc_comp_cntr", cntr, false, false, amount);
}

VB_EXPORT int ibv_inc_err_comp_cntr(struct ibv_comp_cntr *cntr, uint64_t amount)
{
	return change("inc_err_comp_cntr", cntr, true, false, amount);
}

static int read_count(const char *verb, struct ibv_comp_cntr *cntr, bool errors, uint64_t *value)
{
	if (!cntr || !value)
		return vb_answer(vb_refuse_null(verb, cntr ? "value" : "comp_cntr"));
	return vb_answer(vb_ops(cntr->context)->read_comp_cntr(cntr, errors, value));
}

VB_EXPORT int ibv_read_comp_cntr(struct ibv_comp_cntr *cntr, uint64_t *value)
{
	return read_count("read_comp_cntr", cntr, false, value);
}

VB_EXPORT int ibv_read_err_comp_cntr(struct ibv_comp_cntr *cntr, uint64_t *value)
{
	return read_count("read_err_comp_cntr", cntr, true, value);
}

VB_EXPORT int ibv_qp_attach_comp_cntr(struct ibv_qp *qp, struct ibv_comp_cntr *cntr,
				      struct ibv_qp_attach_comp_cntr_attr *attr)
{
	const uint32_t known = (IBV_QP_ATTACH_COMP_CNTR_OP_REMOTE_RDMA_WRITE << 1) - 1;
	int err;

	if (!qp || !cntr || !attr)
		return vb_answer(vb_refuse_null("qp_attach_comp_cntr", !qp    ? "qp"
								       : cntr ? "attr"
									      : "comp_cntr"));
	err = vb_check_mask("qp_attach_comp_cntr", "comp_mask", attr->comp_mask, 0);
	if (!err && !attr->op_mask)
		err = vb_refuse(EINVAL, VB_REASON_ARG, "qp_attach_comp_cntr: no operation");
	if (!err)
		err = vb_check_flags("qp_attach_comp_cntr", "op_mask", attr->op_mask, known);
	if (!err)
		err = vb_ops(qp->context)->attach_comp_cntr(qp, cntr, attr->op_mask);
	return vb_answer(err);
}
