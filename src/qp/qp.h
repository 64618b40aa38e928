/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Queue pairs: the public object, its queues, its place in an engine, and the protocol's state. */
#ifndef VB_QP_QP_H
#define VB_QP_QP_H

#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "engine/cq.h"
#include "engine/engine.h"
#include "engine/kind.h"
#include "engine/pace.h"
#include "object/queue_memory.h"
#include "host/peer.h"
#include "transport/tqp.h"
#include "verbs/ops.h"

struct vb_cq;
struct vb_mw;
struct vb_qp_attrs;
struct vb_qp_builder;
struct vb_qp_counters;
struct vb_qp_events;
struct vb_srq;
struct vb_udp_sender;

/* The queue pair's own receive queue: posters fill entries under `lock`, the engine takes them without. */
struct vb_recv_queue {
	struct vb_lock lock;
	char *mem;
	struct vb_queue_memory memory;
	uint32_t stride;
	uint32_t size; /* power of two >= max_wr */
	uint32_t max_wr, max_sge;
	_Atomic uint32_t posted;
	uint32_t taken;        /* engine's */
	_Atomic uint32_t done; /* entries the program may post again */
};

#define VB_QP_RUN_BYTES 32768u /* payload of one slot of a ring; a multiple of every path MTU */
/* vb_send_wqe.peer_hint: which link a datagram takes. */
#define VB_HINT_NOWHERE 0u
#define VB_HINT_LOCAL   1u
#define VB_HINT_REMOTE  2u

#define VB_UD_CACHE     16 /* destinations a UD queue pair remembers channels for */

struct vb_qp {
	union {
		struct ibv_qp qp;
		struct ibv_qp_ex ex;
	} u;
	const struct vb_qp_kind *kind;
	void *own; /* what its kind keeps of it (xrc, tag, raw) */
	struct vb_tqp t;
	struct vb_engine *engine;
	struct vb_cq *scq, *rcq;
	struct vb_srq *srq;
	struct vb_srq *recv_srq; /* whose entry the message in progress uses */
	struct vb_page_qp *pub;
	uint32_t pd_id;
	bool inherited; /* the process is a forked child, the queue pair its parent's */
	bool listed;    /* found by its number (qp_table.c) */
	_Atomic uint8_t
		state; /* t.state for those who look without the engine's lock; set by vb_qp_publish() */

	/* The link that it takes; a datagram queue pair's: that of the latest destination. Never NULL. */
	const struct vb_link *link;
	bool heard; /* the link wants to know what the program posts, and when it is the queue pair's turn */
	struct vb_channel *channel; /* RC, UC: to the peer's engine; NULL until there is one */
	const struct vb_page_qp *peer_qp;
	uint64_t connected_at; /* when RTR was entered, CLOCK_MONOTONIC ns */
	bool seeking; /* RTR was entered, the channel is not there yet: ask whenever there may be news */
	uint16_t unreachable; /* reserve() met no peer: tell the protocol after it returns; enum vb_reason, 0 = no */
	bool peer_lost; /* reserve() met a dead peer */
	struct vb_channel *ud_cache[VB_UD_CACHE];
	uint32_t ud_cache_qpn[VB_UD_CACHE];
	uint32_t ud_slow[VB_UD_CACHE]; /* contact was waited for in vain: no longer */
	uint64_t ud_wait_since;        /* a datagram waits for contact since then, 0 = no */
	const char *discard_why;
	_Alignas(64) uint8_t scratch[VB_SLOT_BYTES]; /* a reservation's small payload */
	struct vb_channel *
		reserved_channel; /* where the pending reservation lies; NULL: a datagram that is dropped */
	void *reserved_bulk;
	void *discard; /* payload of datagrams that go nowhere (allocated when first needed) */

	/* Scheduling in the engine (under its lock). */
	struct vb_qp *all_next, *all_prev;
	struct vb_qp *run_next;
	bool runnable;
	uint8_t udp_habit; /* messages in a row that were replied to at once */
	struct vb_qp *timer_next, *timer_prev;
	uint64_t timer_at; /* 0 = none */
	bool overrun;      /* a completion did not fit: go to ERR when the protocol returns */
	bool last_wqe_raised;

	/* Send queue slots: freed when the program polls (IBA 10.8.2). */
	uint32_t sq_max;  /* max_send_wr */
	uint32_t counted; /* operations that have a completion counter */
	struct vb_pace pace;
	struct vb_queue_memory sq_memory;
	uint32_t sq_done; /* entries the protocol has finished */
	struct vb_cq_owner completions;
	uint32_t sq_internal; /* entries that were the device's own; the others' counts leave them out */
	struct vb_recv_queue rq;

	struct vb_lock wr_lock; /* held by who posts sends, from ibv_wr_start to complete or abort */

	uint32_t max_sge, max_inline; /* of a send request */
	bool sq_sig_all;
	bool psn_moved; /* something was sent: report running PSNs */
	bool drain_notify, draining;
	struct vb_path path;

	/* The link between hosts (remote/qp.c). */
	uint8_t udp; /* families whose sockets it holds (VB_UDP_IPV4 ...) */
	uint32_t udp_ifindex;
	struct vb_udp_sender *udp_sender[2]; /* by family */
	enum { VB_PAIRING_OFF, VB_PAIRING_NEXT, VB_PAIRING_HELD } udp_pairing;
	struct vb_run udp_held; /* its payload is in the engine's staging buffer */
	uint32_t mcast_groups;
	void (*mcast_leave)(struct ibv_qp *qp); /* all groups; NULL: it was never in one */
	bool block_self;                        /* IBV_QP_CREATE_BLOCK_SELF_MCAST_LB */
	struct vb_mw *windows;                  /* of type 2, bound here (memory/mw_bind.c) */

