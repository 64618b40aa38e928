/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What the files about channels share. The caller holds the node's lock unless said. */
#ifndef VB_HOST_CHANNEL_PRIVATE_H
#define VB_HOST_CHANNEL_PRIVATE_H

#include "host/channel.h"
#include "host/control.h"

struct vb_connection;

/* vb_channel.stage */
enum vb_channel_stage {
	VB_CHANNEL_ASKED, /* requested, not answered yet */
	/*
	 * The request was refused; kept for a moment, so that the same request is not sent again
	 * and again.
	 */
	VB_CHANNEL_REFUSED,
	VB_CHANNEL_UP,
	VB_CHANNEL_DOWN, /* the other side has closed its end */
	VB_CHANNEL_CLOSED,
};

/* channel_life.c */
/* Takes a reference to the peer. The channel is in no table and has no memory yet. */
struct vb_channel *vb_channel_new(struct vb_node *node, struct vb_peer *peer, uint32_t engine,
				  uint32_t remote_engine);
/*
 * channel_table.c. A channel can be found from vb_channel_link() until vb_channel_unlink();
 * unlinking twice does nothing. between: the best of several channels: one that is up, or asked
 * for, or was refused.
 */
void vb_channel_link(struct vb_channel *channel);
void vb_channel_unlink(struct vb_channel *channel);
struct vb_channel *vb_channel_by_id(const struct vb_peer *peer, uint32_t id);
struct vb_channel *vb_channel_between(const struct vb_peer *peer, uint32_t engine,
				      uint32_t remote_engine);
/* A request of this side for such a channel that waits, gives way to the peer's, or was refused. */
struct vb_channel *vb_channel_request(const struct vb_peer *peer, uint32_t engine,
				      uint32_t remote_engine);
/*
 * channel_ask.c. Asks the peer for a channel, now or when it has answered earlier requests.
 * send: sends what may be sent. True: a request has failed here, and whoever waits must ask again.
 * answered: the request of this channel was answered, in whatever way. forget: the channel is
 * unlinked.
 */
enum vb_contact vb_channel_ask(struct vb_node *node, struct vb_peer *peer, uint32_t block,
			       uint32_t engine, uint32_t remote_engine);
bool vb_channel_asks_send(struct vb_node *node, struct vb_peer *peer);
/* The same where nobody else tells: true if the device is to be told of a change. */
bool vb_channel_asks_go_on(struct vb_node *node, struct vb_peer *peer);
void vb_channel_answered(struct vb_channel *channel);
void vb_channel_ask_forget(struct vb_channel *channel);
/* The request has failed; the refusal stands for a moment. */
void vb_channel_refuse(struct vb_channel *channel, enum vb_contact why);
/* Both halves exist. */
void vb_channel_bring_up(struct vb_channel *channel);
/*
 * A connection with the peer has ended, and channels that were asked for may get no answer: they are
 * given up. True if there were any; queue pairs that wait must ask again.
 */
bool vb_channel_unasked(struct vb_node *node, struct vb_peer *peer);
/*
 * The peer marks its half when it closes its end, since the message that says so may be lost. look:
 * ends whose other end is closed are down, and the device is told by downs_service. That is for the
 * progress thread, without the lock; true if there were any.
 */
void vb_channels_look(struct vb_node *node, struct vb_peer *peer);
void vb_channel_down_later(struct vb_node *node, struct vb_channel *channel);
bool vb_channel_downs_service(struct vb_node *node);
/*
 * Unlinks, unmaps, and drops the reference of the peer. The progress thread, which may be about to
 * report the channel, frees the struct.
 */
void vb_channel_retire(struct vb_node *node, struct vb_channel *channel);
void vb_channel_free_retired(struct vb_node *node);
/* To the peer's end of that number. parts: VB_CONTROL_NO_ROOM, or 0. */
void vb_channel_tell_closed(struct vb_node *node, struct vb_peer *peer, uint32_t remote_id,
			    uint32_t parts);
/* A channel to another process: the other end is told, if it is up, and this one retired. */
void vb_channel_end(struct vb_node *node, struct vb_channel *channel);
/*
 * channel_control.c. Answers to a request of the peer, with a descriptor that is handed over (-1:
 * none), without one, and for want of one.
 */
void vb_channel_answer_with(struct vb_node *node, struct vb_peer *peer,
			    const struct vb_control *msg, int fd);
void vb_channel_answer(struct vb_node *node, struct vb_peer *peer, enum vb_control_type type,
		       uint32_t to_id);
void vb_channel_refuse_for_room(struct vb_node *node, struct vb_peer *peer, uint32_t to_id);
/* A message, and what came with it. */
struct vb_channel_arrival {
	const struct vb_connection *conn;
	const struct vb_control *msg;
	const int *fds;
	int num_fds;
};
/*
 * The rack that the message names, and the peer's half in it. 0; -EMFILE: it is not known here;
 * -EBADMSG: the peer is rejected.
 */
int vb_channel_rack_see(struct vb_peer *peer, const struct vb_channel_arrival *arrival);
int vb_channel_half_take(struct vb_channel *channel, const struct vb_control *msg);
/* The other end is closed. */
void vb_channel_down(struct vb_channel *channel);
/* channel_loop.c */
void vb_channel_close_loop(struct vb_node *node, struct vb_channel *channel);

/* Without the lock. */
struct vb_channel *vb_channel_find_loop(struct vb_node *node, uint32_t engine, uint32_t dest_qpn,
					enum vb_contact *why);
/*
 * Progress thread, without the lock. announce: the device takes the new end; false: it has no such
 * engine (any more). report_down: the end is down; NULL: nothing is reported.
 */
bool vb_channel_announce(struct vb_node *node, struct vb_channel *channel);
void vb_channel_report_down(struct vb_node *node, struct vb_channel *channel);
/*
 * Progress thread, without the lock: takes a message about channels of a peer that is up.
 */
void vb_channel_message(struct vb_node *node, const struct vb_connection *conn,
			const struct vb_control *msg, const int *fds, int num_fds);
/* The same for a message whose descriptors were lost because this process has no number left. */
void vb_channel_stripped(struct vb_node *node, struct vb_peer *peer, const struct vb_control *msg);
/* channel_open.c. What vb_channel_message() does with an OPEN. */
void vb_channel_open_serve(struct vb_node *node, const struct vb_channel_arrival *arrival);

#endif
