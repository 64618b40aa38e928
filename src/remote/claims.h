/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The claims of the processes of the host (host/claim.h): this process's own, and those of others
 * that are believed. Under the lock of remote/steer.c.
 */
#ifndef VB_REMOTE_CLAIMS_H
#define VB_REMOTE_CLAIMS_H

#include <stdbool.h>
#include <stdint.h>

#include "host/claim.h"
#include "udp/steer.h"

/* What this process claims besides its blocks. */
struct vb_udp_own {
	/* Where packets for it are to go: to its sockets, or to those of a process that helps it. */
	int place[VB_CLAIM_FAMILIES];
	bool helped; /* it has no socket of a family that is in use */
};

struct vb_udp_claims_news {
	bool changed;  /* claims are new, have more blocks, or have gone */
	bool helps;    /* a new claim is that of a process which cannot set the program */
	bool vanished; /* a process has ended */
};

/* The process gets the id of its claims. False: it has one. */
bool vb_udp_claims_begin(void);
bool vb_udp_claims_begun(void);
/* It has no claims any more, and forgets those of others. */
void vb_udp_claims_end(void);

/* Reads the claims of others. An event tells when one of those that are believed has gone. */
struct vb_udp_claims_news vb_udp_claims_look(void);
/* Forgets them: the next reading finds all of them new. */
void vb_udp_claims_forget(void);
/* The processes that are known, this one among them. */
uint32_t vb_udp_claims_processes(void);
/*
 * The place of a process that passes packets on to this one, one of this user if there is one. -1:
 * there is none. `but`: a user, plus 1, whose processes do not count; 0: none.
 */
int vb_udp_claims_helper(int family, uint64_t but);

/* True: the claims have changed. The old names are closed when the new ones exist. */
bool vb_udp_claims_publish(const struct vb_udp_own *own);
/* How many blocks the first claim names. */
uint32_t vb_udp_claims_blocks(void);
/* Closes the names. */
void vb_udp_claims_withdraw(void);

/*
 * All claims as entries of the program that steers, which the caller frees; NULL: no memory.
 * Returns their number.
 */
uint32_t vb_udp_claims_entries(int family, struct vb_steer_entry **entries);

#endif
