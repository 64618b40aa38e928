/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Which process of the host a MAD is for, as far as its content says it (IBA 12.6). Pure.
 *
 * Every message but the first one of a conversation carries a communication id of its receiver,
 * whose upper bits name the process. The first one carries a service id, which is a port.
 */
#ifndef VB_GSI_MAD_ROUTE_H
#define VB_GSI_MAD_ROUTE_H

#include <stdbool.h>
#include <stdint.h>

#include "gsi/gsi.h"

enum vb_mad_way {
	VB_MAD_NOWHERE, /* no message of the connection manager, or one that nobody here takes */
	VB_MAD_BY_ID,   /* to the process of `comm_id` */
	VB_MAD_BY_PORT, /* to the listener of the port */
	VB_MAD_TO_ANY,  /* to any process: it has one answer, whoever gives it */
	/* To all: the sender does not know an id of its receiver (reject reason 4, timeout). */
	VB_MAD_TO_ALL,
};

struct vb_mad_route {
	enum vb_mad_way way;
	uint32_t comm_id;
	/* The sender's id; 0: the message has none. */
	uint32_t sender_id;
	uint16_t space, port;
	/* Whether the private data of the request says to which address it goes (as a GID). */
	bool ip;
	uint8_t address[16];
};

void vb_mad_route(const uint8_t data[VB_GSI_MAD_BYTES], struct vb_mad_route *route);

#endif
