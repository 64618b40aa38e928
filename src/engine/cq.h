/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Completion queues. */
#ifndef VB_ENGINE_CQ_H
#define VB_ENGINE_CQ_H

#include <assert.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/lock.h"
#include "engine/cq_owner.h"
#include "object/event_queue.h"
#include "object/queue_memory.h"
#include "verbs/ops.h"

struct vb_engine;

/* An entry: what a poll returns, and the queue places that it frees. */
struct vb_cqe {
	struct ibv_wc wc;
	struct vb_cq_owner *owner; /* NULL: the owner has ended */
	/* Send completions: polling it frees the entries of the send queue up to this one. */
	uint32_t sq_index;
	uint8_t is_send;
	/* Solicited or unsuccessful: counts for a queue armed with IBV_CQ_SOLICITED. */
	uint8_t solicited;
	uint16_t pad;
};

static_assert(sizeof(struct vb_cqe) == 64, "an entry is a cache line");

/*
 * What only extended queues tell of an entry. It is kept beside the ring, and only where wc_flags
 * ask for some of it.
 */
struct vb_cqe_more {
	uint64_t stamp;    /* CLOCK_MONOTONIC ns */
	uint64_t tag;      /* tag of a matched message */
	uint32_t priv;     /* its app_ctx, big endian on the wire, host order here */
	uint32_t flow_tag; /* IBV_FLOW_SPEC_ACTION_TAG of the rule that steered a frame */
	uint16_t cvlan;    /* the VLAN tag that was taken off a frame */
	uint16_t pad[3];
};

enum vb_cq_armed { VB_CQ_IDLE, VB_CQ_SOLICITED, VB_CQ_ANY };

struct vb_cq_engine {
	struct vb_engine *engine;
	uint32_t qps; /* queue pairs of that engine which use this CQ */
};

struct vb_cq {
	_Alignas(64) struct ibv_cq_ex ex; /* starts with struct ibv_cq */
	struct vb_lock lock;              /* the entries, arming, overrun */
	uint32_t handle;                  /* copy of ibv_cq.handle, which the program can change */
	uint32_t iter_tail;               /* entries before this one are freed at end_poll */
	struct vb_cqe *ring;
	struct vb_cqe_more *more; /* one for each entry, or NULL */
	bool stamped;             /* the clock is read for every entry */
	/* IBV_CREATE_CQ_ATTR_SINGLE_THREADED: iterations take no lock against other pollers. */
	bool single_threaded;
	bool extended;                 /* it is a vb_cq_extended */
	bool iterating;                /* under lock: other pollers wait for `consume` */
	bool mod_listed;               /* under the lock of the list of mod_next */
	struct vb_queue_memory memory; /* of ring and more */
	struct ibv_pd *pd;             /* a parent domain, or NULL */
	bool inherited;                /* this is a forked child, and the queue is its parent's */
	uint32_t mask;                 /* ring size - 1 */
	/* Entries added. Written under the lock; pollers that only look read it without. */
	_Atomic uint32_t head;
	_Atomic uint32_t tail; /* entries polled */
	/* An entry was lost: the CQ takes no more. Written under the lock, as head is. */
	_Atomic uint32_t overrun;
	_Atomic uint32_t skipped; /* polls that found entries; inexact where threads meet */
	bool ignore_overrun;
	_Atomic uint8_t armed; /* enum vb_cq_armed */
	uint32_t told;         /* entries before this one cause no event */
	uint32_t event_from;   /* the latest event told of the entries from here to `told` */
	/* The latest poll came to the end of the queue, and no event was raised since. */
	_Atomic bool seen_empty;
	/* Moderation of events (cq_moderate.c), under lock. */
	uint16_t mod_count, mod_period; /* entries, microseconds; both 0: off */
	uint32_t mod_pending;           /* entries for which an event is due */
	uint64_t mod_at;                /* end of the period, 0: none runs */
	/* List of the queues whose period runs, under the list's lock. */
	struct vb_cq *mod_next;
	struct vb_event_node comp_event, error_event;
	struct vb_events_got got;
	/* The engines to drive when the queue is polled; changed under poll_lock. */
	struct vb_lock poll_lock;
	struct vb_cq_engine *engines;
	uint32_t num_engines;
	uint32_t users; /* QPs, under poll_lock; a QP with both queues here counts twice */
	/*
	 * The engine, if there is one alone and its memory stays (engines.h): a poller may look at it
	 * without poll_lock, and asks again when it holds the engine's lock.
	 */
	_Atomic(struct vb_engine *) sole;
	struct vb_engine *own; /* engine of the QPs that send here; made with the first of them */
};

static_assert(sizeof(struct vb_cq) <= 576, "programs may have a CQ for each queue pair");

/*
 * What the iteration of ibv_cq_ex needs: `consume` is held from start_poll to end_poll, `lock` is
 * not. Meanwhile the program posts and destroys, which may add and remove entries.
 */
struct vb_cq_extended {
	struct vb_cq cq;
	struct vb_cqe current; /* a copy */
	struct vb_cqe_more current_more;
	pthread_mutex_t consume;
};

static inline struct vb_cq *vb_cq_of(struct ibv_cq *cq)
{
	return (struct vb_cq *)(void *)cq;
}

/* Of a queue that was made as an extended one. */
static inline struct vb_cq_extended *vb_cq_extended_of(struct vb_cq *cq)
{
	return (struct vb_cq_extended *)(void *)cq;
}

