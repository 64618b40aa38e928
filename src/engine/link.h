/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A link carries runs from one queue pair to another: through rings of shared memory, within the process, over UDP.
 *
 * Each link is one constant table of functions in a room of its own. The rooms below know links only
 * through it: an engine drives those that have joined it, a connected queue pair sends through the one
 * that its path takes, a datagram through the one that reaches its destination. All links stand in one
 * list (provider/links.c).
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

/* Where there is nothing to do for a link its function is NULL, except drive, reserve and commit. Under the engine's lock unless said. */
struct vb_link {
	const char *name;
	bool lossless; /* nothing is lost while the peer lives: no acknowledgement timer runs */
	bool always;   /* joins every engine when that is made */

	/* Does the link carry what the queue pair sends to such a destination? `near`: an address of this host. NULL: never asked. */
	bool (*reaches)(const struct vb_qp *qp, bool near);
	/*
	 * A connected queue pair is about to take this path with this path MTU: takes hold of what that needs. 0 or -errno with the
	 * reason recorded, and nothing changed.
	 */
	int (*connect)(struct vb_qp *qp, const struct ibv_ah_attr *ah, const struct vb_path *path,
		       enum ibv_mtu mtu);
	/* A datagram queue pair is about to receive, over every link that can be had. */
	void (*listen)(struct vb_qp *qp);
	/* The path is set: what the protocol has to know of the link beyond `lossless` (vb_qp_link_tune()). */
	void (*tune)(struct vb_qp *qp);
	/* qp->seeking: contact is made ahead of the first message. True: the answer is still to come, ask again. */
	bool (*seek)(struct vb_qp *qp);
	/* RESET, destroy: lets go of what connect or listen has taken, of whichever link. */
	void (*release)(struct vb_qp *qp);

	/* env->link.reserve and commit (transport/env.h). */
	void *(*reserve)(struct vb_qp *qp, const struct vb_send_wqe *wqe, const struct vb_run *run);
	void (*commit)(struct vb_qp *qp, const struct vb_run *run);
	/* env->link.direct and direct_waits. */
	enum vb_direct (*direct)(struct vb_qp *qp, struct vb_send_wqe *wqe);
	bool (*direct_waits)(struct vb_qp *qp, const struct vb_send_wqe *wqe, bool two_sided);

	/*
	 * Only where the link has set qp->heard. posted: the program has posted; true: the protocol has run, `more` is its
	 * answer. defer: it is the queue pair's turn; true: better later, since the program may reply (`polled`) to what it owes
	 * an acknowledgement for.
	 */
	bool (*posted)(struct vb_qp *qp, bool *more);
	bool (*defer)(struct vb_qp *qp, bool polled);

	/* What has arrived is handed to its queue pairs. `polled`: by a program that polls again soon. True if there was anything. */
	bool (*drain)(struct vb_engine *engine, bool polled);
	/* Another process has taken this packet of the link, and passed it on. NULL: the link needs no help of other processes. */
	void (*passed)(struct vb_engine *engine, const struct vb_run *run, const uint8_t *payload);
	/* The channel is about to be closed. */
	void (*lost)(struct vb_engine *engine, struct vb_channel *channel, bool peer_dead);
	/* The engine is about to go; without its lock. Then: it is gone from every list, and so are its channels. */
	void (*leave)(struct vb_engine *engine);
	void (*fini)(struct vb_engine *engine);
};

/* All links, for whoever has to ask each; NULL ends the list. The last one takes what no other reaches. */
extern const struct vb_link *const vb_links[];

/* Most links of an engine. */
#define VB_ENGINE_LINKS 6u

/* Under the engine's lock, or before anybody knows it: the engine drives the link from now on. */
void vb_engine_join_link(struct vb_engine *engine, const struct vb_link *link);
/* Those that join every engine. */
void vb_engine_join_links(struct vb_engine *engine);

/* The packet goes back to the link that it came by. */
void vb_links_passed(struct vb_engine *engine, const struct vb_run *run, const uint8_t *payload);

#endif
