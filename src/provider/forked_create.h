/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Operations that create an object, on a context that was inherited through fork: they re-open the
 * context and then do as on any other (verbs/ops.h).
 */
#ifndef VB_PROVIDER_FORKED_CREATE_H
#define VB_PROVIDER_FORKED_CREATE_H

#include "verbs/ops.h"

int vb_reopen_alloc_pd(struct ibv_context *ctx, struct ibv_pd **pd);
int vb_reopen_alloc_parent_domain(struct ibv_context *ctx,
				  const struct ibv_parent_domain_init_attr *attr,
				  struct ibv_pd **pd);
int vb_reopen_alloc_td(struct ibv_context *ctx, struct ibv_td **td);
int vb_reopen_reg_mr(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
		     unsigned int access, struct ibv_mr **mr);
int vb_reopen_alloc_dm(struct ibv_context *ctx, const struct ibv_alloc_dm_attr *attr,
		       struct ibv_dm **dm);
int vb_reopen_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type, struct ibv_mw **mw);
int vb_reopen_alloc_buf(struct ibv_pd *pd, size_t length, struct ibv_buf **buf, void **addr);
int vb_reopen_alloc_dmah(struct ibv_context *ctx, const struct ibv_dmah_init_attr *attr,
			 struct ibv_dmah **dmah);
int vb_reopen_create_comp_channel(struct ibv_context *ctx, struct ibv_comp_channel **channel);
int vb_reopen_create_cq(struct ibv_context *ctx, const struct ibv_cq_init_attr_ex *attr,
			bool extended, struct ibv_cq **cq);
int vb_reopen_create_srq(struct ibv_context *ctx, struct ibv_srq_init_attr_ex *attr,
			 struct ibv_srq **srq);
int vb_reopen_open_xrcd(struct ibv_context *ctx, const struct ibv_xrcd_init_attr *attr,
			struct ibv_xrcd **xrcd);
int vb_reopen_create_qp(struct ibv_context *ctx, struct ibv_qp_init_attr_ex *attr,
			struct ibv_qp **qp);
int vb_reopen_create_ah(struct ibv_pd *pd, const struct ibv_ah_attr *attr, struct ibv_ah **ah);
int vb_reopen_create_counters(struct ibv_context *ctx, struct ibv_counters **counters);
int vb_reopen_create_wq(struct ibv_context *ctx, struct ibv_wq_init_attr *attr, struct ibv_wq **wq);
int vb_reopen_create_comp_cntr(struct ibv_context *ctx, const struct ibv_comp_cntr_init_attr *attr,
			       struct ibv_comp_cntr **cntr);
int vb_reopen_create_rwq_ind_table(struct ibv_context *ctx,
				   const struct ibv_rwq_ind_table_init_attr *attr,
				   struct ibv_rwq_ind_table **table);
int vb_reopen_alloc_null_mr(struct ibv_pd *pd, struct ibv_mr **mr);
int vb_reopen_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova,
			    int fd, unsigned int access, struct ibv_mr **mr);

#endif
