/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * An engine: the queue pairs of one send CQ, their channels and timers, behind one lock.
 *
 * A thread that polls a CQ drives the engines that feed it, and skips an engine that another thread
 * is driving. When no thread polls, the progress thread drives (progress_thread.c). Lock order:
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
#include "host/channel.h"
#include "host/node.h"

/* How often the progress thread looks whether an engine is still polled. */
#define VB_LEASE_NS     2000000ull

/* The most links of an engine. */
#define VB_ENGINE_LINKS 6u

struct vb_counters;
struct vb_engine_hook;
struct vb_link;
struct vb_local_datagrams;
struct vb_qp;
struct vb_remote_engine;

/* How the work was done. Under the engine's lock; paths.c sums the counters up. */
struct vb_paths {
	uint64_t direct_requests, direct_bytes; /* one-sided, executed by the initiator itself */
	uint64_t shm_runs, shm_bytes;           /* through rings of another process */
	uint64_t loop_runs, loop_bytes;         /* through rings within the process */
	uint64_t udp_runs, udp_bytes;           /* to other hosts */
	uint64_t udp_strays;                    /* packets passed on to other processes */
	uint64_t short_sent, short_received;    /* messages on the short way (local/express.c) */
	uint64_t lent_offered, lent_taken;      /* halves of lent payloads (local/lend.c) */
};

struct vb_engine {
	_Alignas(64) struct vb_lock lock; /* engines share no cache line */
	/*
	 * The lock and these members outlive the engine; their memory is used for another engine
	 * (engines.h). Written under the lock.
	 */
	uint32_t life;            /* odd while there is an engine */
	bool used;                /* revocation looks at it (vb_engine_uses_keys) */
	_Atomic uint64_t polls;   /* the lease: grows while a thread polls */
	_Atomic uintptr_t poller; /* the thread that polled it last (vb_bias_self()) */
	struct vb_paths paths;
	struct vb_port_counters *port; /* what it counts for its device's port; NULL: nothing */
	struct vb_counters *counters;  /* the block that `port` lies in */
	struct vb_node *node;
	struct vb_page_engine *pub; /* this engine's entry of the published table */
	uint32_t index;
	uint32_t streak; /* polls since the engine was put to sleep */
	/* The progress thread's: the polls that it has seen, and when it saw the last one. */
	uint64_t polls_seen, polled_at;
	uint64_t deferred_seen; /* the polls when it saw `deferred`, 0: it was not set */
	bool for_events;        /* when it was polled last, that CQ was armed */
	struct vb_channel_list channels;
	struct vb_channel *pushed; /* channels whose remote engine may have to be woken */
	struct vb_channel *inbox;  /* new channels, under the process's table lock */
	_Atomic bool inbox_news;
	struct vb_local_datagrams *datagrams; /* of queue pairs that have sent some (local/link.h) */
	struct vb_qp *qps;                    /* all queue pairs (doubly linked, qp->all_next) */
	/* Queue pairs that owe something or wait for something (singly linked, qp->run_next). */
	struct vb_qp *runnable, *runnable_last; /* the last: with `runnable` alone */
	/* Queue pairs without a channel, by what they wait for, in the order in which they began. */
	struct vb_qp *awaiting[2], *awaiting_last[2];
	/* News of contacts, and calls to ask whatever the news, that they have heard of (await.c). */
	uint64_t contact_seen, calls_seen;
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
	/* Looks of its pollers at other engines (poll_others.c): recent ones, any of the process. */
	_Atomic uint32_t looks_recent, looks_any;
};

#endif
