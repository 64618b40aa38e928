/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A queue pair as engines, links and kinds know it: the public object, the protocol's state, the
 * queues, its place in an engine. What only some queue pairs need is a part behind a pointer: the
 * kind's part, and those that calls need (qp/parts.h).
 */
#ifndef VB_ENGINE_QP_H
#define VB_ENGINE_QP_H

#include <assert.h>
#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/lock.h"
#include "engine/cq_owner.h"
#include "engine/engine.h"
#include "engine/kind.h"
#include "engine/link.h"
#include "engine/pace.h"
#include "engine/recv_queue.h"
#include "host/peer.h"
#include "object/queue_memory.h"
#include "transport/tqp.h"

struct vb_cq;
struct vb_local_datagrams;
struct vb_local_near;
struct vb_mw;
struct vb_qp_attrs;
struct vb_qp_builder;
struct vb_qp_counters;
struct vb_qp_events;
struct vb_remote_qp;
struct vb_srq;

#define VB_QP_RUN_BYTES 32768u /* payload of one slot of a ring; a multiple of every path MTU */
/* vb_send_wqe.peer_hint: the link that a datagram takes. */
#define VB_HINT_NOWHERE 0u
#define VB_HINT_LOCAL   1u
#define VB_HINT_REMOTE  2u

/*
 * In the order of the processor's cache lines: what programs see, which must come first; where a
 * message goes and where it comes from; what posting and the end of a request use; the protocol's
 * lines (transport/tqp.h); the receive queue. Behind these are the members for commands, and for
 * queue pairs that wait.
 */
/* What a queue pair without a channel waits for (engine/await.h). */
enum vb_awaits {
	VB_AWAITS_NOTHING,
	VB_AWAITS_CONTACT, /* it is being made */
	VB_AWAITS_CHANNEL, /* there is nobody: a process that comes makes contact itself */
};

struct vb_qp {
	union {
		struct ibv_qp qp;
		struct ibv_qp_ex ex;
	} u;

	_Alignas(VB_CACHE_LINE) const struct vb_qp_kind *kind;
	struct vb_engine *engine;
	/*
	 * The link that it takes; of a datagram queue pair, the link of the latest destination.
	 * Never NULL.
	 */
	const struct vb_link *link;
	struct vb_channel *channel; /* RC, UC: to the peer's engine; NULL until there is one */
	struct vb_cq *scq, *rcq;
	struct vb_srq *srq;
	struct vb_srq *recv_srq; /* the queue whose entry the message in progress uses */

	/* Held by the thread that posts sends, from ibv_wr_start to complete or abort. */
	struct vb_lock wr_lock;
	/* The send queue's places are freed when the program polls (IBA 10.8.2). */
	struct vb_cq_owner completions;
	uint32_t sq_max;  /* max_send_wr */
	uint32_t sq_done; /* entries that the protocol has finished */
	/* Entries that were the device's own; the program's counts leave them out. */
	uint32_t sq_internal;
	uint32_t max_sge, max_inline; /* of a send request */
	uint32_t pd_id;
	uint32_t counted; /* operations that have a completion counter */
	bool sq_sig_all;
	/* t.state for readers without the engine's lock; set by vb_qp_publish() */
	_Atomic uint8_t state;
	bool runnable;
	/* The link is to be told when the program posts, and when it is the queue pair's turn. */
	bool heard : 1;
	bool silent : 1; /* what it heard makes no entry of a queue: a WRITE */
	/* Messages in a row that the program replied to at once, and polls left (reply.h). */
	uint8_t habit, patience;
	/* RTR was entered, and there is no channel yet: ask whenever there may be news. */
	bool seeking;
	/* Noted while it ran: contact is being made, and it goes on when there is news of that. */
	bool contact_pending;
	uint8_t awaits; /* enum vb_awaits: the list of the engine that it is in */
	bool psn_moved; /* a packet was sent: running PSNs are reported */
	/* Noted while the protocol runs, for vb_qp_settle(). */
	bool overrun;         /* a completion did not fit: go to ERR */
	bool peer_lost;       /* reserve() met a dead peer */
	uint16_t unreachable; /* reserve() met no peer; enum vb_reason, 0: it did */
	bool draining, drain_notify;

	struct vb_tqp t;
	struct vb_recv_queue rq;

	/* Scheduling in the engine (under its lock). */
	struct vb_qp *run_next;
	struct vb_qp *all_next, *all_prev;
	struct vb_qp *await_next, *await_prev;
	struct vb_qp *channel_next, *channel_prev; /* the others of `channel` */
	struct vb_qp *timer_next, *timer_prev;
	uint64_t timer_at; /* 0: none */
	struct vb_pace pace;

