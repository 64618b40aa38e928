/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The path of a connection, from the own side. */
#ifndef VB_CM_PATH_H
#define VB_CM_PATH_H

#include <stdbool.h>
#include <stdint.h>

/*
 * sgid, dgid, ifindex and guid say where messages go, and by which device; the others are what REQ
 * says about the queue pairs' path.
 */
struct vb_cm_path {
	uint8_t sgid[16]; /* own */
	uint8_t dgid[16]; /* the peer's */
	uint64_t guid;    /* node GUID of the own device, host order */
	uint32_t ifindex; /* the own device's interface */
	uint32_t flow_label;
	uint16_t pkey;
	uint8_t traffic_class;
	uint8_t hop_limit;
	uint8_t sl;
	uint8_t mtu;         /* enum ibv_mtu */
	uint8_t rate;        /* enum ibv_rate; 0: as the kernel sends it */
	uint8_t ack_timeout; /* local ACK timeout: packet life time + 1, 19 as a rule */
	/* Of what arrives: a process of this host has sent it, which the carrier has made sure of. */
	bool near;
};

#endif
