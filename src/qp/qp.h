/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Queue pairs: the calls about them, and functions of ordinary ones that other kinds use. */
#ifndef VB_QP_QP_H
#define VB_QP_QP_H

#include <infiniband/verbs.h>
#include <stdbool.h>

#include "engine/qp.h"
#include "verbs/ops.h"

extern const struct vb_env vb_qp_env; /* env.c */

/* `kind` follows from the type; a shared receive queue's kind may replace it. */
int vb_qp_create(struct ibv_context *ctx, const struct vb_qp_kind *kind,
		 struct ibv_qp_init_attr_ex *attr, struct ibv_qp **qp);
int vb_qp_query(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
		struct ibv_qp_init_attr *init);
int vb_qp_modify(struct ibv_qp *qp, const struct ibv_qp_attr *attr, int mask);
/* rate_limit.c: -EINVAL, with the reason recorded. */
int vb_qp_modify_rate_limit(struct ibv_qp *qp, const struct ibv_qp_rate_limit_attr *attr);
int vb_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode op, uint32_t flags);
/* ece.c: *ece gets what is accepted, or what is set. */
int vb_qp_set_ece(struct ibv_qp *qp, struct ibv_ece *ece);
int vb_qp_query_ece(struct ibv_qp *qp, struct ibv_ece *ece);
int vb_qp_retire(struct ibv_qp *qp, struct vb_events_got *got);
void vb_qp_free(struct ibv_qp *qp);

/* Ordinary queue pairs. Tables of other kinds name these functions where they do the same. */
extern const struct vb_qp_kind vb_qp_ordinary;
void vb_qp_ordinary_psns(const struct vb_qp *qp, struct ibv_qp_attr *attr);
int vb_qp_ordinary_retire(struct vb_qp *qp, struct vb_events_got *got);
void vb_qp_ordinary_free(struct vb_qp *qp);
void vb_qp_ordinary_publish(struct vb_qp *qp);
void vb_qp_ordinary_event(struct vb_qp *qp, enum ibv_event_type type);
void vb_qp_ordinary_clear(struct vb_qp *qp);
void vb_qp_ordinary_receive(struct vb_qp *qp, const struct vb_run *run, const void *payload);

/*
 * Parts of creation and destruction that XRC bodies and handles share. stop (engine's lock): no run
 * arrives any more, and the engine forgets the queue pair.
 */
void vb_qp_protocol_init(struct vb_qp *qp, enum ibv_qp_type type);
void vb_qp_stop(struct vb_qp *qp);
/*
 * Under the engine's lock: takes attributes and state from another process. What they need of links
 * is acquired, or noted as missing.
 */
void vb_qp_mirror(struct vb_qp *qp, const struct ibv_qp_attr *attr, enum ibv_qp_state state);
/* Drops all send and receive work without completions (RESET). */
void vb_qp_queues_clear(struct vb_qp *qp);
/* Sets ex.wr_* of a queue pair that has the builder part (post_ex.c). */
int vb_qp_ex_init(struct vb_qp *qp);
/* In a forked child: the queue pair refuses (post_ex.c). */
void vb_qp_forked(void *qp);

struct vb_object_type;
extern const struct vb_object_type vb_qp_type;

#endif
