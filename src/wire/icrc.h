/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The invariant CRC at the end of every RoCEv2 packet (IBA 7.8.1, annex A17): a CRC-32 over the network headers, the
 * BTH and all that follows, where fields that change on the way count as ones.
 *
 * It covers three things that a UDP socket does not show. IPv4 options: packets with some are refused by their ICRC. The flags: "don't
 * fragment" is taken as set, as annex A17 asks. And the IPv4 identification: on sending it is 0 for an
 * unconnected socket with IP_PMTUDISC_DO, and k for the k-th packet of a UDP_SEGMENT burst; on receiving the check finds it out.
 *
 * Pure, safe from any thread.
 */
#ifndef VB_WIRE_ICRC_H
#define VB_WIRE_ICRC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where packets come from and go to; ports in host byte order. */
struct vb_flow {
	uint8_t source[16]; /* GIDs: for IPv4 the mapped address ::ffff:a.b.c.d */
	uint8_t destination[16];
	uint16_t source_port;
	uint16_t destination_port;
	bool ipv4;
};

/* Fills the addresses' family in from the destination. */
void vb_flow_family(struct vb_flow *flow);

/*
 * The CRC of a packet in pieces: begin with the headers that vb_packet_header() wrote, go on with payload and padding. `bytes` is
 * the whole UDP payload, ICRC included; `id` the IPv4 identification (no meaning for IPv6). The first `length` bytes, at
 * least a BTH and at most VB_PACKET_HEADER_MOST, must be in `header`.
 */
uint32_t vb_icrc_begin(const struct vb_flow *flow, uint16_t id, size_t bytes, const uint8_t *header,
		       size_t length);
uint32_t vb_icrc_add(uint32_t crc, const void *data, size_t length);

/* Ends a packet: padding, then the ICRC. Writes pad + 4 bytes to `trailer`, returns how many. */
size_t vb_icrc_end(uint32_t crc, uint32_t pad, uint8_t *trailer);

/*
 * Is the ICRC of a received packet right? `bytes` as above, at least VB_PACKET_LEAST, at most VB_PACKET_MOST, a multiple of 4 (else: no).
 * IPv6: exact. IPv4: *id holds the identification that is expected, and gets the one that the ICRC was made with; any of the 65536
 * passes, for the socket does not tell, so that 16 bits of the check remain. A right guess costs nothing more, a wrong one
 * some 100 ns.
 */
bool vb_icrc_check(const struct vb_flow *flow, const uint8_t *packet, size_t bytes, uint16_t *id);

#endif
