/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The fault tap: a bad network made to order, for tests of this library and of programs that use
 * it.
 *
 *   VERBATIM_FAULT=drop=5%,dup=1%,reorder=2%,corrupt=1%,seed=7
 *
 * Read once (secure_getenv), applied to every packet that the process sends to other hosts; shared
 * memory is not touched. Each share is the chance of one packet, given in percent with `%` or as a
 * fraction (0.05):
 *   drop     it is not sent
 *   dup      it is sent twice
 *   reorder  it is held back and sent behind the next one of the process, or by itself where no
 *            other follows in VB_UDP_FAULT_HOLD_NS
 *   corrupt  one of its bits is turned
 *   seed     of the random numbers (default 1); the same packets in the same order meet the same
 *            faults again with the same seed
 * An unknown word switches the tap off, with a warning in the log. How often each fault was made is
 * logged at level info when the last socket is closed.
 */
#ifndef VB_UDP_FAULT_H
#define VB_UDP_FAULT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

/*
 * Whether VERBATIM_FAULT asks for a tap. Cheap after the first call. All functions here are
 * thread-safe.
 */
bool vb_udp_fault_active(void);

/*
 * Sends one packet with sendmsg(2), or makes the fault that was drawn for it. Returns 0 or -errno.
 */
int vb_udp_fault_send(int fd, const struct msghdr *message);

/*
 * A packet that is held back at most for so long: longer than a program that replies takes, shorter
 * than the timers of its peer. Without the bound the last packet before a pause would be lost.
 */
#define VB_UDP_FAULT_HOLD_NS 2000000u

/*
 * The room that has time and sockets: held() is called, without locks, when a packet is held back
 * until then (CLOCK_MONOTONIC ns); is_ours() tells whether a descriptor is still the library's.
 */
struct vb_udp_fault_host {
	void (*held)(uint64_t until);
	bool (*is_ours)(int fd);
};
/* Lasting; before it, packets are held without a bound. forget: in a forked child. */
void vb_udp_fault_join(const struct vb_udp_fault_host *host);
void vb_udp_fault_forget(void);
/* Sends the packet that was held back for long enough. When to call it again, 0: none is held. */
uint64_t vb_udp_fault_serve(uint64_t now);

/* Writes one line at level info and starts the counts afresh. */
void vb_udp_fault_report(void);

/* The meaning of VERBATIM_FAULT; public for the unit test. */
struct vb_udp_fault_plan {
	uint32_t drop, dup, reorder, corrupt; /* parts of 2^32 */
	uint64_t seed;
};
/* False: the text is not valid. */
bool vb_udp_fault_parse(const char *text, struct vb_udp_fault_plan *plan);

#endif
