/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Who sends requests, and how many of them wait: for being read by the program, or, accepted, for
 * the peer's answer. The second kind costs the program a queue pair, and completion channels with it.
 *
 * A sender by the network is *known* when it has repeated, within some minutes, a number that was sent
 * to its address; a source address that was made up does not do that. Requests of senders that are not
 * known, of those that are, and of this host's processes are counted apart, so that a flood of the
 * first kind leaves room for the second. A sender that is not known, and whose request finds no room,
 * is asked a question; nothing is kept of it.
 */
#ifndef VB_CM_SENDERS_H
#define VB_CM_SENDERS_H

#include <stdint.h>

#include "cm/chain.h"

#define VB_CM_SOURCE_BUCKETS 256u
#define VB_CM_KNOWN_BUCKETS  1024u
#define VB_CM_KNOWN_NS       300000000000ull

/* Requests that wait, at most; a sender that has none finds a quarter more room. */
#define VB_CM_WAIT_KNOWN     256u
#define VB_CM_WAIT_UNKNOWN   128u

enum vb_cm_sender {
	VB_CM_SENDER_NEAR, /* on this host: bounded by the backlog alone */
	VB_CM_SENDER_KNOWN,
	VB_CM_SENDER_UNKNOWN,
	VB_CM_SENDERS,
};

struct vb_cm_senders {
	struct {
		uint64_t hash;  /* of the GID */
		uint64_t until; /* ns */
	} known[VB_CM_KNOWN_BUCKETS];
	unsigned int waiting[VB_CM_SENDERS];
	uint16_t sources[VB_CM_SENDERS][VB_CM_SOURCE_BUCKETS]; /* those that wait, by GID */
	uint64_t pressed_until;                                /* ns */
	struct vb_cm_link *later, **latest; /* requests of known senders that wait for room */
};

#endif
