/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The process's sockets to other hosts: opened when the first queue pair needs a family, read, and
 * closed when the last one is gone. Which are open: remote/sockets.h. Thread-safe unless said.
 * Engine locks are taken before this file's locks.
 *
 * A thread that polls an engine with such queue pairs reads the sockets for the whole process. When
 * all of those engines sleep, the progress thread does.
 *
 * Where another user has the port, a family can be in use without a receiving socket
 * (docs/architecture/domain.md): then other processes pass its packets on, until there is one.
 */
#ifndef VB_REMOTE_LINK_H
#define VB_REMOTE_LINK_H

#include <stdbool.h>
#include <stdint.h>

#include "remote/port.h"
#include "remote/sockets.h"

struct vb_engine;

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
 * Under the engine's lock: reads what has arrived and delivers it (remote/deliver.h). True if
 * anything had. `polled`: by a program that polls again soon.
 */
bool vb_udp_link_drain(struct vb_engine *engine, bool polled);
/* The same, however little the engine has found lately. */
bool vb_udp_link_take(struct vb_engine *engine);

/*
 * Without any lock: waits until the kernel steers packets of the family to this process
 * (remote/steer.h), 20 ms at most. An engine that reads the sockets is driven meanwhile.
 */
void vb_udp_link_await(struct vb_engine *engine, unsigned int family);

#endif
