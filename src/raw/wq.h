/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Receive work queues and the tables that spread frames over them (ibv_create_wq(3),
 * ibv_create_rwq_ind_table(3)).
 */
#ifndef VB_RAW_WQ_H
#define VB_RAW_WQ_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

struct vb_cq;
struct vb_cqe_more;
struct vb_engine;
struct vb_rwq_table;
struct vb_events_got;

int vb_wq_create(struct ibv_context *ctx, struct ibv_wq_init_attr *attr, struct ibv_wq **wq);
int vb_wq_modify(struct ibv_wq *wq, const struct ibv_wq_attr *attr);
int vb_wq_retire(struct ibv_wq *wq, struct vb_events_got *got);
void vb_wq_free(struct ibv_wq *wq);

int vb_rwq_table_create(struct ibv_context *ctx, const struct ibv_rwq_ind_table_init_attr *attr,
			struct ibv_rwq_ind_table **table);
int vb_rwq_table_destroy(struct ibv_rwq_ind_table *table);

/*
 * A queue pair spreads over the table: from now on the CQs of the table's queues drive `engine`.
 * NULL with the reason recorded.
 */
struct vb_rwq_table *vb_rwq_table_get(struct ibv_context *ctx, struct ibv_rwq_ind_table *table);
int vb_rwq_table_attach(struct vb_rwq_table *table, struct vb_engine *engine);
void vb_rwq_table_detach(struct vb_rwq_table *table, struct vb_engine *engine);
void vb_rwq_table_put(struct vb_rwq_table *table);
/* The CQ of the first queue. Its engine is the queue pair's. */
struct vb_cq *vb_rwq_table_cq(const struct vb_rwq_table *table);

/*
 * The queue for this hash gets the frame. False: it was dropped, with the reason recorded. Under
 * the engine's lock.
 */
bool vb_rwq_table_receive(struct vb_rwq_table *table, struct vb_engine *engine, uint32_t hash,
			  const void *data, uint32_t length, uint32_t flags,
			  struct vb_cqe_more *more);
/* Whether the queue for this hash wants VLAN tags taken off. */
bool vb_rwq_table_strips(const struct vb_rwq_table *table, uint32_t hash);

struct vb_object_type;
extern const struct vb_object_type vb_rwq_table_type;

extern const struct vb_object_type vb_wq_type;

#endif
