/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The sockets of the link: one that receives, bound to the wildcard address, and several that only
 * send.
 *
 * All sockets of a user's processes share the port (SO_REUSEPORT). None is bound to a single
 * address on that port, because such a socket would take all traffic of the address from the
 * others. Senders are unconnected and have IP_PMTUDISC_PROBE, which makes the IPv4 identification 0 (the ICRC covers the
 * identification, and a socket does not show it).
 */
#ifndef VB_UDP_SOCKET_H
#define VB_UDP_SOCKET_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Opens the receiving socket of a family on VB_UDP_PORT. *buffer gets the granted receive buffer,
 * as the kernel counts it. Returns the descriptor; -EADDRINUSE: the port is in other hands; any
 * other -errno has its reason recorded. VERBATIM_UDP_BUFFER=bytes asks for another size than the
 * largest that is granted.
 */
int vb_udp_open_receiver(bool ipv4, uint32_t *buffer);
/*
 * Records that the port is in other hands (PORT_TAKEN, which names the holder), and `cure`, what
 * can be done about it. Returns -EADDRINUSE.
 */
int vb_udp_refuse_port(bool ipv4, const char *cure);
/*
 * Makes a socket that another process has opened this process's receiving socket. -EBADMSG and the
 * defect if it is of no use.
 */
int vb_udp_take_receiver(int fd, bool ipv4, uint32_t *buffer, const char **defect);

/* A socket that is to go to another process: nothing can be sent from it any more. */
void vb_udp_mute(int fd);

/*
 * From now on the kernel gives the family's packets to the other sockets of the port. Packets that
 * are already queued on this socket stay there.
 */
void vb_udp_leave(int fd, bool ipv4);

/*
 * Opens a sending socket on *port, or on the next free port above it (after 65535 follows
 * VB_UDP_SOURCE_LEAST). *port gets the port.
 */
#define VB_UDP_SOURCE_LEAST 0xc000u
int vb_udp_open_sender(bool ipv4, uint16_t *port);

/*
 * The same for what leaves from path->sgid with that hop limit and traffic class: the socket has
 * them, and no packet needs to be told. Not for groups, or with a flow label.
 */
struct vb_path;
int vb_udp_open_bound_sender(const struct vb_path *path, uint32_t ifindex, uint16_t *port);

#endif
