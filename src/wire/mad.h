/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The header of a management datagram (MAD, IBA 13.4.2): 24 bytes in front of 232 bytes that belong
 * to its class. Pure; safe from any thread.
 */
#ifndef VB_WIRE_MAD_H
#define VB_WIRE_MAD_H

#include <stddef.h>
#include <stdint.h>

#include "base/reason.h"

#define VB_MAD_BYTES        256u /* every MAD has this length */
#define VB_MAD_HEADER_BYTES 24u
#define VB_MAD_BODY_BYTES   (VB_MAD_BYTES - VB_MAD_HEADER_BYTES)

#define VB_MAD_BASE_VERSION 1u
#define VB_MAD_METHOD_SEND  0x03u
#define VB_MAD_CLASS_CM     0x07u
#define VB_MAD_VERSION_CM   2u

/* Numbers in host byte order. */
struct vb_mad {
	uint8_t base_version;
	uint8_t class;
	uint8_t class_version;
	uint8_t method;
	uint16_t status;
	uint16_t class_specific;
	uint64_t tid;
	uint16_t attribute;
	uint32_t modifier;
};

/*
 * Reads the header. Returns VB_REASON_NONE, or CM_MALFORMED if `length` is not that of a MAD (then
 * *mad means nothing). What the fields may be is for the class to judge.
 */
enum vb_reason vb_mad_decode(const uint8_t *bytes, size_t length, struct vb_mad *mad);

/* Writes the header to the first 24 bytes. */
void vb_mad_encode(const struct vb_mad *mad, uint8_t bytes[VB_MAD_HEADER_BYTES]);

#endif
