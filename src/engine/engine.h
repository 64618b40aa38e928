/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * An engine: the queue pairs of one send CQ, their channels and timers, behind one lock.
 *
 * Whoever polls a CQ drives the engines that feed it; an engine that another thread is driving is skipped. When nobody
 * polls, the progress thread drives (progress.c). Lock order: cq.poll_lock, engine.lock, srq.lock, cq.lock, event queue.
 */
#ifndef VB_ENGINE_ENGINE_H
#define VB_ENGINE_ENGINE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/lock.h"
#include "engine/channel_list.h"
#include "engine/link.h"
#include "host/channel.h"
#include "host/node.h"

/* How often the progress thread looks whether an engine is still polled. */
#define VB_LEASE_NS 2000000ull

struct vb_engine_hook;
struct vb_qp;
struct vb_remote_engine;
struct vb_run;

/* Which ways the work has taken; under the engine's lock, summed up by paths.c. */
struct vb_paths {
	uint64_t direct_requests, direct_bytes; /* one-sided, by the initiator itself */
	uint64_t shm_runs, shm_bytes;           /* through rings of another process */
	uint64_t loop_runs, loop_bytes;         /* through rings within the process */
	uint64_t udp_runs, udp_bytes;           /* to other hosts */
	uint64_t udp_strays;                    /* packets passed on to other processes */
};

struct vb_engine {
	_Alignas(64) struct vb_lock lock; /* engines share no cache line */
	/* These and the lock outlive the engine, whose memory is used for another one (engines.h); written under the lock. */
	uint32_t life;            /* odd while there is an engine */
	_Atomic uint64_t polls;   /* the lease: grows while somebody polls */
	_Atomic uintptr_t poller; /* who polled it last (vb_bias_self()) */
	struct vb_paths paths;
	struct vb_node *node;
	struct vb_page_engine *pub; /* our entry of the published table */
	uint32_t index;
	uint32_t streak;     /* polls since the engine was put to sleep */
	uint64_t polls_seen; /* the progress thread's copy */
	bool for_events;     /* when it was polled last, that CQ was armed */
	struct vb_channel_list channels;
	struct vb_channel *pushed; /* channels whose remote engine may have to be woken */
	struct vb_channel *inbox;  /* new channels, under the process's table lock */
	_Atomic bool inbox_news;
	struct vb_qp *qps; /* all queue pairs (doubly linked, qp->all_next) */
	struct vb_qp *
		runnable; /* queue pairs that owe or wait for something (singly linked, qp->run_next) */
	struct vb_qp *timed;  /* queue pairs with a timer (doubly linked) */
	_Atomic bool waiting; /* `runnable` is not empty; for those who look without the lock */
	_Atomic uint64_t deadline; /* earliest timer in CLOCK_MONOTONIC ns, 0 = none */
	uint32_t clock_skip;       /* polls until the clock is read again while a timer is armed */
	/* Links that are driven, in the order in which they have joined; only ever more. */
	const struct vb_link *link[VB_ENGINE_LINKS];
	uint32_t num_links;
	/* Queue pairs and memberships whose links are read by system calls: while there are some, drives read them. */
	uint32_t reads;
	bool yields; /* nothing has come for long over those links: who polls gives the processor away once */
	bool courtesy;      /* some runnable queue pair was deferred (link->defer) */
	_Atomic bool keeps; /* a link keeps what no event will move: look again, ever more seldom */
	struct vb_remote_engine
		*remote; /* the part of the link between hosts (remote/part.h); NULL: none */
	struct vb_engine_hook *hooks; /* what else it serves (hook.h) */
	uint32_t held;                /* by walks, under the table's lock (engines.c) */
	struct vb_engine *next_spare;
};

/* leans: its lock may lean towards a thread (base/bias.h). */
int vb_engine_create(struct vb_engine **engine, bool leans);
/* No queue pair is left. Takes the engine off the process's list, closes its channels. */
void vb_engine_destroy(struct vb_engine *engine);

/* Under the lock: serve channels, runnable queue pairs and due timers once. Returns true if anything arrived. */
bool vb_engine_drive(struct vb_engine *engine);

/*
 * A poller's turn: drives; where another thread is at it, does nothing, or while the engine sleeps, waits and drives then. `armed`: the
 * caller's CQ waits for an event, so stay asleep.
 */
void vb_engine_poll(struct vb_engine *engine, bool armed);

/* Under the lock: a poller's drive, which keeps the lease running. */
bool vb_engine_polled(struct vb_engine *engine, bool armed);

/* Without waiting for the lock: the program ends by exit(3); acknowledgements that wait for a reply go out. */
void vb_engine_at_exit(struct vb_engine *engine);

/* Under the lock: have senders ring the doorbell from now on; then look once more. */
void vb_engine_sleep(struct vb_engine *engine);

/* Under the lock: vb_tqp_run() and what follows from it: keep the queue pair on the runnable list while it has work left. */
void vb_engine_run_qp(struct vb_engine *engine, struct vb_qp *qp);
/* Under the lock: the program has posted send requests. */
void vb_engine_posted(struct vb_engine *engine, struct vb_qp *qp);
/* Under the lock: the queue pair has work for the next drive. */
void vb_engine_make_runnable(struct vb_engine *engine, struct vb_qp *qp);
/* Under the lock: forget the queue pair (destroy). */
void vb_engine_remove_qp(struct vb_engine *engine, struct vb_qp *qp);
/* Under the lock: env->queue.timer. */
void vb_engine_timer(struct vb_engine *engine, struct vb_qp *qp, uint64_t delay_ns);

/* Under the lock: something was pushed into the channel; vb_engine_flush() rings the doorbells that need it. */
void vb_engine_pushed(struct vb_engine *engine, struct vb_channel *channel);
void vb_engine_flush(struct vb_engine *engine);
/* Under the lock: the channel is gone (its peer died, or the remote engine closed it): tell the queue pairs, close our end. */
void vb_engine_lose_channel(struct vb_engine *engine, struct vb_channel *channel, bool peer_dead);
/* A new channel end for this engine; taken up by the next drive. Called under the process's table lock. */
void vb_engine_adopt(struct vb_engine *engine, struct vb_channel *channel);
void vb_engine_add_qp(struct vb_engine *engine, struct vb_qp *qp);

#endif
