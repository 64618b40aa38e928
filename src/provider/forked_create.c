/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Creating on an inherited context. Inherited objects that the call names are refused there, except
 * for domains (context_fork.c).
 */
#include "provider/forked_create.h"

#include "object/context.h"
#include "provider/ops.h"

#define REOPEN(name, context, ...)            \
	int err = vb_context_reopen(context); \
                                              \
	return err ? err : vb_device_ops.name(__VA_ARGS__)

int vb_reopen_alloc_pd(struct ibv_context *ctx, struct ibv_pd **pd)
{
	REOPEN(alloc_pd, ctx, ctx, pd);
}

int vb_reopen_alloc_parent_domain(struct ibv_context *ctx,
				  const struct ibv_parent_domain_init_attr *attr,
				  struct ibv_pd **pd)
{
	REOPEN(alloc_parent_domain, ctx, ctx, attr, pd);
}

int vb_reopen_alloc_td(struct ibv_context *ctx, struct ibv_td **td)
{
	REOPEN(alloc_td, ctx, ctx, td);
}

int vb_reopen_reg_mr(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
		     unsigned int access, struct ibv_mr **mr)
{
	REOPEN(reg_mr, pd->context, pd, addr, length, iova, access, mr);
}

int vb_reopen_alloc_dm(struct ibv_context *ctx, const struct ibv_alloc_dm_attr *attr,
		       struct ibv_dm **dm)
{
	REOPEN(alloc_dm, ctx, ctx, attr, dm);
}

int vb_reopen_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type, struct ibv_mw **mw)
{
	REOPEN(alloc_mw, pd->context, pd, type, mw);
}

int vb_reopen_alloc_buf(struct ibv_pd *pd, size_t length, struct ibv_buf **buf, void **addr)
{
	REOPEN(alloc_buf, pd->context, pd, length, buf, addr);
}

int vb_reopen_alloc_dmah(struct ibv_context *ctx, const struct ibv_dmah_init_attr *attr,
			 struct ibv_dmah **dmah)
{
	REOPEN(alloc_dmah, ctx, ctx, attr, dmah);
}

int vb_reopen_create_comp_channel(struct ibv_context *ctx, struct ibv_comp_channel **channel)
{
	REOPEN(create_comp_channel, ctx, ctx, channel);
}

int vb_reopen_create_cq(struct ibv_context *ctx, const struct ibv_cq_init_attr_ex *attr,
			bool extended, struct ibv_cq **cq)
{
	REOPEN(create_cq, ctx, ctx, attr, extended, cq);
}

int vb_reopen_create_srq(struct ibv_context *ctx, struct ibv_srq_init_attr_ex *attr,
			 struct ibv_srq **srq)
{
	REOPEN(create_srq, ctx, ctx, attr, srq);
}

int vb_reopen_open_xrcd(struct ibv_context *ctx, const struct ibv_xrcd_init_attr *attr,
			struct ibv_xrcd **xrcd)
{
	REOPEN(open_xrcd, ctx, ctx, attr, xrcd);
}

int vb_reopen_create_qp(struct ibv_context *ctx, struct ibv_qp_init_attr_ex *attr,
			struct ibv_qp **qp)
{
	REOPEN(create_qp, ctx, ctx, attr, qp);
}

int vb_reopen_create_ah(struct ibv_pd *pd, const struct ibv_ah_attr *attr, struct ibv_ah **ah)
{
	REOPEN(create_ah, pd->context, pd, attr, ah);
}

int vb_reopen_create_counters(struct ibv_context *ctx, struct ibv_counters **counters)
{
	REOPEN(create_counters, ctx, ctx, counters);
}

int vb_reopen_create_wq(struct ibv_context *ctx, struct ibv_wq_init_attr *attr, struct ibv_wq **wq)
{
	REOPEN(create_wq, ctx, ctx, attr, wq);
}

int vb_reopen_create_rwq_ind_table(struct ibv_context *ctx,
				   const struct ibv_rwq_ind_table_init_attr *attr,
				   struct ibv_rwq_ind_table **table)
{
	REOPEN(create_rwq_ind_table, ctx, ctx, attr, table);
}

int vb_reopen_alloc_null_mr(struct ibv_pd *pd, struct ibv_mr **mr)
{
	REOPEN(alloc_null_mr, pd->context, pd, mr);
}

int vb_reopen_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova,
			    int fd, unsigned int access, struct ibv_mr **mr)
{
	REOPEN(reg_dmabuf_mr, pd->context, pd, offset, length, iova, fd, access, mr);
}

int vb_reopen_create_comp_cntr(struct ibv_context *ctx, const struct ibv_comp_cntr_init_attr *attr,
			       struct ibv_comp_cntr **cntr)
{
	REOPEN(create_comp_cntr, ctx, ctx, attr, cntr);
}