int vb_cq_create(struct ibv_context *ctx, const struct ibv_cq_init_attr_ex *attr, bool extended,
		 struct ibv_cq **cq);
int vb_cq_resize(struct ibv_cq *cq, int cqe);
int vb_cq_modify(struct ibv_cq *cq, const struct ibv_modify_cq_attr *attr);
int vb_cq_retire(struct ibv_cq *cq, struct vb_events_got *got);
void vb_cq_free(struct ibv_cq *cq);

/*
 * cq_moderate.c. Under the lock: an entry that the queue is armed for was added. Raises the event now
 * or later.
 */
void vb_cq_tell(struct vb_cq *cq);
/* Under the lock: there is no room. False: the queue is one that loses its oldest entry for it. */
bool vb_cq_full(struct vb_cq *cq);
/* Under the lock: what extended queues also tell of the entry that is being added. */
void vb_cq_more_fill(struct vb_cq *cq, const struct vb_cqe_more *more);

/*
 * Adds entries in place (engine's lock held), under the queue's lock: place returns where the next one
 * goes, of which every member is to be set; add publishes it. NULL: overrun, as of push.
 */
static inline struct vb_cqe *vb_cq_place(struct vb_cq *cq)
{
	uint32_t head = atomic_load_explicit(&cq->head, memory_order_relaxed);
	uint32_t tail = atomic_load_explicit(&cq->tail, memory_order_relaxed);

	if ((head - tail >= (uint32_t)cq->ex.cqe || cq->overrun) && vb_cq_full(cq))
		return NULL;
	return &cq->ring[head & cq->mask];
}

static inline void vb_cq_add(struct vb_cq *cq, const struct vb_cqe *cqe,
			     const struct vb_cqe_more *more)
{
	uint8_t armed = atomic_load_explicit(&cq->armed, memory_order_relaxed);

	if (cq->more)
		vb_cq_more_fill(cq, more);
	atomic_store_explicit(&cq->head, atomic_load_explicit(&cq->head, memory_order_relaxed) + 1,
			      memory_order_relaxed);
	if (armed == VB_CQ_ANY || (armed == VB_CQ_SOLICITED && cqe->solicited))
		vb_cq_tell(cq);
}

/* The same for one entry: begin also takes the lock, end also releases it. */
static inline struct vb_cqe *vb_cq_begin(struct vb_cq *cq)
{
	vb_lock_take(&cq->lock);
	struct vb_cqe *cqe = vb_cq_place(cq);

	if (!cqe)
		vb_lock_release(&cq->lock);
	return cqe;
}

static inline void vb_cq_end(struct vb_cq *cq, const struct vb_cqe *cqe,
			     const struct vb_cqe_more *more)
{
	vb_cq_add(cq, cqe, more);
	vb_lock_release(&cq->lock);
}

/* Adds an entry (engine's lock held). False: overrun, so the queue pair must go to ERR. */
bool vb_cq_push(struct vb_cq *cq, const struct vb_cqe *cqe);
/* The same with what extended queues also tell; `more` may be NULL. */
bool vb_cq_push_more(struct vb_cq *cq, const struct vb_cqe *cqe, const struct vb_cqe_more *more);
/* Under the lock: raises the completion event that the CQ is armed for. */
void vb_cq_fire(struct vb_cq *cq);
/* Removes every entry of the owner that was not polled (reset, destroy). */
void vb_cq_remove(struct vb_cq *cq, const struct vb_cq_owner *owner);
/* The owner ends. Its entries stay: receives of a queue that outlives it. */
void vb_cq_disown(struct vb_cq *cq, const struct vb_cq_owner *owner);

/* The engine of the QPs that send here; made when first needed. */
int vb_cq_engine(struct vb_cq *cq, struct vb_engine **engine);
/* A queue pair of `engine` begins, or ceases, to use this CQ. */
int vb_cq_attach(struct vb_cq *cq, struct vb_engine *engine);
void vb_cq_detach(struct vb_cq *cq, struct vb_engine *engine);

/* Another object than a queue pair begins, or ceases, to need the CQ. */
void vb_cq_hold(struct vb_cq *cq);
void vb_cq_unhold(struct vb_cq *cq);

/*
 * cq_poll.c: drives the engines that feed this CQ, unless another poller does, or the CQ holds as
 * many entries as are wanted. Returns an engine that was driven, for vb_poll_others(), or NULL.
 */
struct vb_engine *vb_cq_drive(struct vb_cq *cq, uint32_t wanted);
/* Under cq->lock: the entry was polled, and frees places of the send queue. */
void vb_cq_consume(const struct vb_cqe *cqe);

/* cq_moderate.c. Arms the queue, or arms it for more (enum vb_cq_armed). */
void vb_cq_arm(struct vb_cq *cq, uint8_t want);
/*
 * Under the lock: the queue was armed, or its moderation was changed, while `entries` entries wait
 * for an event.
 */
void vb_cq_tell_of(struct vb_cq *cq, uint32_t entries);
/* Under the lock: entries that caused no event yet, and that the queue is armed for. */
uint32_t vb_cq_untold(const struct vb_cq *cq);
/* The program destroys the queue. */
void vb_cq_moderate_end(struct vb_cq *cq);

/* Begins an extended queue: the ibv_cq_ex function pointers, the lock (cq_ex.c). */
void vb_cq_ex_init(struct vb_cq *cq);
/* In a forked child: the queue refuses (cq_ex.c). */
void vb_cq_forked(void *cq);

struct vb_object_type;
extern const struct vb_object_type vb_cq_type;

#endif
