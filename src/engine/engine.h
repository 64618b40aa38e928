/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * An engine: the queue pairs of one send CQ, their channels and timers, behind one lock.
 *
 * A thread that polls a CQ drives the engines that feed it, and skips an engine that another thread
 * is driving. When no thread polls, the progress thread drives (progress.c). Lock order:
 * base/lock_order.h.
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

struct vb_counters;
struct vb_engine_hook;
struct vb_qp;
struct vb_remote_engine;
struct vb_run;

/* How the work was done. Under the engine's lock; paths.c sums the counters up. */
struct vb_paths {
	uint64_t direct_requests, direct_bytes; /* one-sided, executed by the initiator itself */
	uint64_t shm_runs, shm_bytes;           /* through rings of another process */
	uint64_t loop_runs, loop_bytes;         /* through rings within the process */
	uint64_t udp_runs, udp_bytes;           /* to other hosts */
	uint64_t udp_strays;                    /* packets passed on to other processes */
};

struct vb_engine {
	_Alignas(64) struct vb_lock lock; /* engines share no cache line */
	/*
	 * The lock and these members outlive the engine; their memory is used for another engine
	 * (engines.h). Written under the lock.
	 */
	uint32_t life;            /* odd while there is an engine */
	_Atomic uint64_t polls;   /* the lease: grows while a thread polls */
	_Atomic uintptr_t poller; /* the thread that polled it last (vb_bias_self()) */
	struct vb_paths paths;
	struct vb_port_counters *port; /* what it counts for its device's port; NULL: nothing */
	struct vb_counters *counters;  /* the block that `port` lies in */
	struct vb_node *node;
	struct vb_page_engine *pub; /* this engine's entry of the published table */
	uint32_t index;
	uint32_t streak;     /* polls since the engine was put to sleep */
	uint64_t polls_seen; /* the progress thread's copy */
	bool for_events;     /* when it was polled last, that CQ was armed */
	struct vb_channel_list channels;
	struct vb_channel *pushed; /* channels whose remote engine may have to be woken */
	struct vb_channel *inbox;  /* new channels, under the process's table lock */
	_Atomic bool inbox_news;
	struct vb_qp *qps; /* all queue pairs (doubly linked, qp->all_next) */
	/* Queue pairs that owe something or wait for something (singly linked, qp->run_next). */
	struct vb_qp *runnable;
	struct vb_qp *timed;       /* queue pairs with a timer (doubly linked) */
	_Atomic bool waiting;      /* `runnable` is not empty; for threads without the lock */
	_Atomic uint64_t deadline; /* earliest timer in CLOCK_MONOTONIC ns, 0: none */
	uint32_t clock_skip;       /* polls until the clock is read again while a timer is armed */
	/* Links that it drives, in the order in which they joined. None ever leaves. */
	const struct vb_link *link[VB_ENGINE_LINKS];
	uint32_t num_links;
	/*
	 * Queue pairs and memberships whose links are read by system calls: while there are some,
	 * drives read them.
	 */
	uint32_t reads;
	/* Nothing has come for long over those links: a poller gives the processor away once. */
	bool yields;
	bool deferred; /* a runnable queue pair was deferred (link->defer) */
	/*
	 * A link keeps packets that no event will move: to be looked at again, at growing
	 * intervals.
	 */
	_Atomic bool keeps;
	/* The part of the link between hosts (remote/part.h); NULL: none. */
	struct vb_remote_engine *remote;
	struct vb_engine_hook *hooks; /* what else it serves (hook.h) */
	/* Number of walks that hold it, under the table's lock (engines.c). */
	uint32_t held;
	struct vb_engine *next_spare;
};

/*
 * `device`: for whose port it counts (NULL: none). `leans`: the engine's lock may lean towards a
 * thread (base/bias.h).
 */
int vb_engine_create(struct vb_engine **engine, const struct ibv_device *device, bool leans);
/* No queue pair is left. Takes the engine off the process's list and closes its channels. */
void vb_engine_destroy(struct vb_engine *engine);

/*
 * Under the lock: serves channels, runnable queue pairs and due timers once. True if anything
 * arrived.
 */
bool vb_engine_drive(struct vb_engine *engine);

/*
 * A poll: drives the engine. Where another thread is driving, returns; or, while the engine sleeps,
 * waits and then drives. `armed`: the caller's CQ waits for an event, so the engine stays asleep.
 */
void vb_engine_poll(struct vb_engine *engine, bool armed);

/* Under the lock: a poller's drive, which extends the lease. */
bool vb_engine_polled(struct vb_engine *engine, bool armed);

/* Under the lock: one more, or one fewer, whose link is read by system calls (`reads`). */
void vb_engine_reads_begin(struct vb_engine *engine);
void vb_engine_reads_end(struct vb_engine *engine);

/*
 * Does not wait for the lock. The program ends by exit(3): acknowledgements that wait for a reply
 * are sent.
 */
void vb_engine_at_exit(struct vb_engine *engine);

/* Under the lock: from now on senders ring the doorbell; then looks once more. */
void vb_engine_sleep(struct vb_engine *engine);

/*
 * Under the lock: vb_tqp_run() and what follows from it. The queue pair stays in the runnable list
 * while it has work left.
 */
void vb_engine_run_qp(struct vb_engine *engine, struct vb_qp *qp);
/* Under the lock: the program has posted send requests. */
void vb_engine_posted(struct vb_engine *engine, struct vb_qp *qp);
/* Under the lock: the queue pair has work for the next drive. */
void vb_engine_make_runnable(struct vb_engine *engine, struct vb_qp *qp);
/* Under the lock: forgets the queue pair (destroy). */
void vb_engine_remove_qp(struct vb_engine *engine, struct vb_qp *qp);
/* Under the lock: env->queue.timer. */
void vb_engine_timer(struct vb_engine *engine, struct vb_qp *qp, uint64_t delay_ns);

/*
 * Under the lock: a slot was pushed into the channel. vb_engine_flush() rings the doorbells that
 * need it.
 */
void vb_engine_pushed(struct vb_engine *engine, struct vb_channel *channel);
void vb_engine_flush(struct vb_engine *engine);
/*
 * Under the lock: the channel has ended (its peer died, or the remote engine closed it): tells the
 * queue pairs and closes this end.
 */
void vb_engine_lose_channel(struct vb_engine *engine, struct vb_channel *channel, bool peer_dead);
/*
 * A new channel end for this engine, which the next drive takes up. Called under the process's
 * table lock.
 */
void vb_engine_adopt(struct vb_engine *engine, struct vb_channel *channel);
void vb_engine_add_qp(struct vb_engine *engine, struct vb_qp *qp);

#endif