	/* Parts that not all have, NULL: not this one (qp/parts.h). */
	struct vb_qp_attrs *attrs;
	struct vb_qp_events *events;
	struct vb_qp_builder *builder;
	struct vb_qp_counters *counters;
};

static inline struct vb_qp *vb_qp_of(struct ibv_qp *qp)
{
	return (struct vb_qp *)(void *)qp;
}

/* Where the protocol runs. */
static inline struct vb_qp *vb_qp_body(struct vb_qp *qp)
{
	return qp->kind->body ? qp->kind->body(qp) : qp;
}

/* May its one-sided requests be done directly (local/direct.c)? */
static inline bool vb_qp_wants_memory(const struct vb_qp *qp)
{
	return qp->t.service == VB_SERVICE_RC || qp->t.service == VB_SERVICE_UC;
}

static inline struct vb_qp *vb_qp_of_tqp(struct vb_tqp *t)
{
	return (struct vb_qp *)(void *)((char *)t - offsetof(struct vb_qp, t));
}

extern const struct vb_env vb_qp_env; /* env.c */

/* `kind` is what the type says; that of a shared receive queue may say another. */
int vb_qp_create(struct ibv_context *ctx, const struct vb_qp_kind *kind,
		 struct ibv_qp_init_attr_ex *attr, struct ibv_qp **qp);
int vb_qp_query(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
		struct ibv_qp_init_attr *init);
int vb_qp_modify(struct ibv_qp *qp, const struct ibv_qp_attr *attr, int mask);
/* rate_limit.c: -EINVAL, with the reason recorded. */
int vb_qp_modify_rate_limit(struct ibv_qp *qp, const struct ibv_qp_rate_limit_attr *attr);
int vb_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode op, uint32_t flags);
/* ece.c: *ece becomes what is accepted, or what is set. */
int vb_qp_set_ece(struct ibv_qp *qp, struct ibv_ece *ece);
int vb_qp_query_ece(struct ibv_qp *qp, struct ibv_ece *ece);
int vb_qp_retire(struct ibv_qp *qp, struct vb_events_got *got);
void vb_qp_free(struct ibv_qp *qp);

/* Ordinary queue pairs; what they do, the tables of other kinds name where these do the same. */
extern const struct vb_qp_kind vb_qp_ordinary;
void vb_qp_ordinary_psns(const struct vb_qp *qp, struct ibv_qp_attr *attr);
int vb_qp_ordinary_retire(struct vb_qp *qp, struct vb_events_got *got);
void vb_qp_ordinary_free(struct vb_qp *qp);
void vb_qp_ordinary_publish(struct vb_qp *qp);
void vb_qp_ordinary_event(struct vb_qp *qp, enum ibv_event_type type);
void vb_qp_ordinary_clear(struct vb_qp *qp);
void vb_qp_ordinary_receive(struct vb_qp *qp, const struct vb_run *run, const void *payload);

/* Parts of life that XRC bodies and handles share. stop (engine's lock): nothing arrives any more, the engine forgets it. */
void vb_qp_protocol_init(struct vb_qp *qp, enum ibv_qp_type type);
void vb_qp_stop(struct vb_qp *qp);
/* Under the engine's lock: takes attributes and state from elsewhere; what they need of links is acquired, or noted as missing. */
void vb_qp_mirror(struct vb_qp *qp, const struct ibv_qp_attr *attr, enum ibv_qp_state state);
/* Under the engine's lock: publish identity, state and rights to peers (entry of the page). */
static inline void vb_qp_publish(struct vb_qp *qp)
{
	qp->kind->publish(qp);
}
/* Under the engine's lock: the state became ERR: flush receives, LAST_WQE_REACHED. */
void vb_qp_entered_error(struct vb_qp *qp);
/* Raise an affiliated event once more. */
static inline void vb_qp_event(struct vb_qp *qp, enum ibv_event_type type)
{
	qp->kind->event(qp, type);
}
/* Under the engine's lock: what callbacks could only note while the protocol ran. */
void vb_qp_settle(struct vb_qp *qp);
/* Drops all send and receive work without completions (RESET). */
void vb_qp_queues_clear(struct vb_qp *qp);
/* Under the engine's lock: flush posted receives of the own queue as errors. */
void vb_qp_flush_receives(struct vb_qp *qp);
/* Under the engine's lock: a run has arrived for the queue pair, by whatever link. */
void vb_qp_arrived(struct vb_qp *qp, const struct vb_run *run, const void *payload);
/* Sets ex.wr_* of a queue pair that has the part for it (post_ex.c). */
int vb_qp_ex_init(struct vb_qp *qp);
/* In a forked child: the queue pair refuses (post_ex.c). */
void vb_qp_forked(void *qp);

/* The process's queue pair of that number, if `engine` serves it (engine's lock held); else NULL. */
struct vb_qp *vb_qp_lookup(struct vb_engine *engine, uint32_t qpn);
/* Whose number is it? VB_QP_HERE: *engine serves it; VB_QP_UNKNOWN: it would be ours, but there is none; VB_QP_ELSEWHERE: no block of ours. */
enum vb_qp_owner { VB_QP_HERE, VB_QP_UNKNOWN, VB_QP_ELSEWHERE };
enum vb_qp_owner vb_qp_owner(struct vb_node *node, uint32_t qpn, uint32_t *engine);
void vb_qp_table_add(struct vb_qp *qp);
void vb_qp_table_remove(struct vb_qp *qp);

struct vb_object_type;
extern const struct vb_object_type vb_qp_type;

#endif
