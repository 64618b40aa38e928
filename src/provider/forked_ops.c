/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The operations of a context that a child inherited through fork: what only reads answers, what creates re-opens the context
 * (forked_create.c), all else is refused.
 */
#include <errno.h>

#include "base/reason.h"
#include "engine/cq.h"
#include "engine/fastpath.h"
#include "provider/forked_create.h"
#include "qp/comp_cntr.h"
#include "provider/ops.h"
#include "object/pd.h"
#include "object/query.h"
#include "qp/qp.h"
#include "engine/srq.h"
#include "object/td.h"

static int refuse(const char *what)
{
	return vb_refuse(ENODEV, VB_REASON_FORKED, "%s: the object belongs to the parent process",
			 what);
}

/* One function per operation: what its table entry takes, and its name for the reason. */
#define REFUSE(name, ...)                     \
	static int refuse_##name(__VA_ARGS__) \
	{                                     \
		return refuse(#name);         \
	}

/* A parameter that is not looked at. */
#define UNUSED(type)  type unused __attribute__((unused))
#define UNUSED2(type) type unused2 __attribute__((unused))
#define UNUSED3(type) type unused3 __attribute__((unused))
#define UNUSED4(type) type unused4 __attribute__((unused))
#define UNUSED5(type) type unused5 __attribute__((unused))
#define UNUSED6(type) type unused6 __attribute__((unused))

REFUSE(dereg_mr, UNUSED(struct ibv_mr *))
REFUSE(free_dm, UNUSED(struct ibv_dm *))
REFUSE(copy_dm, UNUSED(struct ibv_dm *), UNUSED2(uint64_t), UNUSED3(void *), UNUSED4(size_t),
       UNUSED5(bool))
REFUSE(reg_dm_mr, UNUSED(struct ibv_pd *), UNUSED2(struct ibv_dm *), UNUSED3(uint64_t),
       UNUSED4(size_t), UNUSED5(unsigned int), UNUSED6(struct ibv_mr **))
REFUSE(advise_mr, UNUSED(struct ibv_pd *), UNUSED2(enum ibv_advise_mr_advice), UNUSED3(uint32_t),
       UNUSED4(const struct ibv_sge *), UNUSED5(uint32_t))
REFUSE(dealloc_mw, UNUSED(struct ibv_mw *))
REFUSE(bind_mw, UNUSED(struct ibv_qp *), UNUSED2(struct ibv_mw *),
       UNUSED3(const struct ibv_mw_bind *))
REFUSE(export_dm, UNUSED(struct ibv_dm *))
REFUSE(change_buf, UNUSED(struct ibv_buf *))
REFUSE(dealloc_dmah, UNUSED(struct ibv_dmah *))
REFUSE(check_dmah, UNUSED(struct ibv_context *), UNUSED2(struct ibv_dmah *))
REFUSE(import_pd, UNUSED(struct ibv_context *), UNUSED2(uint32_t), UNUSED3(struct ibv_pd **))
REFUSE(import_mr, UNUSED(struct ibv_pd *), UNUSED2(uint32_t), UNUSED3(struct ibv_mr **))
REFUSE(import_dm, UNUSED(struct ibv_context *), UNUSED2(uint32_t), UNUSED3(struct ibv_dm **))
REFUSE(destroy_comp_channel, UNUSED(struct ibv_comp_channel *))
REFUSE(get_cq_event, UNUSED(struct ibv_comp_channel *), UNUSED2(struct ibv_cq **), UNUSED3(void **))
REFUSE(get_async_event, UNUSED(struct ibv_context *), UNUSED2(struct ibv_async_event *))
REFUSE(resize_cq, UNUSED(struct ibv_cq *), UNUSED2(int))
REFUSE(modify_cq, UNUSED(struct ibv_cq *), UNUSED2(const struct ibv_modify_cq_attr *))
REFUSE(destroy_cq, UNUSED(struct ibv_cq *), UNUSED2(struct vb_events_got *))
REFUSE(modify_srq, UNUSED(struct ibv_srq *), UNUSED2(const struct ibv_srq_attr *), UNUSED3(int))
REFUSE(query_srq, UNUSED(struct ibv_srq *), UNUSED2(struct ibv_srq_attr *))
REFUSE(destroy_srq, UNUSED(struct ibv_srq *), UNUSED2(struct vb_events_got *))
REFUSE(get_srq_num, UNUSED(struct ibv_srq *), UNUSED2(uint32_t *))
REFUSE(close_xrcd, UNUSED(struct ibv_xrcd *))
REFUSE(open_qp, UNUSED(struct ibv_context *), UNUSED2(const struct ibv_qp_open_attr *),
       UNUSED3(struct ibv_qp **))
REFUSE(query_qp, UNUSED(struct ibv_qp *), UNUSED2(struct ibv_qp_attr *), UNUSED3(int),
       UNUSED4(struct ibv_qp_init_attr *))
REFUSE(modify_qp, UNUSED(struct ibv_qp *), UNUSED2(const struct ibv_qp_attr *), UNUSED3(int))
REFUSE(destroy_qp, UNUSED(struct ibv_qp *), UNUSED2(struct vb_events_got *))
REFUSE(rate_limit, UNUSED(struct ibv_qp *), UNUSED2(const struct ibv_qp_rate_limit_attr *))
REFUSE(ece, UNUSED(struct ibv_qp *), UNUSED2(struct ibv_ece *))
REFUSE(destroy_comp_cntr, UNUSED(struct ibv_comp_cntr *))
REFUSE(change_comp_cntr, UNUSED(struct ibv_comp_cntr *), UNUSED2(bool), UNUSED3(bool),
       UNUSED4(uint64_t))
REFUSE(read_comp_cntr, UNUSED(struct ibv_comp_cntr *), UNUSED2(bool), UNUSED3(uint64_t *))
REFUSE(attach_comp_cntr, UNUSED(struct ibv_qp *), UNUSED2(struct ibv_comp_cntr *),
       UNUSED3(uint32_t))
REFUSE(create_flow, UNUSED(struct ibv_qp *), UNUSED2(const struct ibv_flow_attr *),
       UNUSED3(struct ibv_flow **))
REFUSE(destroy_flow, UNUSED(struct ibv_flow *))
REFUSE(destroy_counters, UNUSED(struct ibv_counters *))
REFUSE(attach_counters, UNUSED(struct ibv_counters *),
       UNUSED2(const struct ibv_counter_attach_attr *))
REFUSE(read_counters, UNUSED(struct ibv_counters *), UNUSED2(uint64_t *), UNUSED3(uint32_t))
REFUSE(modify_wq, UNUSED(struct ibv_wq *), UNUSED2(const struct ibv_wq_attr *))
REFUSE(destroy_wq, UNUSED(struct ibv_wq *), UNUSED2(struct vb_events_got *))
REFUSE(destroy_rwq_ind_table, UNUSED(struct ibv_rwq_ind_table *))
REFUSE(destroy_ah, UNUSED(struct ibv_ah *))
REFUSE(change_mcast, UNUSED(struct ibv_qp *), UNUSED2(const union ibv_gid *), UNUSED3(uint16_t))

static int refuse_reg_buf_mr(UNUSED(struct ibv_pd *), UNUSED2(struct ibv_buf *), UNUSED3(void *),
			     UNUSED4(size_t), UNUSED5(uint64_t), UNUSED6(unsigned int),
			     struct ibv_mr **mr)
{
	*mr = NULL;
	return refuse("reg_buf_mr");
}

static int refuse_rereg_mr(UNUSED(struct ibv_mr *), UNUSED2(int), UNUSED3(struct ibv_pd *),
			   UNUSED4(void *), UNUSED5(size_t), UNUSED6(int))
{
	refuse("rereg_mr");
	return IBV_REREG_MR_ERR_INPUT;
}

/* No order is promised for a queue pair that carries nothing. */
static int no_order(UNUSED(struct ibv_qp *), UNUSED2(enum ibv_wr_opcode), UNUSED3(uint32_t))
{
	return 0;
}

static int refuse_post_srq_ops(UNUSED(struct ibv_srq *), struct ibv_ops_wr *wr,
			       struct ibv_ops_wr **bad)
{
	*bad = wr;
	return refuse("post_srq_ops");
}

/* These stay when the context has been re-opened: only what was inherited is refused. */
static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr)
{
	if (!vb_qp_of(qp)->inherited)
		return vb_post_send(qp, wr, bad_wr);
	*bad_wr = wr;
	return -refuse("post_send");
}

