/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * RoCEv2 packets (the payload of UDP port 4791) and the runs that they stand for.
 *
 * vb_packet_decode() is the one place that believes nothing a packet says. It answers for everything that can be judged without
 * the queue pair. What needs the path MTU (FIRST and MIDDLE are full, LAST is not empty) is left to the transport,
 * because the answer is a NAK of the queue pair and not silence (IBA 9.7.4.1.6).
 *
 * Consecutive packets of a message are not joined into one run on arrival. Between their payloads lie headers, so that the
 * responder would need lists of pieces, to save 7 ns a packet (bench/wire), a tenth of what the ICRC costs.
 *
 * Fields of a run that are particular here: src_qpn is only known from a DETH (else 0); path is untouched, the link
 * fills it in from the addresses that the socket reports.
 *
 * Pure, safe from any thread.
 */
#ifndef VB_WIRE_PACKET_H
#define VB_WIRE_PACKET_H

#include <stddef.h>
#include <stdint.h>

#include "base/reason.h"
#include "transport/run.h"

#define VB_UDP_PORT                4791
#define VB_ICRC_BYTES              4u
#define VB_MTU_MOST                4096u
/* The longest header: XRC compare and swap. Then payload, at most 3 bytes of padding, the ICRC. */
#define VB_PACKET_HEADER_MOST      44u
/* The longest in front of payload: XRC WRITE with immediate. */
#define VB_PACKET_DATA_HEADER_MOST 36u
#define VB_PACKET_MOST             (VB_PACKET_HEADER_MOST + VB_MTU_MOST + VB_ICRC_BYTES)
#define VB_PACKET_LEAST            16u /* a BTH and an ICRC */

/*
 * Validates `length` bytes (the UDP payload, ICRC included) and fills *run (one segment) and *payload (run->length bytes inside
 * `packet`, in front of the padding). The ICRC itself is checked by vb_icrc_check(). Answers why the packet is to be dropped
 * (VB_REASON_DROP_*; both out-arguments then mean nothing), or VB_REASON_NONE.
 */
enum vb_reason vb_packet_decode(const uint8_t *packet, size_t length, struct vb_run *run,
				const uint8_t **payload);

/* Payload of packet `segment` of the run: its bytes, and how many of padding follow. It lies at segment * mtu. */
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
 * Writes BTH and extension headers of packet `segment` (below run->segments) to `header` (VB_PACKET_HEADER_MOST bytes) and
 * returns their length; 0 if no packet says what the run says (VB_OP_DROP, an unknown service). Solicited and AckReq are on the last
 * packet only; MigReq is set, as adapters send it.
 */
size_t vb_packet_header(const struct vb_run *run, uint32_t segment, uint32_t mtu, uint8_t *header);

/* The whole packet's bytes: headers, payload, padding, ICRC; 0 as above. */
size_t vb_packet_bytes(const struct vb_run *run, uint32_t segment, uint32_t mtu);

/*
 * How many packets from `segment` on one UDP_SEGMENT send can carry (udp(7)): all of the same size but the last, which may be
 * shorter. At least 1, at most `most`; *size gets the segment size.
 */
uint32_t vb_packet_burst(const struct vb_run *run, uint32_t segment, uint32_t mtu, uint32_t most,
			 size_t *size);

#endif