	void *own; /* the part of its kind (xrc, tag, raw) */
	struct vb_page_qp *pub;
	struct vb_mw *windows; /* of type 2, bound here (memory/mw_bind.c) */
	struct vb_queue_memory sq_memory;
	bool inherited; /* this is a forked child, and the queue pair is its parent's */
	bool listed;    /* it can be found by its number (qp_table.c) */
	bool last_wqe_raised;
	struct vb_path path;

	/* The links within the host (local/link.c). */
	const struct vb_page_qp *peer_qp;
	uint64_t connected_at; /* when RTR was entered, CLOCK_MONOTONIC ns */
	/* While it waits for contact: for the owner of this number, asked at this count of news. */
	uint32_t await_qpn, await_seen;
	/* The channel of the pending reservation; NULL: a datagram that is dropped. */
	struct vb_channel *reserved_channel;
	void *reserved_bulk;                  /* place for a datagram's path */
	struct vb_local_near *near;           /* local/near.h; NULL until needed */
	struct vb_local_datagrams *datagrams; /* NULL until the first (local/link.h) */
	/* The link between hosts (remote/part.h); NULL until it is needed. */
	struct vb_remote_qp *remote;
	uint32_t mcast_groups;
	void (*mcast_leave)(struct ibv_qp *qp); /* leaves all groups; NULL: it was never in one */
	bool block_self;                        /* IBV_QP_CREATE_BLOCK_SELF_MCAST_LB */

	/* Parts that not all have; NULL: not this one (qp/parts.h). */
	struct vb_qp_attrs *attrs;
	struct vb_qp_events *events;
	struct vb_qp_builder *builder;
	struct vb_qp_counters *counters;
};

static_assert(sizeof(struct vb_qp) <= 20 * VB_CACHE_LINE,
	      "what only some queue pairs or calls need is a part of its own");
static_assert(offsetof(struct vb_qp, u) == 0, "programs have a pointer to it");
static_assert(offsetof(struct vb_qp, kind) % VB_CACHE_LINE == 0 &&
		      offsetof(struct vb_qp, wr_lock) ==
			      offsetof(struct vb_qp, kind) + VB_CACHE_LINE &&
		      offsetof(struct vb_qp, t) == offsetof(struct vb_qp, wr_lock) + VB_CACHE_LINE,
	      "what each message looks at is two lines before the protocol's");
static_assert(offsetof(struct vb_qp, rq) + offsetof(struct vb_recv_queue, memory) <=
		      offsetof(struct vb_qp, t) + sizeof(struct vb_tqp) + VB_CACHE_LINE,
	      "taking a receive looks at one line behind the protocol's");

static inline struct vb_qp *vb_qp_of(struct ibv_qp *qp)
{
	return (struct vb_qp *)(void *)qp;
}

/* The queue pair in which the protocol runs. */
static inline struct vb_qp *vb_qp_body(struct vb_qp *qp)
{
	return qp->kind->body ? qp->kind->body(qp) : qp;
}

/* Whether its one-sided requests may be executed directly (local/direct.c). */
static inline bool vb_qp_wants_memory(const struct vb_qp *qp)
{
	return qp->t.service == VB_SERVICE_RC || qp->t.service == VB_SERVICE_UC;
}

static inline struct vb_qp *vb_qp_of_tqp(struct vb_tqp *t)
{
	return (struct vb_qp *)(void *)((char *)t - offsetof(struct vb_qp, t));
}

/* Under the engine's lock: publishes identity, state and rights to peers (entry of the page). */
static inline void vb_qp_publish(struct vb_qp *qp)
{
	qp->kind->publish(qp);
}
/* Raises an affiliated event once more. */
static inline void vb_qp_event(struct vb_qp *qp, enum ibv_event_type type)
{
	qp->kind->event(qp, type);
}
/*
 * The process's queue pair of that number, if `engine` serves it (engine's lock held); else NULL.
 */
struct vb_qp *vb_qp_lookup(struct vb_engine *engine, uint32_t qpn);
/*
 * Which process has a number. VB_QP_HERE: *engine serves it. VB_QP_UNKNOWN: the number lies in a
 * block of this process, but there is no such queue pair. VB_QP_ELSEWHERE: it lies in no block of
 * this process.
 */
enum vb_qp_owner { VB_QP_HERE, VB_QP_UNKNOWN, VB_QP_ELSEWHERE };
enum vb_qp_owner vb_qp_owner(struct vb_node *node, uint32_t qpn, uint32_t *engine);
void vb_qp_table_add(struct vb_qp *qp);
void vb_qp_table_remove(struct vb_qp *qp);

#endif
