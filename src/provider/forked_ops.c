/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The operations of a context that a child inherited through fork. Those that only read answer;
 * those that create re-open the context (forked_create.c); all others are refused.
 */
#include <errno.h>

#include "base/reason.h"
#include "engine/cq.h"
#include "engine/fastpath.h"
#include "provider/forked_create.h"
#include "qp/comp_cntr.h"
#include "provider/ops.h"
#include "provider/ops_list.h"
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

/* One function for each operation: its parameters, and its name for the reason. */
#define REFUSE(name, ...)                     \
	static int refuse_##name(__VA_ARGS__) \
	{                                     \
		return refuse(#name);         \
	}

/* A parameter that is not used. */
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

/* A queue pair that carries nothing has no order to promise. */
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

/* These stay when the context has been re-opened: only inherited objects are refused. */
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

#define FORKED(op, device, forked) .op = (forked),

const struct vb_ops vb_forked_ops = {VB_OPS(FORKED)};
