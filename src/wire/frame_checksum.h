/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The checksums of a frame's outer IP, TCP and UDP headers: verified when it comes in, made when it goes out. Pure. */
#ifndef VB_WIRE_FRAME_CHECKSUM_H
#define VB_WIRE_FRAME_CHECKSUM_H

#include "wire/frame.h"

/* An IP packet, whole and no fragment, whose checksums are right: of the IPv4 header, and of TCP or UDP if it carries that. */
bool vb_frame_checksum_good(const struct vb_frame *frame);

/* Stores them. A frame that has none, or is cut short, stays as it is. */
void vb_frame_checksum_fill(uint8_t *data, uint32_t length);

#endif
