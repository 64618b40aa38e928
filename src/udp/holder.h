/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Which process holds a UDP port of this network namespace, for the message of a refusal. */
#ifndef VB_UDP_HOLDER_H
#define VB_UDP_HOLDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Writes a phrase to `text` that can stand behind "held by": "process 4711 (ucx) of user 1000",
 * "user 1000, in no process that can be seen from here", "user 0: a driver of the kernel ...".
 * Reads /proc, which is slow: for errors only. Returns `text`.
 */
const char *vb_udp_holder(bool ipv4, uint16_t port, char *text, size_t size);

/* The user of a socket that holds the port. False: none is seen, or the kernel holds it. */
bool vb_udp_holder_user(bool ipv4, uint16_t port, uid_t *uid);

/* How many sockets hold the port. */
uint32_t vb_udp_port_sockets(bool ipv4, uint16_t port);

#endif
