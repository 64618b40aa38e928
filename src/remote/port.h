/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The port between hosts belongs to one user (SO_REUSEPORT). Processes of users that agree
 * (host/domain.h) share it: a process that holds sockets of its own user gives a socket to a process
 * of another user that asks. docs/architecture/domain.md says why a socket, and not packets.
 *
 * A process that gives listens on the abstract name "verbatim/<uid>/port<4|6>/<id>". Whoever
 * connects is judged by the kernel's word alone; nothing is read from the connection.
 */
#ifndef VB_REMOTE_PORT_H
#define VB_REMOTE_PORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Asks the processes that hold the port for a socket, as the one of this process from now on; waits
 * `wait_ns` at most. Returns an adopted descriptor, or -errno and why there is none, as a sentence.
 */
int vb_port_ask(bool ipv4, uint64_t wait_ns, uint32_t *buffer, char *why, size_t size);

/*
 * This process has a socket of its own user, and gives others to processes of its domain, if it has
 * one, until the socket is closed. Under the link's lock.
 */
void vb_port_give_begin(bool ipv4);
void vb_port_give_end(bool ipv4);
/* A process has called. Progress thread. */
void vb_port_give_ready(void);

#endif
