/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The table of opcodes, and the opcodes of a run. */
#include "wire/opcode.h"

#include <stddef.h>

/* The upper three bits name the service (IBA 9.2.1). */
#define CLASS_RC                     0x00
#define CLASS_UC                     0x20
#define CLASS_UD                     0x60
#define CLASS_XRC                    0xa0

#define FIRST                        VB_RUN_FIRST
#define MIDDLE                       0
#define LAST                         VB_RUN_LAST
#define ONLY                         (VB_RUN_FIRST | VB_RUN_LAST)

#define SIZE(headers, header, bytes) ((headers) & (header) ? (bytes) : 0)
#define BYTES(headers)                                                          \
	(uint8_t)(VB_BTH_BYTES + SIZE(headers, VB_HEADER_DETH, VB_DETH_BYTES) + \
		  SIZE(headers, VB_HEADER_XRCETH, VB_XRCETH_BYTES) +            \
		  SIZE(headers, VB_HEADER_FETH, VB_FETH_BYTES) +                \
		  SIZE(headers, VB_HEADER_RETH, VB_RETH_BYTES) +                \
		  SIZE(headers, VB_HEADER_ATOMIC, VB_ATOMIC_BYTES) +            \
		  SIZE(headers, VB_HEADER_AETH, VB_AETH_BYTES) +                \
		  SIZE(headers, VB_HEADER_ATOMIC_ACK, VB_ATOMIC_ACK_BYTES) +    \
		  SIZE(headers, VB_HEADER_IMM | VB_HEADER_INV, VB_IMM_BYTES))

#define ROW(service, op, flags, headers, payload)                                         \
	{                                                                                 \
		VB_SERVICE_##service, VB_OP_##op, flags, headers, BYTES(headers), payload \
	}
#define DATA(service, op, flags, headers) ROW(service, op, flags, headers, true)
#define PLAIN(service, op, headers)       ROW(service, op, ONLY, headers, false)

