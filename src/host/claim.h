/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What each process of the user says about packets of other hosts: which blocks of queue pair
 * numbers are its own, and which places its sockets have among the sockets of the port
 * (udp/steer.h).
 *
 * A claim is the *name* of a listening abstract socket:
 *   "\0verbatim/<uid>/to/<id>.<serial>/<place of IPv4>.<of IPv6>[+|*]/<blocks>"
 * with "+" if the process has a domain (host/domain.h), "*" if it is, besides, without a socket:
 * then the places are those of a process that helps it. Every process can read it in
 * /proc/net/unix without help of its owner, also while the owner stands still. It vanishes with its
 * process. There is no table that several processes write, and no lock. Other users of the
 * network namespace can make such names too. So a claim is believed only after a connection to
 * it has shown that its owner has this user's id, or that its owner has the claim's and is in
 * the domain. That connection stays, and its end tells that the claim has gone.
 */
#ifndef VB_HOST_CLAIM_H
#define VB_HOST_CLAIM_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "host/abstract.h"

/* A name has 107 bytes; a block takes three. */
#define VB_CLAIM_BLOCKS   20u
#define VB_CLAIM_NAME     VB_ABSTRACT_NAME
#define VB_CLAIM_FAMILIES 2

struct vb_claim {
	uint32_t id;     /* of the process */
	uint32_t serial; /* of the claim: a new claim has a new name */
	uid_t uid;       /* as the name says */
	bool shares;     /* it has a domain */
	bool helped;     /* it has no socket of a family */
	/* Of the IPv4 and the IPv6 socket; -1: no socket, or unknown. */
	int place[VB_CLAIM_FAMILIES];
	uint32_t block[VB_CLAIM_BLOCKS];
	uint32_t blocks;
	char name[VB_CLAIM_NAME]; /* as a string */
};

/*
 * Listens under the claim's name, which is also written to it. Returns an adopted descriptor, or
 * -errno.
 */
int vb_claim_publish(struct vb_claim *claim);

/*
 * Calls `each` for every claim, also for hostile ones: only the form was checked. -errno: claims
 * cannot be read.
 */
int vb_claim_read(void (*each)(const struct vb_claim *claim, void *arg), void *arg);

/*
 * Connects to the claim; the connection (an adopted descriptor) lasts as long as the claim. -EPERM:
 * the claim is that of a user who is not believed. Of another user of the domain only those blocks
 * are left in the claim whose names that user holds. Never waits.
 */
int vb_claim_watch(struct vb_claim *claim);
/*
 * `claim` is one that is believed, `named` the same as its name says. Tries again to prove those of
 * its blocks that could not be proven. True: there are more now.
 */
bool vb_claim_prove(struct vb_claim *claim, const struct vb_claim *named);

/* The user whose claims this process makes. */
uid_t vb_claim_user(void);

#endif
