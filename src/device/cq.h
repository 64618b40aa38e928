/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Completion queues. */
#ifndef VB_DEVICE_CQ_H
#define VB_DEVICE_CQ_H

#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/lock.h"
#include "device/engine.h"
#include "device/event_queue.h"
#include "verbs/ops.h"

struct vb_qp;

/* An entry: what poll returns, and whose queue slots it frees. 64 bytes. */
struct vb_cqe {
	struct ibv_wc wc;
	struct vb_qp *qp;
	uint32_t sq_index; /* send completions: entries of the send queue up to this one are free once polled */
	uint8_t is_send;
	uint8_t solicited; /* or unsuccessful: counts for IBV_CQ_SOLICITED arming */
	uint16_t pad;
};

enum vb_cq_armed { VB_CQ_IDLE, VB_CQ_SOLICITED, VB_CQ_ANY };

struct vb_cq_engine {
	struct vb_engine *engine;
	uint32_t qps; /* queue pairs of that engine which use this CQ */
};

struct vb_cq {
	struct ibv_cq_ex ex; /* starts with struct ibv_cq */
	struct vb_lock lock; /* the entries, arming, overrun */
	struct vb_cqe *ring;
	uint64_t *stamps;      /* per entry, CLOCK_MONOTONIC ns, if timestamps were asked for */
	uint32_t mask;         /* ring size - 1 */
	uint32_t head;         /* entries added */
	_Atomic uint32_t tail; /* entries polled */
	uint32_t overrun;      /* took place: the CQ takes no more */
	bool ignore_overrun;
	_Atomic uint8_t armed; /* enum vb_cq_armed */
	uint32_t told; /* entries before this one were there when the latest event was raised */
	struct vb_event_node comp_event, error_event;
	struct vb_events_got got;
	/* Which engines to drive when polled; changed under poll_lock. */
	struct vb_lock poll_lock;
	struct vb_cq_engine *engines;
	uint32_t num_engines;
	struct vb_engine *own; /* the engine of the QPs that send here; made with the first of them */
	uint32_t users;        /* QPs (a QP with both queues here counts twice), under poll_lock */
	/*
	 * ibv_cq_ex iteration: `consume` is held from start_poll to end_poll, `lock` is not: the program posts and destroys meanwhile,
	 * which may add and remove entries.
	 */
	pthread_mutex_t consume;
	bool iterating;        /* under lock: other pollers wait for `consume` */
	struct vb_cqe current; /* a copy */
	uint64_t current_stamp;
	uint32_t iter_tail; /* entries before this one are given back at end_poll */
};

static inline struct vb_cq *vb_cq_of(struct ibv_cq *cq)
{
	return (struct vb_cq *)(void *)cq;
}

int vb_cq_create(struct ibv_context *ctx, const struct ibv_cq_init_attr_ex *attr, bool extended,
		 struct ibv_cq **cq);
int vb_cq_resize(struct ibv_cq *cq, int cqe);
int vb_cq_modify(struct ibv_cq *cq, const struct ibv_modify_cq_attr *attr);
int vb_cq_retire(struct ibv_cq *cq, struct vb_events_got *got);
void vb_cq_free(struct ibv_cq *cq);

/* Adds an entry (engine's lock held). False: overrun, the queue pair must go to ERR. */
bool vb_cq_push(struct vb_cq *cq, const struct vb_cqe *cqe);
/* Raises the completion event the CQ is armed for (under lock). */
void vb_cq_fire(struct vb_cq *cq);
/* Removes every unpolled entry of the queue pair (reset, destroy). */
void vb_cq_remove_qp(struct vb_cq *cq, const struct vb_qp *qp);

/* The engine of the QPs that send here; made on first use. */
int vb_cq_engine(struct vb_cq *cq, struct vb_engine **engine);
/* A queue pair of `engine` starts or ends using this CQ. */
int vb_cq_attach(struct vb_cq *cq, struct vb_engine *engine);
void vb_cq_detach(struct vb_cq *cq, struct vb_engine *engine);

/* Drives what feeds this CQ, unless another poller does (cq_poll.c). */
void vb_cq_drive(struct vb_cq *cq);
/* Entry was polled: frees send queue slots. Under cq->lock. */
void vb_cq_consume(const struct vb_cqe *cqe);
/* Sets the ibv_cq_ex function pointers (cq_ex.c). */
void vb_cq_ex_init(struct vb_cq *cq);

#endif