/* SEND and WRITE of RC, UC and XRC. `h`: headers that every request of the service carries. */
#define SEND_AND_WRITE(service, h)                                                            \
	[CLASS_##service +                                                                    \
		0x00] = DATA(service, SEND, FIRST, h),                                        \
		[CLASS_##service + 0x01] = DATA(service, SEND, MIDDLE, h),                    \
		[CLASS_##service + 0x02] = DATA(service, SEND, LAST, h),                      \
		[CLASS_##service + 0x03] =                                                    \
			DATA(service, SEND, LAST | VB_RUN_IMM, (h) | VB_HEADER_IMM),          \
		[CLASS_##service + 0x04] = DATA(service, SEND, ONLY, h),                      \
		[CLASS_##service + 0x05] =                                                    \
			DATA(service, SEND, ONLY | VB_RUN_IMM, (h) | VB_HEADER_IMM),          \
		[CLASS_##service + 0x06] = DATA(service, WRITE, FIRST, (h) | VB_HEADER_RETH), \
		[CLASS_##service + 0x07] = DATA(service, WRITE, MIDDLE, h),                   \
		[CLASS_##service + 0x08] = DATA(service, WRITE, LAST, h),                     \
		[CLASS_##service + 0x09] =                                                    \
			DATA(service, WRITE, LAST | VB_RUN_IMM, (h) | VB_HEADER_IMM),         \
		[CLASS_##service + 0x0a] = DATA(service, WRITE, ONLY, (h) | VB_HEADER_RETH),  \
		[CLASS_##service + 0x0b] = DATA(service, WRITE, ONLY | VB_RUN_IMM,            \
						(h) | VB_HEADER_RETH | VB_HEADER_IMM)

/* READ, ATOMIC, their responses, and invalidation: RC and XRC. Responses carry no XRCETH. */
#define RELIABLE(service, h)                                                                     \
	[CLASS_##service +                                                                       \
		0x0c] = PLAIN(service, READ_REQUEST, (h) | VB_HEADER_RETH),                      \
		[CLASS_##service + 0x0d] = DATA(service, READ_RESPONSE, FIRST, VB_HEADER_AETH),  \
		[CLASS_##service + 0x0e] = DATA(service, READ_RESPONSE, MIDDLE, 0),              \
		[CLASS_##service + 0x0f] = DATA(service, READ_RESPONSE, LAST, VB_HEADER_AETH),   \
		[CLASS_##service + 0x10] = DATA(service, READ_RESPONSE, ONLY, VB_HEADER_AETH),   \
		[CLASS_##service + 0x11] = PLAIN(service, ACK, VB_HEADER_AETH),                  \
		[CLASS_##service + 0x12] =                                                       \
			PLAIN(service, ATOMIC_ACK, VB_HEADER_AETH | VB_HEADER_ATOMIC_ACK),       \
		[CLASS_##service + 0x13] = PLAIN(service, COMPARE_SWAP, (h) | VB_HEADER_ATOMIC), \
		[CLASS_##service + 0x14] = PLAIN(service, FETCH_ADD, (h) | VB_HEADER_ATOMIC),    \
		[CLASS_##service + 0x16] =                                                       \
			DATA(service, SEND, LAST | VB_RUN_INV, (h) | VB_HEADER_INV),             \
		[CLASS_##service + 0x17] =                                                       \
			DATA(service, SEND, ONLY | VB_RUN_INV, (h) | VB_HEADER_INV),             \
		[CLASS_##service + 0x1c] =                                                       \
			PLAIN(service, FLUSH, (h) | VB_HEADER_FETH | VB_HEADER_RETH),            \
		[CLASS_##service + 0x1d] = DATA(service, ATOMIC_WRITE, ONLY, (h) | VB_HEADER_RETH)

static const struct vb_opcode table[256] = {
	SEND_AND_WRITE(RC, 0),
	RELIABLE(RC, 0),
	SEND_AND_WRITE(UC, 0),
	[CLASS_UD + 0x04] = DATA(UD, SEND, ONLY, VB_HEADER_DETH),
	[CLASS_UD + 0x05] = DATA(UD, SEND, ONLY | VB_RUN_IMM, VB_HEADER_DETH | VB_HEADER_IMM),
	SEND_AND_WRITE(XRC, VB_HEADER_XRCETH),
	RELIABLE(XRC, VB_HEADER_XRCETH),
};

const struct vb_opcode *vb_opcode_find(uint8_t code)
{
	return table[code].bytes ? &table[code] : NULL;
}

#define NOTHING 0x1f /* no service has it */

/* Index: op, then FIRST, LAST, IMM, INV (the lower four bits of a run's flags). */
static const uint8_t part[VB_OP_COUNT][16] = {
	[VB_OP_SEND] = {0x01, 0x00, 0x02, 0x04, NOTHING, NOTHING, 0x03, 0x05, NOTHING, NOTHING,
			0x16, 0x17, NOTHING, NOTHING, NOTHING, NOTHING},
	[VB_OP_WRITE] = {0x07, 0x06, 0x08, 0x0a, NOTHING, NOTHING, 0x09, 0x0b, NOTHING, NOTHING,
			 NOTHING, NOTHING, NOTHING, NOTHING, NOTHING, NOTHING},
	[VB_OP_READ_RESPONSE] = {0x0e, 0x0d, 0x0f, 0x10, NOTHING, NOTHING, NOTHING, NOTHING,
				 NOTHING, NOTHING, NOTHING, NOTHING, NOTHING, NOTHING, NOTHING,
				 NOTHING},
};

static uint8_t whole(uint8_t op)
{
	switch (op) {
	case VB_OP_READ_REQUEST:
		return 0x0c;
	case VB_OP_ACK:
		return 0x11;
	case VB_OP_ATOMIC_ACK:
		return 0x12;
	case VB_OP_COMPARE_SWAP:
		return 0x13;
	case VB_OP_FETCH_ADD:
		return 0x14;
	case VB_OP_FLUSH:
		return 0x1c;
	case VB_OP_ATOMIC_WRITE:
		return 0x1d;
	default: /* VB_OP_DROP never leaves the host */
		return NOTHING;
	}
}

int vb_opcode_of(uint8_t service, uint8_t op, uint8_t flags)
{
	static const uint8_t class[] = {
		[VB_SERVICE_RC] = CLASS_RC,
		[VB_SERVICE_UC] = CLASS_UC,
		[VB_SERVICE_UD] = CLASS_UD,
		[VB_SERVICE_XRC] = CLASS_XRC,
	};
	uint8_t code;

	if (service > VB_SERVICE_XRC || op >= VB_OP_COUNT)
		return -1;
	code = class[service];
	code |= op == VB_OP_SEND || op == VB_OP_WRITE || op == VB_OP_READ_RESPONSE
			? part[op][flags & 15]
			: whole(op);
	return vb_opcode_find(code) ? code : -1;
}
