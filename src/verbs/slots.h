/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The slots of a context that inline functions of the public header call for the control path. */
#ifndef VB_VERBS_SLOTS_H
#define VB_VERBS_SLOTS_H

#include <infiniband/verbs.h>

/*
 * Completes a context that the device has just opened: the slots of verbs_context, its size and its
 * mark. A slot that stays NULL makes the inline function return EOPNOTSUPP. The slots of the data
 * path (ops.post_send, post_recv, post_srq_recv, poll_cq, req_notify_cq) are the device's and stay
 * as they are.
 */
void vb_slots_fill(struct ibv_context *ctx);

/* The functions behind the slots, each in the file of its family. Public conventions. */
int vb_slot_query_device_ex(struct ibv_context *ctx, const struct ibv_query_device_ex_input *input,
			    struct ibv_device_attr_ex *attr, size_t attr_size);
int vb_slot_query_port(struct ibv_context *ctx, uint8_t port, struct ibv_port_attr *attr,
		       size_t attr_size);
int vb_slot_query_rt_values(struct ibv_context *ctx, struct ibv_values_ex *values);
struct ibv_mr *vb_slot_alloc_null_mr(struct ibv_pd *pd);
int vb_slot_advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
		      struct ibv_sge *sg_list, uint32_t num_sge);
struct ibv_mw *vb_slot_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type);
int vb_slot_dealloc_mw(struct ibv_mw *mw);
int vb_slot_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind);
struct ibv_pd *vb_slot_alloc_parent_domain(struct ibv_context *ctx,
					   struct ibv_parent_domain_init_attr *attr);
struct ibv_td *vb_slot_alloc_td(struct ibv_context *ctx, struct ibv_td_init_attr *attr);
int vb_slot_dealloc_td(struct ibv_td *td);
struct ibv_cq_ex *vb_slot_create_cq_ex(struct ibv_context *ctx, struct ibv_cq_init_attr_ex *attr);
int vb_slot_modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr);
struct ibv_srq *vb_slot_create_srq_ex(struct ibv_context *ctx, struct ibv_srq_init_attr_ex *attr);
struct ibv_qp *vb_slot_open_qp(struct ibv_context *ctx, struct ibv_qp_open_attr *attr);
struct ibv_xrcd *vb_slot_open_xrcd(struct ibv_context *ctx, struct ibv_xrcd_init_attr *attr);
int vb_slot_close_xrcd(struct ibv_xrcd *xrcd);
int vb_slot_get_srq_num(struct ibv_srq *srq, uint32_t *number);
int vb_slot_post_srq_ops(struct ibv_srq *srq, struct ibv_ops_wr *wr, struct ibv_ops_wr **bad_wr);
struct ibv_qp *vb_slot_create_qp_ex(struct ibv_context *ctx, struct ibv_qp_init_attr_ex *attr);
struct ibv_dm *vb_slot_alloc_dm(struct ibv_context *ctx, struct ibv_alloc_dm_attr *attr);
int vb_slot_free_dm(struct ibv_dm *dm);
struct ibv_mr *vb_slot_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *dm, uint64_t dm_offset,
				 size_t length, unsigned int access);
/* Completes device memory that is new in this process: sets its copying functions. */
struct ibv_dm *vb_face_dm(struct ibv_dm *dm);

int vb_slot_modify_qp_rate_limit(struct ibv_qp *qp, struct ibv_qp_rate_limit_attr *attr);
struct ibv_flow *vb_slot_create_flow(struct ibv_qp *qp, struct ibv_flow_attr *attr);
int vb_slot_destroy_flow(struct ibv_flow *flow);
struct ibv_counters *vb_slot_create_counters(struct ibv_context *ctx,
					     struct ibv_counters_init_attr *attr);
int vb_slot_destroy_counters(struct ibv_counters *counters);
int vb_slot_attach_counters_point_flow(struct ibv_counters *counters,
				       struct ibv_counter_attach_attr *attr, struct ibv_flow *flow);
int vb_slot_read_counters(struct ibv_counters *counters, uint64_t *values, uint32_t count,
			  uint32_t flags);
struct ibv_wq *vb_slot_create_wq(struct ibv_context *ctx, struct ibv_wq_init_attr *attr);
int vb_slot_modify_wq(struct ibv_wq *wq, struct ibv_wq_attr *attr);
int vb_slot_destroy_wq(struct ibv_wq *wq);
struct ibv_rwq_ind_table *vb_slot_create_rwq_ind_table(struct ibv_context *ctx,
						       struct ibv_rwq_ind_table_init_attr *attr);
int vb_slot_destroy_rwq_ind_table(struct ibv_rwq_ind_table *table);

#endif
