/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Ethernet frames as raw packet queue pairs carry them: where the headers lie, outside and inside a tunnel, and the hash that
 * spreads frames over receive queues. Pure; every length is checked before a byte is looked at.
 */
#ifndef VB_WIRE_FRAME_H
#define VB_WIRE_FRAME_H

#include <stdbool.h>
#include <stdint.h>

#define VB_ETH_BYTES    14u
#define VB_VLAN_BYTES   4u
#define VB_TOEPLITZ_KEY 40u /* the longest input is 36 bytes */

/* One network: a pointer is NULL where the header is not there, or not whole. */
struct vb_frame_layer {
	const uint8_t *eth;
	const uint8_t *ip;
	const uint8_t *l4;   /* TCP, UDP: at least the ports; ESP: at least SPI and sequence */
	const uint8_t *gre;  /* at least 4 bytes */
	const uint8_t *mpls; /* the topmost entry of a label stack */
	uint32_t vni;        /* VXLAN, with has_vni */
	uint32_t gre_bytes;
	uint16_t ether_type; /* host order, after the last VLAN tag */
	uint16_t vlan;       /* the last tag, host order */
	bool tagged;
	bool has_vni;
	uint8_t version; /* of ip: 4 or 6 */
	uint8_t proto;
};

struct vb_frame {
	const uint8_t *data;
	uint32_t length;
	struct vb_frame_layer layer[2]; /* the outer one, the inner one */
};

void vb_frame_parse(struct vb_frame *frame, const uint8_t *data, uint32_t length);

/* Destination of the frame: multicast or broadcast? */
bool vb_frame_is_multicast(const struct vb_frame *frame);

/*
 * The Toeplitz hash over the header fields that `fields` (enum ibv_rx_hash_fields) names and the frame has; *hashed tells
 * whether there was any: a frame without them is not hashed at all (and goes to the first queue).
 */
uint32_t vb_frame_hash(const struct vb_frame *frame, uint64_t fields,
		       const uint8_t key[VB_TOEPLITZ_KEY], bool *hashed);

#endif
