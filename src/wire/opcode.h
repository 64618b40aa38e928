/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The opcodes of the base transport header (IBA 9.2.1, table 38): what each says about a run, and
 * which headers follow it.
 *
 * Pure tables; safe from any thread.
 */
#ifndef VB_WIRE_OPCODE_H
#define VB_WIRE_OPCODE_H

#include <stdbool.h>
#include <stdint.h>

#include "transport/run.h"

/* Congestion notification (annex A17): of no service; carries nothing that a run could hold. */
#define VB_OPCODE_CNP        0x81

/* Sizes of the headers in bytes (IBA 9.2 to 9.6). */
#define VB_BTH_BYTES         12u
#define VB_DETH_BYTES        8u
#define VB_XRCETH_BYTES      4u
#define VB_RETH_BYTES        16u
#define VB_FETH_BYTES        4u
#define VB_ATOMIC_BYTES      28u
#define VB_AETH_BYTES        4u
#define VB_ATOMIC_ACK_BYTES  8u
#define VB_IMM_BYTES         4u /* an immediate, or a key to invalidate */

/* vb_opcode.headers: the headers that follow the BTH, in this order. */
#define VB_HEADER_DETH       0x01
#define VB_HEADER_XRCETH     0x02
#define VB_HEADER_RETH       0x04
#define VB_HEADER_ATOMIC     0x08
#define VB_HEADER_AETH       0x10
#define VB_HEADER_ATOMIC_ACK 0x20
#define VB_HEADER_IMM        0x40
#define VB_HEADER_INV        0x80
#define VB_HEADER_FETH       0x100 /* in front of the RETH */

struct vb_opcode {
	uint8_t service;  /* enum vb_service */
	uint8_t op;       /* enum vb_op */
	uint8_t flags;    /* VB_RUN_FIRST, LAST, IMM, INV */
	uint16_t headers; /* VB_HEADER_* */
	uint8_t bytes;    /* BTH and the headers behind it; 0 in the table: no such opcode */
	bool payload;     /* data may follow */
};

/* NULL: the opcode is unknown, or of a service that this device does not have (RD). */
const struct vb_opcode *vb_opcode_find(uint8_t code);

/*
 * The opcode of one packet; -1 if there is none. Of `flags` only VB_RUN_FIRST, LAST, IMM and INV
 * count, and the last two only together with LAST.
 */
int vb_opcode_of(uint8_t service, uint8_t op, uint8_t flags);

#endif
