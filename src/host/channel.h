/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A channel: a pair of rings between one engine here and one engine of a peer process (or of this process: loop).
 */
#ifndef VB_HOST_CHANNEL_H
#define VB_HOST_CHANNEL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "host/node.h"
#include "host/ring.h"

enum vb_contact {
	VB_CONTACT_UP,
	VB_CONTACT_PENDING, /* being made; events->channel_up or contact_changed follows */
	VB_CONTACT_ABSENT, /* nobody owns the QPN (now), or its QP does not exist; asking again later tries again */
	VB_CONTACT_DEAD,      /* its owner has died */
	VB_CONTACT_REFUSED,   /* another user, another version: reason logged */
	VB_CONTACT_NO_MEMORY, /* to ask with: as absent, asking again later tries again */
	/* No descriptor is left for it here, or in its owner's process: as absent. */
	VB_CONTACT_SHORT_HERE,
	VB_CONTACT_SHORT_THERE,
};

/* One end. The device uses tx, rx, peer, user; the rest is the host's. */
struct vb_channel {
	struct vb_ring_tx tx;
	struct vb_ring_rx rx;
	struct vb_peer *peer; /* also set for loop (the self peer) */
	uint32_t engine;      /* ours */
	uint32_t remote_engine;
	_Atomic bool dead; /* peer dead or channel closed: push no more */
	bool loop;
	void *user;                     /* the device's */
	struct vb_channel *next;        /* the device's list */
	uint32_t idle;                  /* the device's: looks in a row that found nothing */
	struct vb_channel *pushed_next; /* the device's: pushed to since the last vb_channel_wake() */
	bool pushed;
	bool mute;           /* the device's: its ring holds nonsense, read no more */
	uint64_t full_since; /* the device's: a datagram found no room, and since then nobody has taken */
	uint32_t full_at; /* more than so many slots */
	/* the host's */
	const uint32_t *remote_asleep;
	struct vb_channel *host_next, *host_prev;
	struct vb_channel *id_next, *engines_next; /* channel_table.c */
	struct vb_channel *other; /* loop: the other end (itself if the engines are the same) */
	struct vb_ring_half *own_half;
	const struct vb_ring_half *peer_half;
	int stage; /* enum vb_channel_stage */
	bool told_down;
	uint32_t id;
	uint32_t remote_id;
	int64_t asked_at;
	enum vb_contact refusal; /* why it was refused */
	const void *asked_on;    /* the connection, while the question stands */
};

/*
 * The channel from local engine `engine` to whichever engine serves dest_qpn, or NULL and why not. Never blocks; starts contact if needed.
 * A loop channel is ready at once: channel_up is called for both of its ends before the return, from this thread, without locks of the
 * host. Every channel is announced by channel_up exactly once; another thread's find may return it a moment earlier.
 * May be called under an engine lock.
 */
struct vb_channel *vb_channel_find(struct vb_node *node, uint32_t engine, uint32_t dest_qpn,
				   enum vb_contact *why);
/*
 * The same for a queue pair that was connected at `since` (CLOCK_MONOTONIC ns) and has met nobody yet: an owner of the number that was
 * found dead before is none of its; it is dead when its name, called after that, does not answer. `memory`: the queue pair may do one-sided
 * requests, for which the owner's memory is asked for; the answer comes before the channel.
 */
struct vb_channel *vb_channel_find_since(struct vb_node *node, uint32_t engine, uint32_t dest_qpn,
					 uint64_t since, bool memory, enum vb_contact *why);

/* After pushing: if the remote engine sleeps, ring its process's doorbell. Contains the full fence. */
void vb_channel_wake(struct vb_channel *channel);

/*
 * This end is not polled any more (engine destroyed, other end closed or peer dead): tells the peer, unmaps. The progress thread may be
 * about to report channel_down for it: the device looks the pointer up in its own list before it uses it.
 */
void vb_channel_close(struct vb_node *node, struct vb_channel *channel);

#endif
