/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A peer that sends any packet it likes to an endpoint, through the decoder; for the tests of
 * hostile packets.
 */
#ifndef TESTS_WIRE_PEER_H
#define TESTS_WIRE_PEER_H

#include <stdbool.h>
#include <stdint.h>

#include "fuzz/endpoint.h"

#define PEER_MTU 1024u
#define PEER_PSN 0xfffffdu /* of the first request; wraps soon */
#define OWN_PSN  0x100u

/*
 * A queue pair in RTS with `receives` receives of 8192 bytes, two READs and ATOMICs at a time, and
 * a region full of 0x5a.
 */
void peer_start(struct endpoint *e, uint8_t service, uint8_t receives);

/* A packet of one segment; PEER_PSN + psn, a good key and address. */
struct vb_run peer_packet(uint8_t service, uint8_t op, uint8_t flags, uint32_t psn,
			  uint32_t length);

/*
 * Encodes it, decodes it, hands it over and lets the queue pair work; why it was dropped by the
 * decoder, or 0. Payload is 0xc3.
 */
enum vb_reason peer_send(struct endpoint *e, const struct vb_run *run);

/* Is every byte of the region but [from, from + length) as it was? */
bool peer_untouched(const struct endpoint *e, uint32_t from, uint32_t length);

#endif
