/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Shared receive queues. */
#ifndef VB_ENGINE_SRQ_H
#define VB_ENGINE_SRQ_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/lock.h"
#include "object/event_queue.h"
#include "object/queue_memory.h"
#include "transport/env.h"
#include "transport/wqe.h"
#include "verbs/ops.h"

struct vb_cq;
struct vb_qp_kind;
struct vb_srq;

/* What differs between kinds of shared receive queues. All members may be NULL. */
struct vb_srq_kind {
	/*
	 * Judges attributes that only this kind has; mask, type and protection domain were checked.
	 */
	int (*check)(const struct ibv_srq_init_attr_ex *attr);
	/* The last step of creation, undone by close(). */
	int (*open)(struct vb_srq *s, struct ibv_context *ctx,
		    const struct ibv_srq_init_attr_ex *attr);
	/* Requests find the queue no more. */
	void (*retire)(struct vb_srq *s);
	void (*close)(struct vb_srq *s);
	/* Whether a queue pair of that type may be made with it. */
	int (*admit)(enum ibv_qp_type type);
	/* The kind of the queue pairs that use it. NULL: the kind follows from their type. */
	const struct vb_qp_kind *qp;
};

struct vb_srq {
	_Alignas(64) struct ibv_srq srq;
	struct vb_lock lock;
	const struct vb_srq_kind *kind;
	struct vb_queue_memory memory; /* memory of the next three */
	char *mem;                     /* max_wr entries of `stride` bytes */
	uint32_t stride;
	uint32_t max_wr, max_sge;
	uint32_t *fifo;     /* indices of posted entries, a ring of max_wr */
	uint32_t fifo_head; /* the next one to take */
	uint32_t posted;    /* entries in the fifo */
	uint32_t *free;     /* stack of free indices */
	uint32_t num_free;
	uint32_t limit; /* armed limit, 0: none */
	bool inherited; /* this is a forked child, and the queue is its parent's */
	uint32_t pd_id;
	uint32_t users;
	void *own;        /* the part of its kind (xrc, tag) */
	struct vb_cq *cq; /* for its own completions; NULL: those of its queue pairs are used */
	uint32_t number;  /* XRC: the number that requests name */
	struct vb_event_node limit_event;
	struct vb_events_got got;
};

static inline struct vb_srq *vb_srq_of(struct ibv_srq *srq)
{
	return (struct vb_srq *)(void *)srq;
}

extern const struct vb_srq_kind vb_srq_ordinary;

int vb_srq_create(struct ibv_context *ctx, const struct vb_srq_kind *kind,
		  struct ibv_srq_init_attr_ex *attr, struct ibv_srq **srq);
int vb_srq_modify(struct ibv_srq *srq, const struct ibv_srq_attr *attr, int mask);
int vb_srq_query(struct ibv_srq *srq, struct ibv_srq_attr *attr);
int vb_srq_retire(struct ibv_srq *srq, struct vb_events_got *got);
void vb_srq_free(struct ibv_srq *srq);

/* A queue pair of that type uses the queue. -ENOENT; -EINVAL: it is not for that type. */
int vb_srq_get(struct ibv_context *ctx, struct ibv_srq *srq, enum ibv_qp_type type);
void vb_srq_put(struct vb_srq *srq);

/*
 * Takes the oldest posted receive, which the caller then has. NULL if there is none. Raises the
 * limit event.
 */
struct vb_recv_wqe *vb_srq_take(struct vb_srq *srq);
void vb_srq_untake(struct vb_srq *srq, const struct vb_recv_wqe *wqe);
/* Frees the entries of `count` receives that were done. */
void vb_srq_release(struct vb_srq *srq, const struct vb_recv_done *done, uint32_t count);

struct vb_object_type;
extern const struct vb_object_type vb_srq_type;

#endif
