/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The messages that processes exchange over their control sockets (SOCK_SEQPACKET): one fixed size,
 * descriptors beside them.
 *
 *     HELLO   both, at once    fd: page
 *     SHORT   instead of a HELLO: no descriptor is left for the other
 *     GRANT   after the other's HELLO was recorded
 *     ASK     for memory, once a queue pair here is connected to one there. `nonce` is new and
 *             unguessable                     answered by PROVE, or by GIVE
 *     PROVE   `nonce_address` in the sender's memory has the ASK's nonce and a token behind it; 0:
 *             the other is to try once more to open this memory, and to ask again
 *     PROOF   `nonce` is the token that was read there        answered by GIVE
 *     GIVE    fds: what `parts` names, in the order of its bits. Without any, `text` says why.
 *             Keys come with the memory that they open
 *     OPEN    names the sender's half of a new channel; fd: its rack, unless it was shown before
 *             (host/rack.h)                   answered by ACCEPT, REFUSE or DUPLICATE
 *     ACCEPT  the same of the other half
 *     CLOSE   the sender has closed its end; or it has given up the request that was accepted, and
 *             has none                        no answer
 *     MORE    of the sender's arena is in use than before    fd: the arena
 *     LAST    the sender says no more on this connection, since there is another one
 *                                             answered by LAST, which ends it
 *     RING    its first two fields alone: the receiver's progress thread is to look at what the
 *             sender noted (host/bell.h)
 *
 * Memory comes last. A process that can touch another's memory must be in that process's table of
 * peers first, because revocation waits for the marks of peers only. And memory is given only to
 * processes that need it and have shown that they may have it (host/give.c).
 */
#ifndef VB_HOST_CONTROL_H
#define VB_HOST_CONTROL_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#define VB_CONTROL_MAGIC   0x7662636fu
#define VB_CONTROL_VERSION 7
#define VB_CONTROL_FDS     5
#define VB_CONTROL_RINGS   8 /* bytes */
#define VB_CONTROL_TEXT    80

enum vb_control_type {
	VB_CONTROL_HELLO = 1,
	VB_CONTROL_GRANT,
	VB_CONTROL_OPEN,
	VB_CONTROL_ACCEPT,
	VB_CONTROL_REFUSE,    /* no such engine */
	VB_CONTROL_DUPLICATE, /* the receiver's own request for the same pair of engines stands */
	VB_CONTROL_CLOSE,
	VB_CONTROL_COMMONS, /* on a socket of its own (commons.c): memory and lock of a table */
	/* In place of a HELLO: the sender has no descriptor left for the receiver. */
	VB_CONTROL_SHORT,
	VB_CONTROL_ASK,
	VB_CONTROL_GIVE,
	VB_CONTROL_RING,
	VB_CONTROL_LAST,
	VB_CONTROL_MORE,
	/* On a socket of its own (remote/port.h): a socket of the port; or, in `text`, why none. */
	VB_CONTROL_PORT,
	VB_CONTROL_PROVE,
	VB_CONTROL_PROOF,
};

/* Bits of a GIVE, but for the last three. */
enum vb_control_part {
	VB_CONTROL_LOCK = 1,  /* the lock of atomics on its memory */
	VB_CONTROL_ARENA = 2, /* memory that peers map */
	VB_CONTROL_MEMORY = 4,
	VB_CONTROL_KEYS = 8,
	VB_CONTROL_SAYS_UID = 16, /* ASK: the sender was started with VERBATIM_TRUST=uid */
	/* REFUSE, CLOSE: the sender has no descriptor left for a ring, or has lost a rack. */
	VB_CONTROL_NO_ROOM = 32,
	VB_CONTROL_SHUT =
		64, /* ASK: the kernel did not let the sender open the receiver's memory */
};

/* Host byte order. The first two fields keep their place in every version. */
struct vb_control {
	uint32_t magic;
	uint32_t version;
	uint32_t type;    /* enum vb_control_type */
	uint32_t to_id;   /* receiver's channel */
	uint32_t from_id; /* sender's channel */
	uint32_t to_engine;
	uint32_t from_engine;
	uint32_t parts; /* GIVE, ASK, REFUSE: enum vb_control_part */
	uint64_t nonce; /* HELLO: the sender's; ASK: of this question; PROOF: the token */
	union {
		/* GIVE: address of the nonce in the sender's memory; PROVE: of a struct vb_proof. */
		uint64_t nonce_address;
		struct {
			uint32_t rack, place;
		} ring; /* OPEN, ACCEPT: where the sender's half is */
	};
	char text[VB_CONTROL_TEXT];
};

extern const struct vb_control vb_control_short;

/* Sends without blocking. 0, -EAGAIN (also when too many descriptors are in flight), -errno. */
int vb_control_send(int sock, const struct vb_control *msg, const int *fds, int num_fds);
/* -EAGAIN: the other end has not read enough for the socket to have room. */
int vb_control_ring(int sock);

/* From now on the kernel tells the sender of each message. */
void vb_control_name_senders(int sock);

/*
 * Receives one message with up to VB_CONTROL_FDS descriptors (adopted, owned by the caller), and
 * its sender (NULL: not asked). 1: a message; 0: hung up; -EAGAIN: no message; -EMFILE: a message
 * whose descriptors were lost; -EPROTO: no message of this library, or another version
 * (msg->version tells); -errno.
 */
int vb_control_receive(int sock, struct vb_control *msg, struct ucred *from, int *fds,
		       int *num_fds);

#endif
