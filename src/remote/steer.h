/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The kernel gives each packet to the process whose queue pair it is for. So a process that stands
 * still holds up only those that talk to it.
 *
 * Each process claims its blocks of queue pair numbers and the places of its sockets
 * (host/claim.h). A process that changes a claim of its own, or sees one vanish, reads all claims
 * and sets the program that steers (udp/steer.h). There is no lock among processes: the process
 * that has set the program reads the claims once more, so the last setting knows all claims. Where
 * something is missing (no loopback interface, no descriptors, claims that cannot be read), packets
 * are spread by their flow and passed on as strays (remote/stray.h). So steering is never needed
 * for correctness, only for speed and for independence.
 */
#ifndef VB_REMOTE_STEER_H
#define VB_REMOTE_STEER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * The family is in use. If its socket is open (remote/sockets.h), the search for its place begins: the
 * progress thread goes on with it, and until it has ended packets come as strays. Does not wait.
 */
void vb_udp_steer_join(unsigned int family);
/* Whether that search has ended. Any thread; does not wait. */
bool vb_udp_steer_is_joined(unsigned int family);
/* Does what is due of the search, in any thread and without a lock. Does not wait. */
void vb_udp_steer_go_on(void);
/*
 * Whether another process that this one believes has a socket of the family, and so can pass on
 * packets to this one, which has none. `but`: processes of this user do not count, because they do
 * not answer. Without any lock: waits 100 ms at most.
 */
bool vb_udp_steer_is_served(unsigned int family, uid_t but);
/* The socket is about to be closed: no more packets are steered to it. */
void vb_udp_steer_part(unsigned int family);
/* The socket was closed: the process whose socket has taken its place finds that out. */
void vb_udp_steer_parted(void);

/* A queue pair is about to be connected: its block is claimed. */
void vb_udp_steer_check(void);
/* The blocks of the process have changed. Any thread; does not wait. */
void vb_udp_steer_moved(void);
/* Another socket has replaced one that the program had closed. Any thread; does not wait. */
void vb_udp_steer_renewed(void);
/* A packet has come by a detour, so a place differs from its claim. Any thread; does not wait. */
void vb_udp_steer_lost(void);

/* An event of a claim (remote/claims.h), by its tag. */
void vb_udp_steer_event(uint64_t tag);

#endif
