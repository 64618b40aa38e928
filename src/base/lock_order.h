/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The order of all locks of the library. A thread that holds a lock waits only for locks that stand
 * further down. A thread that tries, and goes on without the lock, may try any. A thread that holds
 * a lock does not wait for another one of the same line. A program may hold several of CONSUME and
 * POST between two calls, in any order.
 *
 * Builds with VB_CHECK_LOCKS (debug and sanitizer builds) watch each thread and abort with the two
 * names; a release build has nothing of it.
 */
#ifndef VB_BASE_LOCK_ORDER_H
#define VB_BASE_LOCK_ORDER_H

#include <stdbool.h>

#include "base/export.h"

/* clang-format off */
#define VB_LOCK_ORDERS(X) \
	X(NONE,          "a lock without a place in the order: not watched") \
	X(RS_REPOLL,     "an instance of repoll_create(3)") \
	X(RS_SOCKET,     "the connection of an rsocket") \
	X(RS_BACKLOG,    "the connections that wait for raccept(3)") \
	X(RS_SERVICE,    "the service thread of rsockets") \
	X(RS_DATAGRAM,   "a datagram rsocket") \
	X(RS_IN,         "the receiving side of an rsocket") \
	X(RS_OUT,        "the sending side of an rsocket") \
	X(RS_POLL,       "the completions of an rsocket") \
	X(CONSUME,       "a completion queue's iteration: held between two calls of the program") \
	X(POST,          "a send queue's building: held between two calls of the program") \
	X(CM_OPEN,       "opening the connection manager") \
	X(CM_CORE,       "the core of the connection manager") \
	X(CM_IDS,        "the list of the connection manager's ids") \
	X(CM_RESULTS,    "names that the connection manager looks up") \
	X(CM_ID,         "one id of the connection manager") \
	X(CM_DEVICES,    "the devices that the connection manager has open") \
	X(REGION,        "ibv_rereg_mr(3) of one region") \
	X(THREAD_DOMAIN, "making the engine of a thread domain") \
	X(XRC_DOMAINS,   "the XRC domains that the process has open") \
	X(GSI,           "opening the General Services Interface") \
	X(CONTEXT,       "a context's protection domains, device memory and buffers") \
	X(PROCESS,       "starting the node and the progress thread") \
	X(RAW_SOCKETS,   "raw packet sockets that receive") \
	X(MONITOR,       "the link monitor") \
	X(IMPORTED,      "numbers of imported protection domains") \
	X(KEEPER,        "making the engine that keeps packets") \
	X(POLL,          "the engines that a completion queue polls") \
	X(ENGINE,        "an engine: its queue pairs and channels") \
	X(UDP_LINK,      "opening and closing the sockets") \
	X(DRAIN,         "reading a socket") \
	X(GROUPS,        "members of multicast groups") \
	X(SENDERS,       "the sockets that send") \
	X(DEVICES,       "the list of devices") \
	X(CONTEXTS,      "the list of contexts") \
	X(SRQ,           "a shared receive queue") \
	X(RECEIVES,      "the receives of a queue pair or work queue") \
	X(COMPLETIONS,   "the entries of a completion queue") \
	X(MODERATED,     "completion queues whose events wait") \
	X(WINDOWS,       "memory windows") \
	X(FLOWS,         "the table of flows") \
	X(COUNTERS,      "flow counters") \
	X(PORT,          "giving sockets of the port to other users") \
	X(FAULT,         "the fault tap of the sockets") \
	X(STEER,         "the program that steers packets to processes") \
	X(MADS,          "management datagrams that wait") \
	X(PUBLISHED,     "connections that this process has published") \
	X(HANDLES,       "a table of handles") \
	X(EVENT_QUEUE,   "events that wait for the program") \
	X(ENGINES,       "the list of engines") \
	X(PATHS,         "path counters of engines that have ended") \
	X(PORT_COUNTERS, "blocks of port counters") \
	X(SLAB,          "pages of small pieces of device memory") \
	X(NODE,          "the node: peers, connections, channels, names, keys") \
	X(ARENA,         "memory that peers map") \
	X(RS_REPOLLS,    "the list of repoll_create(3)'s instances") \
	X(RS_BELL,       "threads that sleep for rsockets") \
	X(BELL,          "notes for which engine a doorbell rings") \
	X(COMMONS_LEFT,  "shared tables that are being left") \
	X(FORK_RANGES,   "memory that forked children do not get")
/* clang-format on */

enum vb_lock_order {
#define VB_ORDER(name, what) VB_ORDER_##name,
	VB_LOCK_ORDERS(VB_ORDER)
#undef VB_ORDER
};

#ifdef VB_CHECK_LOCKS
/* Before a thread waits for a lock; when it has it; when it lets go of it. lock_check.c. */
VB_SHARED void vb_lock_check_wait(const void *lock, enum vb_lock_order order);
VB_SHARED void vb_lock_check_taken(const void *lock, enum vb_lock_order order);
VB_SHARED void vb_lock_check_released(const void *lock);
VB_SHARED void vb_lock_check_held(const void *lock, const char *function);
/* Aborts unless the calling thread holds the lock. */
#define vb_lock_assert_held(lock) vb_lock_check_held((lock), __func__)
#else
static inline void vb_lock_check_wait(const void *lock, enum vb_lock_order order)
{
	(void)lock;
	(void)order;
}

static inline void vb_lock_check_taken(const void *lock, enum vb_lock_order order)
{
	(void)lock;
	(void)order;
}

static inline void vb_lock_check_released(const void *lock)
{
	(void)lock;
}

static inline void vb_lock_assert_held(const void *lock)
{
	(void)lock;
}
#endif

#endif
