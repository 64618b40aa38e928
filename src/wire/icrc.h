/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The invariant CRC at the end of every RoCEv2 packet (IBA 7.8.1, annex A17): a CRC-32 over the
 * network headers, the BTH and everything behind it, in which fields that routers change count as
 * ones.
 *
 * The CRC covers three things that a UDP socket does not show. IPv4 options: a packet that has some
 * is dropped by its ICRC. The flags: "don't fragment" is taken as set, as annex A17 asks. The IPv4
 * identification: on sending it is 0 for an unconnected socket with IP_PMTUDISC_PROBE, and k for the
 * k-th packet of a UDP_SEGMENT burst; on receiving the check finds it.
 *
 * Pure; safe from any thread.
 */
#ifndef VB_WIRE_ICRC_H
#define VB_WIRE_ICRC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Source and destination of packets; ports in host byte order. */
struct vb_flow {
	uint8_t source[16]; /* GIDs: for IPv4 the mapped address ::ffff:a.b.c.d */
	uint8_t destination[16];
	uint16_t source_port;
	uint16_t destination_port;
	bool ipv4;
};

/* Sets the address family by the destination. */
void vb_flow_family(struct vb_flow *flow);

/*
 * The CRC of a packet in pieces: vb_icrc_begin() with the headers that vb_packet_header() wrote,
 * then payload and padding. `bytes` is the length of the whole UDP payload, ICRC included; `id` is
 * the IPv4 identification (unused for IPv6). `header` must hold the first `length` bytes, at least
 * a BTH and at most VB_PACKET_HEADER_MOST.
 */
uint32_t vb_icrc_begin(const struct vb_flow *flow, uint16_t id, size_t bytes, const uint8_t *header,
		       size_t length);
uint32_t vb_icrc_add(uint32_t crc, const void *data, size_t length);

/*
 * Ends a packet: writes padding and the ICRC (pad + 4 bytes) to `trailer`. Returns how many bytes.
 */
size_t vb_icrc_end(uint32_t crc, uint32_t pad, uint8_t *trailer);

/*
 * True if the ICRC of a received packet is right. `bytes` as above, at least VB_PACKET_LEAST, at
 * most VB_PACKET_MOST and a multiple of 4, else false. IPv6: exact. IPv4: *id holds the
 * identification that the caller expects, and gets the one that the ICRC was made with. The socket
 * does not tell the identification, so any of the 65536 is accepted, and 16 bits of the check
 * remain. A right expectation costs nothing more, a wrong one some 100 ns.
 */
bool vb_icrc_check(const struct vb_flow *flow, const uint8_t *packet, size_t bytes, uint16_t *id);

#endif
