/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How a run lies in a slot of a shared-memory ring: a fixed head, the extension of its operation,
 * and, if it fits, the payload; else the payload lies in the ring's bulk area. Datagrams keep their
 * path in front of the payload, in bulk; so does a packet that came from the wire to the wrong
 * process of a host, and is passed on in a slot.
 *
 * Pure. Encoder and decoder are the only two places that know the layout; the decoder is the only
 * place that judges what a peer wrote, and it works on a copy of the slot.
 */
#ifndef VB_HOST_SLOT_H
#define VB_HOST_SLOT_H

#include <stdbool.h>
#include <stdint.h>

#include "host/ring.h"
#include "transport/run.h"

#define VB_SLOT_EXT_OFFSET 24u
#define VB_SLOT_EXT_BYTES  32u /* extension and inline payload together */
#define VB_SLOT_PATH_BYTES 64u /* a datagram's path, padded, before its payload */

/* Does this run's payload go into the slot? */
bool vb_slot_fits_inline(const struct vb_run *run);

/*
 * Bytes of bulk data that the run takes: its payload and, in front of it (VB_SLOT_PATH_BYTES), the
 * path. Not for runs that fit inline.
 */
uint32_t vb_slot_bulk_bytes(const struct vb_run *run, bool from_wire);

/*
 * Where the payload of a run that fits goes; known from its service, operation, flags and length
 * alone.
 */
uint8_t *vb_slot_payload(struct vb_slot *slot, const struct vb_run *run);

/*
 * Fills slot->data, all but inline payload; returns where that goes (run->length bytes), or NULL if
 * the payload lies in bulk.
 */
uint8_t *vb_slot_encode(struct vb_slot *slot, const struct vb_run *run);
/*
 * The same for a packet from the wire, whatever its service: payload and path always lie in bulk.
 */
void vb_slot_encode_from_wire(struct vb_slot *slot, const struct vb_run *run);

/*
 * Validates the copied slot and fills *run (but not run->path). *inline_payload is inside `slot`,
 * or NULL: the payload is in bulk, *bulk_bytes long (the path included, if there is one). Of a lent
 * payload it is the address in the sender's memory (VB_RUN_LENT). False: the slot holds nonsense;
 * reject the peer.
 */
bool vb_slot_decode(const struct vb_slot *slot, struct vb_run *run, const uint8_t **inline_payload,
		    uint32_t *bulk_bytes);

/*
 * The same for a request that one process hands to another, which executes it in its stead (XRC).
 */
uint8_t *vb_slot_encode_handed(struct vb_slot *slot, const struct vb_run *run);
bool vb_slot_is_handed(const struct vb_slot *slot);

/* Was it encoded as a packet from the wire? */
bool vb_slot_is_from_wire(const struct vb_slot *slot);

#endif
