/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Connection requests that nobody made: whole IPv4 packets with a REQ of the connection manager, by
 * the library's own room `wire`, for a raw socket that takes any source address.
 */
#ifndef TESTS_ATTACKS_FORGED_REQ_H
#define TESTS_ATTACKS_FORGED_REQ_H

#include <stddef.h>
#include <stdint.h>

enum { FORGED_REQ_MOST = 400 };

/* Addresses are IPv4, in host byte order; `number` makes the ids in the request its own. */
struct forged_req {
	uint32_t source, destination;
	uint16_t port; /* of the listener, in the port space of TCP */
	uint32_t number;
};

/* Writes the packet, from the IPv4 header on; returns its length. */
size_t forged_req_write(const struct forged_req *req, uint8_t packet[FORGED_REQ_MOST]);

#endif
