/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The addresses with which REQ and SIDR_REQ of IP port spaces begin their private data (IBA annex
 * A11): 36 bytes in front of what the program gave. Pure; safe from any thread.
 */
#ifndef VB_WIRE_CM_ADDRESS_H
#define VB_WIRE_CM_ADDRESS_H

#include <stdbool.h>
#include <stdint.h>

#define VB_CM_ADDRESS_BYTES 36u

/* Private data of the program behind it. */
#define VB_CM_USER_REQ      56u  /* VB_CM_PRIVATE_REQ less VB_CM_ADDRESS_BYTES */
#define VB_CM_USER_SIDR_REQ 180u /* VB_CM_PRIVATE_SIDR_REQ less VB_CM_ADDRESS_BYTES */

struct vb_cm_address {
	uint8_t version;    /* 4 or 6 */
	uint16_t port;      /* the source's, host order; the destination's is in the service id */
	uint8_t source[16]; /* as GIDs: an IPv4 address is ::ffff:a.b.c.d here */
	uint8_t destination[16];
};

/* False if the bytes are no such header: another format version, or neither IPv4 nor IPv6. */
bool vb_cm_address_decode(const uint8_t bytes[VB_CM_ADDRESS_BYTES], struct vb_cm_address *address);
void vb_cm_address_encode(const struct vb_cm_address *address, uint8_t bytes[VB_CM_ADDRESS_BYTES]);

/* Service ids of IP port spaces: the port space above the port. */
static inline uint64_t vb_cm_service_id(uint16_t space, uint16_t port)
{
	return (uint64_t)space << 16 | port;
}

#endif
