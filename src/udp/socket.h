/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The sockets of the link: one that receives, bound to the wildcard address, and some that only send.
 *
 * All sockets of a user's processes share the port (SO_REUSEPORT); none is bound to a single address, since that would take all
 * traffic of the address from the others. Senders are unconnected with IP_PMTUDISC_DO, which makes the IPv4
 * identification 0 (the ICRC covers it, and a socket does not show it).
 */
#ifndef VB_UDP_SOCKET_H
#define VB_UDP_SOCKET_H

#include <stdbool.h>
#include <stdint.h>

/*
 * The receiving socket of a family on VB_UDP_PORT. *buffer gets the granted receive buffer, as the kernel counts it. Returns the
 * descriptor, or -errno with the reason recorded: PORT_TAKEN names who holds the port.
 * VERBATIM_UDP_BUFFER=bytes asks for a smaller (or larger) buffer than the largest that is granted.
 */
int vb_udp_open_receiver(bool ipv4, uint32_t *buffer);

/* Makes the kernel give the family's packets to the other sockets of the port from now on; what lies in this one's queue stays there. */
void vb_udp_leave(int fd, bool ipv4);

/* A sending socket, on `*port` or the next free one above it (wrapping at 65535 to VB_UDP_SOURCE_LEAST); *port gets which. */
#define VB_UDP_SOURCE_LEAST 0xc000u
int vb_udp_open_sender(bool ipv4, uint16_t *port);

#endif
