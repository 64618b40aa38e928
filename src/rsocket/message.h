/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What two stream sockets say to each other: the data that travels with the connection request and
 * its reply, and the immediates. Pure: bytes in, numbers out.
 *
 * After the connection is there, every message is an RDMA WRITE with immediate. The immediate has
 * the operation in its three highest bits and an operand in the others. Numbers in the connection
 * data are big-endian; entries that one side writes into the other's memory (vb_rs_sge, vb_rs_iomap)
 * have the byte order of the side that they are written into.
 */
#ifndef VB_RSOCKET_MESSAGE_H
#define VB_RSOCKET_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum vb_rs_op {
	VB_RS_DATA = 0,  /* operand: bytes written */
	VB_RS_SGL = 4,   /* operand: the new limit of credits; 16 bytes of payload: a vb_rs_sge */
	VB_RS_IOMAP = 6, /* operand: index of the vb_rs_iomap that was written */
	VB_RS_CTRL = 7,  /* operand: an enum vb_rs_ctrl */
};

enum vb_rs_ctrl {
	VB_RS_DISCONNECT = 0, /* the sender neither reads nor writes any more */
	VB_RS_KEEPALIVE = 1,
	VB_RS_SHUTDOWN = 2, /* the sender writes no more */
};

#define VB_RS_OPERAND_BITS 29
#define VB_RS_OPERAND_MAX  ((1u << VB_RS_OPERAND_BITS) - 1)

/* In the host's byte order. */
static inline uint32_t vb_rs_message(enum vb_rs_op op, uint32_t operand)
{
	return (uint32_t)op << VB_RS_OPERAND_BITS | (operand & VB_RS_OPERAND_MAX);
}

static inline unsigned int vb_rs_message_op(uint32_t message)
{
	return message >> VB_RS_OPERAND_BITS;
}

static inline uint32_t vb_rs_message_operand(uint32_t message)
{
	return message & VB_RS_OPERAND_MAX;
}

/* A place to write to. */
struct vb_rs_sge {
	uint64_t addr;
	uint32_t key;
	uint32_t length;
};

/* Memory of a program that its peer may write into: riomap(3). */
struct vb_rs_iomap {
	uint64_t offset;
	struct vb_rs_sge sge;
};

_Static_assert(sizeof(struct vb_rs_sge) == 16, "on the wire");
_Static_assert(sizeof(struct vb_rs_iomap) == 24, "on the wire");

#define VB_RS_SGES       2  /* entries that a side has in the other one's target area */
#define VB_RS_HELLO_SIZE 40 /* bytes of connection data */

/* Connection data, decoded. */
struct vb_rs_hello {
	bool big_endian;         /* the sender's byte order */
	bool iomap;              /* the sender knows VB_RS_IOMAP */
	uint16_t credits;        /* its receive queue */
	uint32_t iomaps;         /* iomap entries that its target area has room for */
	struct vb_rs_sge target; /* its target area; length: number of vb_rs_sge */
	struct vb_rs_sge data;   /* the first half of its receive buffer */
};

/* Whether this machine's numbers are big-endian. */
bool vb_rs_is_big_endian(void);

void vb_rs_hello_encode(const struct vb_rs_hello *hello, uint8_t bytes[VB_RS_HELLO_SIZE]);
/* 0; -EPROTO: too short or senseless; -ENOTSUP: another version. */
int vb_rs_hello_decode(struct vb_rs_hello *hello, const uint8_t *bytes, size_t length);

/* Numbers up to 32512 in eight bits: above 128 in steps of 256, rounded up. */
uint8_t vb_rs_scale(uint32_t value);
uint32_t vb_rs_unscale(uint8_t scaled);

/* Between the byte orders of two sides. */
void vb_rs_sge_swap(struct vb_rs_sge *sge);
void vb_rs_iomap_swap(struct vb_rs_iomap *iomap);

/* Whether `count` is below `limit`, both numbers of messages modulo 2^16. */
static inline bool vb_rs_before(uint16_t count, uint16_t limit)
{
	return (int16_t)(uint16_t)(limit - count) > 0;
}

#endif
