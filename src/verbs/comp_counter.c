/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Completion counters (IBVERBS_1.18). Not offered yet: none can be made, so none can be used. */
#include "verbs/face.h"

VB_EXPORT int _ibv_query_comp_cntr_caps(struct ibv_context *ctx, struct ibv_comp_cntr_caps *caps,
					size_t caps_size)
{
	(void)ctx;
	(void)caps;
	(void)caps_size;
	return vb_answer(vb_refuse_verb("query_comp_cntr_caps"));
}

VB_EXPORT struct ibv_comp_cntr *ibv_create_comp_cntr(struct ibv_context *ctx,
						     struct ibv_comp_cntr_init_attr *attr)
{
	(void)ctx;
	(void)attr;
	return vb_answer_null(vb_refuse_verb("create_comp_cntr"));
}

VB_EXPORT int ibv_destroy_comp_cntr(struct ibv_comp_cntr *cntr)
{
	(void)cntr;
	return vb_answer(vb_refuse_verb("destroy_comp_cntr"));
}

VB_EXPORT int ibv_set_comp_cntr(struct ibv_comp_cntr *cntr, uint64_t value)
{
	(void)cntr;
	(void)value;
	return vb_answer(vb_refuse_verb("set_comp_cntr"));
}

VB_EXPORT int ibv_set_err_comp_cntr(struct ibv_comp_cntr *cntr, uint64_t value)
{
	(void)cntr;
	(void)value;
	return vb_answer(vb_refuse_verb("set_err_comp_cntr"));
}

VB_EXPORT int ibv_inc_comp_cntr(struct ibv_comp_cntr *cntr, uint64_t amount)
{
	(void)cntr;
	(void)amount;
	return vb_answer(vb_refuse_verb("inc_comp_cntr"));
}

VB_EXPORT int ibv_inc_err_comp_cntr(struct ibv_comp_cntr *cntr, uint64_t amount)
{
	(void)cntr;
	(void)amount;
	return vb_answer(vb_refuse_verb("inc_err_comp_cntr"));
}

VB_EXPORT int ibv_read_comp_cntr(struct ibv_comp_cntr *cntr, uint64_t *value)
{
	(void)cntr;
	(void)value;
	return vb_answer(vb_refuse_verb("read_comp_cntr"));
}

VB_EXPORT int ibv_read_err_comp_cntr(struct ibv_comp_cntr *cntr, uint64_t *value)
{
	(void)cntr;
	(void)value;
	return vb_answer(vb_refuse_verb("read_err_comp_cntr"));
}

VB_EXPORT int ibv_qp_attach_comp_cntr(struct ibv_qp *qp, struct ibv_comp_cntr *cntr,
				      struct ibv_qp_attach_comp_cntr_attr *attr)
{
	(void)qp;
	(void)cntr;
	(void)attr;
	return vb_answer(vb_refuse_verb("qp_attach_comp_cntr"));
}
