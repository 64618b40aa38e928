/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A link carries runs from one queue pair to another: through rings of shared memory, within the
 * process, over UDP.
 *
 * Each link is one constant table of functions in a room of its own. The rooms below know links
 * only through it: an engine drives those that have joined it, a connected queue pair sends through
 * the one that its path takes, a datagram through the one that reaches its destination. All links
 * stand in one list (provider/links.c).
 */
#ifndef VB_ENGINE_LINK_H
#define VB_ENGINE_LINK_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "transport/env.h"

struct vb_channel;
struct vb_engine;
struct vb_qp;

/* On what occasion it is a queue pair's turn. */
enum vb_turn {
	VB_TURN_ARRIVED, /* a program polls, and something has arrived just now */
	VB_TURN_AGAIN,   /* the program polls again; the turn was deferred */
	VB_TURN_LAST,    /* nobody knows when the program will poll again */
};

/*
 * The function of a link that has nothing to do is NULL, except drain, reserve and commit. Under
 * the engine's lock unless said.
 */
struct vb_link {
	const char *name;
	bool lossless;  /* no run is lost while the peer lives: no acknowledgement timer runs */
	bool acks_ride; /* it carries an acknowledgement on a request (VB_RUN_ACKS) */
	bool always;    /* joins every engine when the engine is made */

	/*
	 * Whether the link carries what the queue pair sends to such a destination. `near`: the
	 * destination is an address of this host. NULL: never called.
	 */
	bool (*reaches)(const struct vb_qp *qp, bool near);
	/*
	 * Whether the path can carry packets of this path MTU. 0, or -errno with the reason
	 * recorded.
	 */
	int (*path_check)(struct vb_qp *qp, const struct vb_path *path, enum ibv_mtu mtu);
	/*
	 * lacks: whether connect to this path, or listen (`path` is NULL), needs something that
	 * must be waited for. open: acquires and awaits it, without any lock. 0, or -errno with the
	 * reason recorded; for listen always 0. The queue pair keeps
	 * what was acquired until release. connect and listen are also called without these two,
	 * and do not wait.
	 */
	bool (*lacks)(const struct vb_qp *qp, const struct vb_path *path);
	int (*open)(struct vb_qp *qp, const struct vb_path *path);
	/*
	 * A connected queue pair is about to take this path: acquires what that needs. 0, or -errno
	 * with the reason recorded and nothing changed.
	 */
	int (*connect)(struct vb_qp *qp, const struct ibv_ah_attr *ah, const struct vb_path *path);
	/* A datagram queue pair is about to receive, over every link that is available. */
	void (*listen)(struct vb_qp *qp);
	/*
	 * The path is set: tells the protocol what it must know of the link besides `lossless`
	 * (vb_qp_link_tune()).
	 */
	void (*tune)(struct vb_qp *qp);
	/*
	 * qp->seeking: makes contact ahead of the first message. True: there is no answer yet, call
	 * again.
	 */
	bool (*seek)(struct vb_qp *qp);
	/* RESET, destroy: releases what connect or listen has acquired, on whichever link. */
	void (*release)(struct vb_qp *qp);

	/* env->link.reserve and commit (transport/env.h). */
	void *(*reserve)(struct vb_qp *qp, const struct vb_send_wqe *wqe, const struct vb_run *run);
	void (*commit)(struct vb_qp *qp, const struct vb_run *run);
	/* env->link.direct, direct_list and direct_waits. */
	enum vb_direct (*direct)(struct vb_qp *qp, struct vb_send_wqe *wqe);
	uint32_t (*direct_list)(struct vb_qp *qp, struct vb_send_wqe *wqe);
	bool (*direct_waits)(struct vb_qp *qp, const struct vb_send_wqe *wqe, bool two_sided);
	/* env->link.lend and fetch. */
	bool (*lend)(struct vb_qp *qp, struct vb_send_wqe *wqe, uint64_t offset, uint32_t length,
		     struct vb_lent *lent);
	enum vb_fetch (*fetch)(struct vb_qp *qp, struct vb_recv_wqe *recv, uint64_t offset,
			       const struct vb_run *run, uint64_t from, enum vb_reason *reason);
	/*
	 * The queue pair has failed, and the memory of its receives is about to be the program's
	 * again: returns when the link stores nothing there any more.
	 */
	void (*halt)(struct vb_qp *qp);

	/*
	 * The program has posted, and the queue pair does not wait for anything: sends as much as
	 * can take the link's short way. True: that was all, and the protocol need not run. NULL: it
	 * has no short way.
	 */
	bool (*express)(struct vb_qp *qp);
	/*
	 * Only where the link has set qp->heard. posted: the program has posted. True: the protocol
	 * has run, and `more` is its result. defer: it is the queue pair's turn. True: better
	 * later, because the program may reply to the message whose acknowledgement is owed.
	 */
	bool (*posted)(struct vb_qp *qp, bool *more);
	bool (*defer)(struct vb_qp *qp, enum vb_turn turn);

	/*
	 * Hands what has arrived to its queue pairs. `polled`: by a program that polls again soon.
	 * True if anything had arrived.
	 */
	bool (*drain)(struct vb_engine *engine, bool polled);
	/*
	 * Another process has received this packet of the link and passed it on. NULL: the link
	 * needs no other processes.
	 */
	void (*passed)(struct vb_engine *engine, const struct vb_run *run, const uint8_t *payload);
	/* The channel is about to be closed. */
	void (*lost)(struct vb_engine *engine, struct vb_channel *channel, bool peer_dead);
	/*
	 * leave: the engine is about to end; without its lock. fini: the engine is in no list any
	 * more, and its channels have ended.
	 */
	void (*leave)(struct vb_engine *engine);
	void (*fini)(struct vb_engine *engine);
};

/* All links; NULL ends the list. The last link takes destinations that no other reaches. */
extern const struct vb_link *const vb_links[];

/*
 * Under the engine's lock, or before other threads know the engine: it drives the link from now on.
 */
void vb_engine_join_link(struct vb_engine *engine, const struct vb_link *link);
/* Joins the links that every engine has. */
void vb_engine_join_links(struct vb_engine *engine);

/* Gives the packet back to the link that it came by. */
void vb_links_passed(struct vb_engine *engine, const struct vb_run *run, const uint8_t *payload);

#endif
