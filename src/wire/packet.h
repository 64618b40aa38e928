/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * RoCEv2 packets (the payload of UDP port 4791) and the runs that they form.
 *
 * vb_packet_decode() is the one place that validates packets. It judges everything that does not
 * need the queue pair. The checks that need the path MTU (FIRST and MIDDLE are full, LAST is not
 * empty) are left to the transport, because their answer is a NAK of the queue pair and not silence
 * (IBA 9.7.4.1.6).
 *
 * Two fields of a decoded run are particular: src_qpn is known only from a DETH (else 0), and path
 * is not set. The link fills path in from the addresses that the socket reports.
 *
 * Pure; safe from any thread.
 */
#ifndef VB_WIRE_PACKET_H
#define VB_WIRE_PACKET_H

#include <stddef.h>
#include <stdint.h>

#include "base/reason.h"
#include "transport/run.h"

#define VB_UDP_PORT                4791
#define VB_ICRC_BYTES              4u
/*
 * The longest header: XRC compare and swap. Payload, at most 3 bytes of padding and the ICRC
 * follow.
 */
#define VB_PACKET_HEADER_MOST      44u
/* The longest header in front of payload: XRC WRITE with immediate. */
#define VB_PACKET_DATA_HEADER_MOST 36u
#define VB_PACKET_MOST             (VB_PACKET_HEADER_MOST + VB_MTU_MOST + VB_ICRC_BYTES)
#define VB_PACKET_LEAST            16u /* a BTH and an ICRC */

/*
 * Validates `length` bytes (the UDP payload, ICRC included). Fills *run (one segment) and *payload
 * (run->length bytes inside `packet`, in front of the padding). The ICRC itself is checked by
 * vb_icrc_check(). Returns VB_REASON_NONE, or why the packet is to be dropped (VB_REASON_DROP_*;
 * *run and *payload then mean nothing).
 */
enum vb_reason vb_packet_decode(const uint8_t *packet, size_t length, struct vb_run *run,
				const uint8_t **payload);

/*
 * The payload of packet `segment` of the run begins at segment * mtu. Returns its length;
 * vb_packet_pad() tells how much padding follows.
 */
static inline uint32_t vb_packet_payload(const struct vb_run *run, uint32_t segment, uint32_t mtu)
{
	uint32_t rest = run->length - segment * mtu;

	return rest < mtu ? rest : mtu;
}

static inline uint32_t vb_packet_pad(uint32_t payload)
{
	return -payload & 3;
}

/*
 * Writes the BTH and extension headers of packet `segment` (below run->segments) to `header`
 * (VB_PACKET_HEADER_MOST bytes). Returns their length; 0 if no packet can carry the run
 * (VB_OP_DROP, an unknown service). Solicited and AckReq are set on the last packet only. MigReq is
 * set, as adapters do.
 */
size_t vb_packet_header(const struct vb_run *run, uint32_t segment, uint32_t mtu, uint8_t *header);

/* Bytes of the whole packet: headers, payload, padding, ICRC; 0 as above. */
size_t vb_packet_bytes(const struct vb_run *run, uint32_t segment, uint32_t mtu);

/*
 * How many packets from `segment` on one UDP_SEGMENT send can carry (udp(7)): all have the same
 * size, but for the last, which may be shorter. At least 1, at most `most`. *size gets the segment
 * size.
 */
uint32_t vb_packet_burst(const struct vb_run *run, uint32_t segment, uint32_t mtu, uint32_t most,
			 size_t *size);

#endif
