/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Captures (pcap files, Ethernet) as a list of the RoCEv2 packets in them. */
#ifndef TESTS_WIRE_CAPTURE_H
#define TESTS_WIRE_CAPTURE_H

#include <stddef.h>
#include <stdint.h>

#include "wire/icrc.h"

struct capture_packet {
	struct vb_flow flow;
	uint16_t id; /* IPv4 identification */
	uint8_t traffic_class;
	uint8_t hop_limit;
	unsigned int frame;  /* as Wireshark numbers them */
	const uint8_t *data; /* the UDP payload */
	size_t length;
};

struct capture {
	uint8_t *file;
	struct capture_packet *packet;
	unsigned int packets;
};

/* 0, or -1 with a message on standard error. Frames that are not UDP to port 4791 are left out. */
int capture_load(struct capture *c, const char *path);
void capture_free(struct capture *c);

#endif
