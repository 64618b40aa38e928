/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The process's receiving sockets that are open, one for each address family, and the set of
 * descriptors in which the progress thread watches them. remote/link.h opens and closes them.
 * Thread-safe unless said.
 *
 * A thread that polls reads the sockets without being woken. Only while no thread polls they are
 * armed: the next packet then wakes the progress thread.
 */
#ifndef VB_REMOTE_SOCKETS_H
#define VB_REMOTE_SOCKETS_H

#include <stdbool.h>
#include <stdint.h>

/* Sets of address families. */
#define VB_UDP_IPV4        1u
#define VB_UDP_IPV6        2u
#define VB_UDP_FAMILIES    2u

/*
 * Tags of descriptors in the set that are no sockets of the port: those below are this file's.
 */
#define VB_UDP_TAG_CALLERS 2u /* remote/port.h */
#define VB_UDP_TAG_STEER   3u /* remote/claims.h; and all above */

/*
 * Makes the set, if there is none yet. `event` gets the tag of each other descriptor that is ready,
 * in the progress thread. 0, or -errno with the reason recorded. Under the link's lock.
 */
int vb_udp_sockets_begin(void (*event)(uint64_t tag));
/* The set of watched descriptors (epoll(7)). -1: there is none. */
int vb_udp_sockets_epoll(void);

/*
 * The family has a socket from now on, armed, because no thread may poll. `buffer`: its granted
 * receive buffer, in bytes as the kernel counts them. 0 or -errno.
 */
int vb_udp_socket_set(unsigned int family, int fd, uint32_t buffer);
/* There is none yet. The one that comes has a buffer like this. */
void vb_udp_socket_expect(unsigned int family, uint32_t buffer);
/*
 * As vb_udp_socket_set(), in place of a socket that the program has closed. It is read also when it cannot be
 * watched; -errno tells that.
 */
int vb_udp_socket_replace(unsigned int family, int fd, uint32_t buffer);
/* The family has no socket from now on. Returns the one that it had. */
int vb_udp_socket_take(unsigned int family);
/* The socket is given up: it is not watched any more. */
void vb_udp_socket_unwatch(int fd);

/* The family's socket. -1: there is none, or the program has closed it. */
int vb_udp_socket(unsigned int family);
/* The number that the socket has or had; -1: there is none. */
int vb_udp_socket_number(unsigned int family);
/* While the family is held: the granted receive buffer. */
uint32_t vb_udp_socket_buffer(unsigned int family);

/* No thread polls any more: the next packet is to wake the progress thread. */
void vb_udp_sockets_arm(void);
/* Whether a packet has woken the progress thread since it last asked. */
bool vb_udp_sockets_rang(void);

#endif
