/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Ethernet frames as raw packet queue pairs carry them: where the headers lie, outside and inside a
 * tunnel, and the hash that spreads frames over receive queues. Pure. Every length is checked
 * before a byte is read.
 */
#ifndef VB_WIRE_FRAME_H
#define VB_WIRE_FRAME_H

#include <stdbool.h>
#include <stdint.h>

#define VB_ETH_BYTES    14u
#define VB_VLAN_BYTES   4u
#define VB_TOEPLITZ_KEY 40u /* the longest input is 36 bytes */

/* One network. A pointer is NULL where the frame has no such header, or not all of it. */
struct vb_frame_layer {
	const uint8_t *eth;
	const uint8_t *ip;
	/* TCP, UDP: at least the ports; ESP: at least the SPI and the sequence number */
	const uint8_t *l4;
	const uint8_t *gre;  /* at least 4 bytes */
	const uint8_t *mpls; /* the topmost entry of a label stack */
	uint32_t vni;        /* of VXLAN, valid with has_vni */
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
	struct vb_frame_layer layer[2]; /* the outer network, the inner network */
};

void vb_frame_parse(struct vb_frame *frame, const uint8_t *data, uint32_t length);

/* True if the frame's destination is a multicast or broadcast address. */
bool vb_frame_is_multicast(const struct vb_frame *frame);

/*
 * The Toeplitz hash over those header fields that `fields` (enum ibv_rx_hash_fields) names and the
 * frame has. *hashed is false when there is no such field: such a frame goes to the first queue.
 */
uint32_t vb_frame_hash(const struct vb_frame *frame, uint64_t fields,
		       const uint8_t key[VB_TOEPLITZ_KEY], bool *hashed);

#endif
