/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The protocol's environment: the functions of which the tables of all kinds of queue pairs are
 * made.
 */
#ifndef VB_QP_ENV_H
#define VB_QP_ENV_H

#include "memory/memory.h"
#include "qp/link.h"
#include "qp/qp.h"
#include "transport/env.h"

struct vb_cqe_more;

/* The process's memory, as the queue pair's own requests and receives see it. */
static inline struct vb_mem vb_env_memory(const struct vb_qp *qp)
{
	return (struct vb_mem){
		.keys = vb_node_keyring(qp->engine->node),
		.pd = qp->pd_id,
		.qpn = qp->t.qpn,
		.engine = qp->engine->index,
	};
}

/* env.c: members of the table (transport/env.h). */
void vb_env_timer(struct vb_tqp *t, uint64_t delay_ns);
uint64_t vb_env_now(struct vb_tqp *t);
enum vb_reason vb_env_gather_check(struct vb_tqp *t, struct vb_send_wqe *wqe);
enum vb_reason vb_env_gather(struct vb_tqp *t, struct vb_send_wqe *wqe, uint64_t offset, void *dst,
			     uint32_t length);
enum vb_reason vb_env_scatter_response(struct vb_tqp *t, struct vb_send_wqe *wqe, uint64_t offset,
				       const void *src, uint32_t length);
void vb_env_send_done(struct vb_tqp *t, struct vb_send_wqe *wqe, enum ibv_wc_status status,
		      enum vb_reason reason);
struct vb_recv_wqe *vb_env_recv_take(struct vb_tqp *t);
void vb_env_recv_untake(struct vb_tqp *t, struct vb_recv_wqe *wqe);
enum vb_reason vb_env_recv_scatter(struct vb_tqp *t, struct vb_recv_wqe *wqe, uint64_t offset,
				   const void *src, uint32_t length);
void vb_env_recv_done(struct vb_tqp *t, const struct vb_recv_done *done);
/* The same with the values that only extended completion queues tell (may be NULL). */
void vb_env_recv_done_more(struct vb_tqp *t, const struct vb_recv_done *done,
			   const struct vb_cqe_more *more);
/* The same of up to so many at once, whose entries need the queue's lock once. */
#define VB_RECV_DONE_MOST 16u
void vb_env_recv_done_many(struct vb_tqp *t, const struct vb_recv_done *done, uint32_t count);
enum vb_reason vb_env_invalidate(struct vb_tqp *t, uint32_t key);
enum vb_reason vb_env_bind(struct vb_tqp *t, const struct vb_send_wqe *wqe);
void vb_env_event(struct vb_tqp *t, enum ibv_event_type type);
void vb_env_state_changed(struct vb_tqp *t);
void vb_env_count(struct vb_tqp *t, enum vb_count what);
void vb_env_drop(struct vb_tqp *t, enum vb_reason reason, const struct vb_run *run);
void vb_env_explain(struct vb_tqp *t, enum vb_reason reason, const struct vb_run *run);

/* env_remote.c */
enum vb_reason vb_env_remote_check(struct vb_tqp *t, uint32_t rkey, uint64_t va, uint64_t length,
				   uint32_t need);
enum vb_reason vb_env_remote_write(struct vb_tqp *t, uint32_t rkey, uint64_t va, const void *src,
				   uint32_t length);
/*
 * The same for the common case, a region. False: vb_env_remote_write() is to be asked, which writes
 * all of it or says why not.
 */
bool vb_env_remote_write_region(struct vb_qp *qp, uint32_t rkey, uint64_t va, const void *src,
				uint32_t length);
enum vb_reason vb_env_remote_read(struct vb_tqp *t, uint32_t rkey, uint64_t va, void *dst,
				  uint32_t length);
enum vb_reason vb_env_remote_atomic(struct vb_tqp *t, uint32_t rkey, uint64_t va, bool compare_swap,
				    uint64_t swap_add, uint64_t compare, uint64_t *original);
enum vb_reason vb_env_remote_atomic_write(struct vb_tqp *t, uint32_t rkey, uint64_t va,
					  const void *value);
enum vb_reason vb_env_remote_flush(struct vb_tqp *t, uint32_t rkey, uint64_t va, uint64_t length,
				   uint32_t type, bool whole);
void vb_env_remote_done(struct vb_tqp *t, uint8_t op, uint64_t bytes, bool ok);

/*
 * What the tables have in common: all of the link; of memory all but the responses to a queue
 * pair's own requests; of the queues all but these.
 */
#define VB_ENV_LINK                                                                              \
	.reserve = vb_qp_link_reserve, .commit = vb_qp_link_commit, .direct = vb_qp_link_direct, \
	.direct_list = vb_qp_link_direct_list, .direct_waits = vb_qp_link_direct_waits,          \
	.lend = vb_qp_link_lend, .fetch = vb_qp_link_fetch
#define VB_ENV_MEMORY                                                                           \
	.gather_check = vb_env_gather_check, .gather = vb_env_gather,                           \
	.remote_check = vb_env_remote_check, .remote_write = vb_env_remote_write,               \
	.remote_read = vb_env_remote_read, .remote_atomic = vb_env_remote_atomic,               \
	.remote_atomic_write = vb_env_remote_atomic_write, .remote_flush = vb_env_remote_flush, \
	.invalidate = vb_env_invalidate, .bind = vb_env_bind
#define VB_ENV_QUEUE                                                                         \
	.timer = vb_env_timer, .now = vb_env_now, .remote_done = vb_env_remote_done,         \
	.event = vb_env_event, .state_changed = vb_env_state_changed, .count = vb_env_count, \
	.drop = vb_env_drop, .explain = vb_env_explain

#endif
