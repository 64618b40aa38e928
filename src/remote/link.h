/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The process's sockets to other hosts: opened when the first queue pair needs a family, closed
 * when the last one is gone. Thread-safe unless said. Engine locks are taken before this file's
 * locks.
 *
 * A thread that polls an engine with such queue pairs reads the sockets for the whole process. When
 * all of those engines sleep, the progress thread does. Only for that sleep the sockets are armed
 * in its set of watched descriptors: traffic that is polled for wakes no thread.
 *
 * Where another user has the port, a family can be in use without a receiving socket
 * (docs/architecture/domain.md): then other processes pass its packets on, until there is one.
 */
#ifndef VB_REMOTE_LINK_H
#define VB_REMOTE_LINK_H

#include <stdbool.h>
#include <stdint.h>

#include "remote/port.h"
#include "udp/send.h"

struct vb_engine;

/* Sets of address families. */
#define VB_UDP_IPV4 1u
#define VB_UDP_IPV6 2u

/* A receiving socket that was got without a lock, and may be waited for. */
struct vb_udp_got {
	int fd;   /* -1: none */
	bool own; /* of this user; else given by another one */
	uint32_t buffer;
	bool sought; /* if not, the following says nothing */
	bool served; /* other processes can pass packets on until there is one */
	struct vb_port_answer answer;
};

/*
 * Without any lock: if nothing has opened the family yet, and another user may have the port, gets
 * a socket of it. Waits 2.1 s at most, and not at all where VERBATIM_DOMAIN is not set.
 */
void vb_udp_link_seek(unsigned int family, struct vb_udp_got *got);
/* Closes what vb_udp_link_get() has not taken. */
void vb_udp_link_seek_end(struct vb_udp_got *got);

/*
 * Acquires one family's sockets, and opens them for the first queue pair: takes the socket of
 * `got` (NULL: there was no time to wait for one). Does not wait. 0, or -errno with the reason
 * recorded.
 */
int vb_udp_link_get(unsigned int family, struct vb_udp_got *got);
/*
 * Releases one family, under the lock of `engine`. The last release delivers, through this engine,
 * what the socket still holds; packets that arrive while it is being closed are read by the
 * progress thread.
 */
void vb_udp_link_put(struct vb_engine *engine, unsigned int family);

/*
 * While the family is held: a sender on that source port, or on another port when there are too
 * many senders or the port is taken. If none could be opened: NULL, and -errno with the reason
 * recorded.
 */
int vb_udp_link_sender(unsigned int family, uint16_t port, struct vb_udp_sender **sender);
/* The program has closed the sender's socket: opens another one. -EBADF: none could be opened. */
int vb_udp_link_sender_mend(struct vb_udp_sender *sender);
/* While the family is held: the granted receive buffer, in bytes as the kernel counts them. */
uint32_t vb_udp_link_buffer(unsigned int family);
/*
 * While the family is held: its receiving socket, for group memberships. -1: the program has closed
 * it, or there is none yet.
 */
int vb_udp_link_socket(unsigned int family);

/*
 * Under the engine's lock: reads what has arrived and delivers it (remote/deliver.h). True if
 * anything had.
 */
bool vb_udp_link_drain(struct vb_engine *engine);
/* The same, however little the engine has found lately. */
bool vb_udp_link_take(struct vb_engine *engine);

/* No thread polls any more: the next packet is to wake the progress thread. */
void vb_udp_link_arm(void);
/*
 * The set of watched descriptors (epoll(7)). Tags below VB_UDP_LINK_CALLERS are those of sockets,
 * those from VB_UDP_LINK_TAGS on are those of remote/steer.h. -1: there is no set yet.
 */
#define VB_UDP_LINK_CALLERS 2u /* remote/port.h */
#define VB_UDP_LINK_TAGS    3u
int vb_udp_link_epoll(void);

#endif
