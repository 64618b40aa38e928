/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Fills the slots of a context, and asserts the layout that compiled programs rely on. A program
 * finds a slot by its distance from the context (ABI since 1.1).
 */
#include "verbs/slots.h"

#include <stddef.h>
#include <stdint.h>

#define SLOT_BEFORE_CONTEXT(slot) \
	(offsetof(struct verbs_context, context) - offsetof(struct verbs_context, slot))

#if UINTPTR_MAX == UINT64_MAX
_Static_assert(SLOT_BEFORE_CONTEXT(sz) == 8, "verbs_context.sz");
_Static_assert(SLOT_BEFORE_CONTEXT(create_qp_ex) == 56, "verbs_context.create_qp_ex");
_Static_assert(SLOT_BEFORE_CONTEXT(query_device_ex) == 104, "verbs_context.query_device_ex");
_Static_assert(SLOT_BEFORE_CONTEXT(create_cq_ex) == 120, "verbs_context.create_cq_ex");
_Static_assert(SLOT_BEFORE_CONTEXT(query_port) == 320, "verbs_context.query_port");
_Static_assert(sizeof(struct verbs_context) == 696, "verbs_context");
_Static_assert(sizeof(struct ibv_context) == 328, "ibv_context");
_Static_assert(offsetof(struct ibv_context, ops.poll_cq) == 96, "ibv_context.ops.poll_cq");
_Static_assert(offsetof(struct ibv_context, ops.post_send) == 208, "ibv_context.ops.post_send");
_Static_assert(offsetof(struct ibv_qp, qp_num) == 52, "ibv_qp.qp_num");
_Static_assert(offsetof(struct ibv_qp_ex, wr_id) == 168, "ibv_qp_ex.wr_id");
_Static_assert(offsetof(struct ibv_cq_ex, status) == 132, "ibv_cq_ex.status");
#endif

void vb_slots_fill(struct ibv_context *ctx)
{
	struct verbs_context *vctx =
		(struct verbs_context *)(void *)((char *)ctx -
						 offsetof(struct verbs_context, context));

	vctx->sz = sizeof(*vctx);
	ctx->abi_compat = __VERBS_ABI_IS_EXTENDED;

	ctx->ops.alloc_mw = vb_slot_alloc_mw;
	ctx->ops.dealloc_mw = vb_slot_dealloc_mw;
	ctx->ops.bind_mw = vb_slot_bind_mw;

	vctx->alloc_null_mr = vb_slot_alloc_null_mr;
	vctx->advise_mr = vb_slot_advise_mr;
	vctx->query_device_ex = vb_slot_query_device_ex;
	vctx->query_port = vb_slot_query_port;
	vctx->query_rt_values = vb_slot_query_rt_values;
	vctx->alloc_parent_domain = vb_slot_alloc_parent_domain;
	vctx->alloc_td = vb_slot_alloc_td;
	vctx->dealloc_td = vb_slot_dealloc_td;
	vctx->create_cq_ex = vb_slot_create_cq_ex;
	vctx->modify_cq = vb_slot_modify_cq;
	vctx->create_srq_ex = vb_slot_create_srq_ex;
	vctx->post_srq_ops = vb_slot_post_srq_ops;
	vctx->create_qp_ex = vb_slot_create_qp_ex;
	vctx->alloc_dm = vb_slot_alloc_dm;
	vctx->free_dm = vb_slot_free_dm;
	vctx->reg_dm_mr = vb_slot_reg_dm_mr;
	vctx->open_qp = vb_slot_open_qp;
	vctx->open_xrcd = vb_slot_open_xrcd;
	vctx->close_xrcd = vb_slot_close_xrcd;
	vctx->get_srq_num = vb_slot_get_srq_num;
	vctx->modify_qp_rate_limit = vb_slot_modify_qp_rate_limit;
	vctx->ibv_create_flow = vb_slot_create_flow;
	vctx->ibv_destroy_flow = vb_slot_destroy_flow;
	vctx->create_counters = vb_slot_create_counters;
	vctx->destroy_counters = vb_slot_destroy_counters;
	vctx->attach_counters_point_flow = vb_slot_attach_counters_point_flow;
	vctx->read_counters = vb_slot_read_counters;
	vctx->create_wq = vb_slot_create_wq;
	vctx->modify_wq = vb_slot_modify_wq;
	vctx->destroy_wq = vb_slot_destroy_wq;
	vctx->create_rwq_ind_table = vb_slot_create_rwq_ind_table;
	vctx->destroy_rwq_ind_table = vb_slot_destroy_rwq_ind_table;
}
