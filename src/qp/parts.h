/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The parts of a queue pair that calls need and traffic does not. Each is allocated for the queue
 * pairs that use it.
 */
#ifndef VB_QP_PARTS_H
#define VB_QP_PARTS_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "engine/qp.h"
#include "engine/send_wqe.h"
#include "object/event_queue.h"
#include "verbs/ops.h"

/*
 * The attributes that were set, as ibv_query_qp(3) returns them. For queue pairs that run the
 * protocol.
 */
struct vb_qp_attrs {
	struct ibv_qp_attr set;
	struct ibv_qp_cap cap;
};

#define VB_QP_EVENTS 6 /* events of queue pairs that the device raises */

/* Affiliated events. For queue pairs that programs hold. */
struct vb_qp_events {
	struct vb_event_node node[VB_QP_EVENTS];
	struct vb_events_got got;
};

/*
 * ibv_wr_*(3): the batch that is being built, from start to complete or abort; guarded by wr_lock.
 * For queue pairs made with send_ops_flags.
 */
struct vb_qp_builder {
	bool open; /* between start and complete or abort */
	int error; /* EINVAL also where no batch is open */
	struct vb_send_batch batch;
	struct vb_send_wqe *current;
};

#define VB_COMP_CNTR_NUM_OPS 6 /* operations that a queue pair can count */

/* By operation (comp_cntr.c). For queue pairs that a counter was attached to. */
struct vb_qp_counters {
	struct vb_comp_cntr *of[VB_COMP_CNTR_NUM_OPS];
};

/* Allocate a part: -ENOMEM with the reason recorded. */
int vb_qp_attrs_alloc(struct vb_qp *qp);
int vb_qp_events_alloc(struct vb_qp *qp);
/* Frees all parts that exist. */
void vb_qp_parts_free(struct vb_qp *qp);

/*
 * Raises an event of a queue pair that the program holds. An event that queue pairs do not have is
 * ignored.
 */
void vb_qp_raise(struct vb_qp *qp, enum ibv_event_type type);
/* The queue pair is retired: events that were not fetched are dropped; *got tells how many were. */
void vb_qp_events_end(struct vb_qp *qp, struct vb_events_got *got);

#endif
