/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The checksums of a frame's outer IP, TCP and UDP headers: verified on receiving, filled in on
 * sending. Pure.
 */
#ifndef VB_WIRE_FRAME_CHECKSUM_H
#define VB_WIRE_FRAME_CHECKSUM_H

#include "wire/frame.h"

/*
 * True: the frame carries a whole IP packet, no fragment, and its checksums are right: the one of
 * the IPv4 header, and the one of TCP or UDP if the packet carries that.
 */
bool vb_frame_checksum_good(const struct vb_frame *frame);

/* Fills the checksums in. A frame that has none, or is cut short, stays as it is. */
void vb_frame_checksum_fill(uint8_t *data, uint32_t length);

#endif
