/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * GIDs as socket addresses: an IPv4 address is the GID ::ffff:a.b.c.d (IBA A17.4.4), and an IPv6
 * address is its own GID.
 */
#ifndef VB_UDP_ADDRESS_H
#define VB_UDP_ADDRESS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

union vb_udp_address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

bool vb_udp_is_ipv4(const uint8_t gid[16]);
/* RFC 5771, RFC 4291. */
bool vb_udp_is_multicast(const uint8_t gid[16]);
/* True for ff00::/8, and for 224.0.0.0/4 as a mapped address. */
bool vb_udp_is_group(const uint8_t gid[16]);
/*
 * True for fe80::/10 and groups of link scope: such an address means nothing without an interface.
 */
bool vb_udp_is_link_scope(const uint8_t gid[16]);

/*
 * The GID as it travels. A group of interface scope (ff01::/16) travels with link scope
 * (ff02::/16). Adapters send both alike, and programs use them (perftest's default group is one),
 * but the kernel lets no packet of interface scope leave.
 */
void vb_udp_gid_on_wire(uint8_t wire[16], const uint8_t gid[16]);

/*
 * Writes the socket address of (gid, port). `scope` is the interface of link-scope addresses.
 * Returns the address's length.
 */
socklen_t vb_udp_address_of(union vb_udp_address *address, const uint8_t gid[16], uint16_t port,
			    uint32_t scope);
/* The GID of a socket address. */
void vb_udp_gid_of(const union vb_udp_address *address, uint8_t gid[16]);
void vb_udp_gid_of_ipv4(struct in_addr address, uint8_t gid[16]);

#endif
