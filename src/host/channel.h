/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A channel: a pair of rings between one engine of this process and one engine of a peer process
 * (or of this process: loop).
 */
#ifndef VB_HOST_CHANNEL_H
#define VB_HOST_CHANNEL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "host/node.h"
#include "host/ring.h"

struct vb_qp;

enum vb_contact {
	VB_CONTACT_UP,
	VB_CONTACT_PENDING, /* being made; channel_up or contact_changed follows */
	/*
	 * No process owns the QPN (now), or its QP does not exist. Asking again later tries again.
	 */
	VB_CONTACT_ABSENT,
	VB_CONTACT_DEAD,      /* its owner has died */
	VB_CONTACT_REFUSED,   /* another user, another version; the reason is logged */
	VB_CONTACT_NO_MEMORY, /* no memory to ask with; as absent: asking again later tries again */
	/* No descriptor is left for it, here or in its owner's process; as absent. */
	VB_CONTACT_SHORT_HERE,
	VB_CONTACT_SHORT_THERE,
};

/* What the device remembers of payloads that are lent (local/lend.c). */
struct vb_lending {
	bool lends;      /* some of this side's were lent: the peer's offers are looked at */
	uint32_t helped; /* the number of the peer's latest offer that was looked at */
	uint32_t offers; /* the number of this side's latest offer */
	uint32_t alone;  /* offers in a row that the peer did not take up */
	uint32_t fetches;
	/* The payload of which all but what the sender has claimed is here; number 0: none. */
	struct {
		uint32_t number, qpn, psn, qp_generation;
	} waits;
	uint32_t lates; /* in a row */
	bool later;     /* the slot is to be looked at again: its payload is not complete */
};

/* One end. The device uses tx, rx, peer and user; the rest belongs to the host room. */
struct vb_channel {
	struct vb_ring_tx tx;
	struct vb_ring_rx rx;
	struct vb_peer *peer; /* also set for loop (the peer that stands for this process) */
	uint32_t engine;      /* this process's */
	uint32_t remote_engine;
	_Atomic bool dead; /* the peer is dead or the channel closed: push no more */
	bool loop;
	void *user;                     /* the device's */
	struct vb_qp *qps;              /* the device's: its queue pairs */
	struct vb_channel *next, *prev; /* the device's list, */
	bool listed, quiet;             /* in which it is; among those that brought nothing */
	uint32_t idle;                  /* the device's: looks in a row that found no slot */
	/* The device's: pushed to since the last vb_channel_wake(). */
	struct vb_channel *pushed_next;
	bool pushed;
	bool unread; /* the device's: its ring holds nonsense and is not read any more */
	struct vb_lending lending; /* the device's */
	/* The device's: since when a datagram finds no room while the consumer takes nothing. */
	uint64_t full_since;
	uint32_t full_at; /* with full_since: what the peer had consumed then */
	/* Members of the host room. */
	const uint32_t *remote_asleep;
	struct vb_channel *host_next, *host_prev;
	struct vb_channel *id_next, *engines_next; /* channel_table.c */
	/* Loop: the other end (this one itself if the engines are the same). */
	struct vb_channel *other;
	struct vb_ring_half *own_half;
	const struct vb_ring_half *peer_half;
	struct vb_rack *own_rack, *peer_rack; /* where they are; NULL: loop, or not yet */
	int stage;                            /* enum vb_channel_stage */
	/* In the list of ends that the device is to be told of (channel_life.c). */
	struct vb_channel *down_next, *down_prev;
	bool down_listed;
	uint32_t id;
	uint32_t remote_id;
	int64_t asked_at;
	enum vb_contact refusal;                /* why it was refused */
	struct vb_channel *ask_next, *ask_prev; /* channel_ask.c: requests that wait */
	bool ask_waits, ask_sent;
	bool theirs; /* the peer has asked for the same channel, and its request stands */
};

/*
 * The channel from local engine `engine` to the engine that serves dest_qpn, or NULL and why there
 * is none. Never blocks; starts contact if needed. A loop channel is ready at once: channel_up is
 * called for both of its ends before the return, by this thread, without locks of the host room.
 * channel_up announces every channel exactly once; another thread's find may return the channel a
 * moment earlier. May be called under an engine's lock.
 */
struct vb_channel *vb_channel_find(struct vb_node *node, uint32_t engine, uint32_t dest_qpn,
				   enum vb_contact *why);
/*
 * As vb_channel_find(), for a queue pair that was connected at `since` (CLOCK_MONOTONIC ns) and has
 * met no peer yet. An owner of the number that was found dead before that time is not its peer. The
 * peer is dead when its name, called after that time, does not answer. `memory`: the queue pair may
 * do one-sided requests, for which the owner's memory is asked for; the answer comes before the
 * channel.
 */
struct vb_channel *vb_channel_find_since(struct vb_node *node, uint32_t engine, uint32_t dest_qpn,
					 uint64_t since, bool memory, enum vb_contact *why);

/*
 * Grows when such a search may end otherwise than before. Read before a search, it tells whether
 * another one is worth while.
 */
uint32_t vb_channel_news(const struct vb_node *node, uint32_t dest_qpn);

/*
 * To be called after pushing: if the remote engine sleeps, rings its process's doorbell.
 */
void vb_channel_wake(struct vb_channel *channel);

/*
 * This end is not polled any more (engine destroyed, other end closed, or peer dead): tells the
 * peer and unmaps. The progress thread may be about to report channel_down for this end, so the
 * device looks the pointer up in its own list before it uses it.
 */
void vb_channel_close(struct vb_node *node, struct vb_channel *channel);

#endif