static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	if (!vb_qp_of(qp)->inherited)
		return vb_post_recv(qp, wr, bad_wr);
	*bad_wr = wr;
	return -refuse("post_recv");
}

static int post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	if (!vb_srq_of(srq)->inherited)
		return vb_post_srq_recv(srq, wr, bad_wr);
	*bad_wr = wr;
	return -refuse("post_srq_recv");
}

static int poll_cq(struct ibv_cq *cq, int num_entries, struct ibv_wc *wc)
{
	return vb_cq_of(cq)->inherited ? refuse("poll_cq") : vb_poll_cq(cq, num_entries, wc);
}

static int req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
	return vb_cq_of(cq)->inherited ? -refuse("req_notify_cq")
				       : vb_req_notify_cq(cq, solicited_only);
}

void vb_forked_slots(struct ibv_context_ops *slots)
{
	slots->post_send = post_send;
	slots->post_recv = post_recv;
	slots->post_srq_recv = post_srq_recv;
	slots->poll_cq = poll_cq;
	slots->req_notify_cq = req_notify_cq;
}

/* free_* cannot be reached: their retire_* refuses. */
const struct vb_ops vb_forked_ops = {
	.query_device = vb_query_device,
	.query_port = vb_query_port,
	.query_port_speed = vb_query_port_speed,
	.query_gid_entry = vb_query_gid,
	.query_pkey = vb_query_pkey,
	.query_rt_values = vb_query_clock,
	.alloc_pd = vb_reopen_alloc_pd,
	.dealloc_pd = vb_pd_dealloc,
	.alloc_parent_domain = vb_reopen_alloc_parent_domain,
	.alloc_td = vb_reopen_alloc_td,
	.dealloc_td = vb_td_dealloc,
	.reg_mr = vb_reopen_reg_mr,
	.rereg_mr = refuse_rereg_mr,
	.dereg_mr = refuse_dereg_mr,
	.alloc_dm = vb_reopen_alloc_dm,
	.free_dm = refuse_free_dm,
	.copy_dm = refuse_copy_dm,
	.reg_dm_mr = refuse_reg_dm_mr,
	.reg_dmabuf_mr = vb_reopen_reg_dmabuf_mr,
	.alloc_null_mr = vb_reopen_alloc_null_mr,
	.advise_mr = refuse_advise_mr,
	.alloc_mw = vb_reopen_alloc_mw,
	.dealloc_mw = refuse_dealloc_mw,
	.bind_mw = refuse_bind_mw,
	.export_dm = refuse_export_dm,
	.alloc_buf = vb_reopen_alloc_buf,
	.free_buf = refuse_change_buf,
	.reg_buf_mr = refuse_reg_buf_mr,
	.export_buf = refuse_change_buf,
	.alloc_dmah = vb_reopen_alloc_dmah,
	.dealloc_dmah = refuse_dealloc_dmah,
	.check_dmah = refuse_check_dmah,
	.import_pd = refuse_import_pd,
	.import_mr = refuse_import_mr,
	.import_dm = refuse_import_dm,
	.create_comp_channel = vb_reopen_create_comp_channel,
	.destroy_comp_channel = refuse_destroy_comp_channel,
	.get_cq_event = refuse_get_cq_event,
	.get_async_event = refuse_get_async_event,
	.create_cq = vb_reopen_create_cq,
	.resize_cq = refuse_resize_cq,
	.modify_cq = refuse_modify_cq,
	.retire_cq = refuse_destroy_cq,
	.create_srq = vb_reopen_create_srq,
	.modify_srq = refuse_modify_srq,
	.query_srq = refuse_query_srq,
	.retire_srq = refuse_destroy_srq,
	.get_srq_num = refuse_get_srq_num,
	.open_xrcd = vb_reopen_open_xrcd,
	.close_xrcd = refuse_close_xrcd,
	.create_qp = vb_reopen_create_qp,
	.open_qp = refuse_open_qp,
	.query_qp = refuse_query_qp,
	.modify_qp = refuse_modify_qp,
	.query_qp_data_in_order = no_order,
	.retire_qp = refuse_destroy_qp,
	.post_srq_ops = refuse_post_srq_ops,
	.modify_qp_rate_limit = refuse_rate_limit,
	.set_ece = refuse_ece,
	.query_ece = refuse_ece,
	.query_comp_cntr_caps = vb_comp_cntr_caps,
	.create_comp_cntr = vb_reopen_create_comp_cntr,
	.destroy_comp_cntr = refuse_destroy_comp_cntr,
	.change_comp_cntr = refuse_change_comp_cntr,
	.read_comp_cntr = refuse_read_comp_cntr,
	.attach_comp_cntr = refuse_attach_comp_cntr,
	.create_flow = refuse_create_flow,
	.destroy_flow = refuse_destroy_flow,
	.create_counters = vb_reopen_create_counters,
	.destroy_counters = refuse_destroy_counters,
	.attach_counters = refuse_attach_counters,
	.read_counters = refuse_read_counters,
	.create_wq = vb_reopen_create_wq,
	.modify_wq = refuse_modify_wq,
	.create_rwq_ind_table = vb_reopen_create_rwq_ind_table,
	.retire_wq = refuse_destroy_wq,
	.destroy_rwq_ind_table = refuse_destroy_rwq_ind_table,
	.create_ah = vb_reopen_create_ah,
	.destroy_ah = refuse_destroy_ah,
	.attach_mcast = refuse_change_mcast,
	.detach_mcast = refuse_change_mcast,
};
