/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Racks: memory of rings that one process writes and one peer reads. A rack is a memfd with the
 * halves of several channels (host/ring.h), because a memfd for each costs descriptors passed, checked
 * and mapped, and processes may have thousands of channels. The first channel of a peer has a rack for
 * itself; the more there are, the larger racks become.
 *
 * The descriptor of a rack goes with the first message that names it, and is closed then. A rack
 * belongs to the connection on which it was shown: messages of one connection arrive in order, so
 * whoever reads a place of a rack has seen its descriptor before. Places are not used twice, because
 * the reader of a closed channel may still be reading. A rack is unmapped when none of its channels
 * is left and no more can come.
 *
 * All functions are called with the node's lock.
 */
#ifndef VB_HOST_RACK_H
#define VB_HOST_RACK_H

#include "host/channel.h"
#include "host/control.h"
#include "host/ring.h"

struct vb_connection;
struct vb_peer;

#define VB_RACK_MOST 64u /* halves */

struct vb_rack {
	struct vb_rack *next; /* of the peer's, newest first */
	const struct vb_ring_half *half;
	/* Own racks: the connection on which it was shown. A peer's: on which it came. */
	const struct vb_connection *conn;
	uint32_t id, count;
	uint32_t in_use; /* by channels of this process */
	bool open;       /* there may be more */
	bool held;      /* own: the message that shows it is not queued yet; nothing is given out */
	uint64_t named; /* places that were given out; of a peer's rack, that it has named */
};

/*
 * Gives the channel a half that this process writes, and the message its place. *fd: the descriptor
 * to be passed with the message, the caller's; -1: the peer has seen it. 0 or -errno.
 */
int vb_rack_give(struct vb_channel *channel, const struct vb_connection *conn,
		 struct vb_control *msg, int *fd);

/*
 * Between vb_rack_give() and the queueing of the message the lock is given up: until it is queued no
 * other message may name the rack that it shows. false: it is queued.
 */
void vb_rack_hold(struct vb_channel *channel, bool hold);

/*
 * A message on this connection names a place in a rack of the peer's. see: takes the rack that comes
 * with it; take: gives the channel the half, which is read. -EMFILE: it was not seen, because
 * descriptors or memory were short here; -EBADMSG and the defect: the peer has gone wrong.
 */
int vb_rack_see(struct vb_peer *peer, const struct vb_connection *conn,
		const struct vb_control *msg, const int *fds, int num_fds, const char **defect);
int vb_rack_take(struct vb_channel *channel, const struct vb_control *msg, const char **defect);
/* The place that such a message names is not used. */
void vb_rack_pass_over(struct vb_peer *peer, const struct vb_control *msg);

/* The channel needs its halves no more. */
void vb_rack_leave(struct vb_channel *channel);

/* The peer has not seen all racks that it was shown: no more is given out of them. */
void vb_racks_shut(struct vb_peer *peer);
/* No more is named on this connection. */
void vb_racks_end(struct vb_peer *peer, const struct vb_connection *conn);
void vb_racks_free(struct vb_peer *peer);

#endif
