/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Packets go to the process whose queue pair they are for, and so a process that stands still holds up nobody but those who talk to it.
 *
 * Each process claims its blocks of queue pair numbers and the places of its sockets (host/claim.h); whoever changes a claim of its own, or
 * sees one vanish, reads them all and sets the program that steers (udp/steer.h). There is no lock among processes: who has set the program
 * reads the claims once more, so that the last setting is one of all claims. Where something is missing (no loopback interface, no
 * descriptors, claims that cannot be read) packets are spread by their flow, and take the way of remote/stray.h. So steering is never needed
 * for correctness, only for speed and for independence.
 */
#ifndef VB_REMOTE_STEER_H
#define VB_REMOTE_STEER_H

#include <stdint.h>

struct vb_engine;

/* The family's socket is open (remote/link.h): it is found out which place it has. Waits for at most 20 ms. Under the engine's lock. */
void vb_udp_steer_join(struct vb_engine *engine, unsigned int family);
/* It is about to be closed: nothing more is steered to it ... */
void vb_udp_steer_part(unsigned int family);
/* ... and it has been closed: who has taken its place finds out. */
void vb_udp_steer_parted(void);

/* A queue pair is about to be connected: its block is claimed. */
void vb_udp_steer_check(void);
/* The blocks of the process have changed. Any thread, no wait. */
void vb_udp_steer_moved(void);
/* There is another socket in place of one that the program had closed. Any thread, no wait. */
void vb_udp_steer_renewed(void);
/* A packet has come by a detour: some place is not what is claimed. Any thread, no wait. */
void vb_udp_steer_lost(void);

/* An event of a descriptor of this file in the link's epoll set, by its tag. */
void vb_udp_steer_event(uint64_t tag);

#endif
