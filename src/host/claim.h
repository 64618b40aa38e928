/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What each process of the user says about packets of other hosts: which blocks of queue pair numbers are its own, and which places its
 * sockets have among those of the port (udp/steer.h).
 *
 * A claim is the *name* of a listening abstract socket: "\0verbatim/<uid>/to/<id>.<serial>/<place of IPv4>.<of IPv6>/<blocks>". So it can be
 * read in /proc/net/unix without anybody's help, also that of a process which stands still; it vanishes with its
 * process; there is no table that several write, and no lock. Others of the network namespace can make such names, so one is believed
 * only after a connection to it has shown that its owner is of our user. That connection stays, and its end tells that the claim has gone.
 */
#ifndef VB_HOST_CLAIM_H
#define VB_HOST_CLAIM_H

#include <stdbool.h>
#include <stdint.h>

/* A name has 107 bytes; a block takes three. */
#define VB_CLAIM_BLOCKS   20u
#define VB_CLAIM_NAME     108u
#define VB_CLAIM_FAMILIES 2

struct vb_claim {
	uint32_t id;                  /* of the process */
	uint32_t serial;              /* of its claim: a new one has a new name */
	int place[VB_CLAIM_FAMILIES]; /* of the IPv4 and the IPv6 socket; -1: none, or not known */
	uint32_t block[VB_CLAIM_BLOCKS];
	uint32_t blocks;
	char name[VB_CLAIM_NAME]; /* as a string */
};

/* Listens under the claim's name, which is written to it. A descriptor that was adopted, or -errno. */
int vb_claim_publish(struct vb_claim *claim);

/* Calls `each` for every claim there is, also hostile ones: nothing but their form has been checked. -errno: they cannot be read. */
int vb_claim_read(void (*each)(const struct vb_claim *claim, void *arg), void *arg);

/* A connection (adopted) that lasts as long as the claim. -EPERM: it is another user's. Never waits. */
int vb_claim_watch(const struct vb_claim *claim);

#endif
