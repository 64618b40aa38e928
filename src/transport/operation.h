/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The operations of work requests, one row each: which queue pairs have it, what it is on the wire,
 * what it carries, and what its completion says. Posting, the builder (ibv_wr_start(3)), the
 * requester and the completion read the same row.
 */
#ifndef VB_TRANSPORT_OPERATION_H
#define VB_TRANSPORT_OPERATION_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "transport/run.h"

/* What an operation consists of on the wire. */
enum vb_request_kind {
	VB_REQUEST_NONE, /* not offered */
	VB_REQUEST_DATA,
	VB_REQUEST_READ,
	VB_REQUEST_ATOMIC,
	VB_REQUEST_CONFIRMED, /* ATOMIC_WRITE and FLUSH: a READ response of no bytes confirms it */
	VB_REQUEST_LOCAL,     /* no packet */
};

/*
 * vb_operation.senders: bits 1 << enum vb_service, and one for raw packet queue pairs, whose
 * service is UD.
 */
#define VB_SENDER(service)    (1u << (service))
#define VB_SENDER_RAW         0x80u

/* vb_operation.carries: the members of a request that have a meaning. */
#define VB_CARRIES_MEMORY     0x01u /* scatter/gather elements */
#define VB_CARRIES_INLINE     0x02u /* or bytes in their place */
#define VB_CARRIES_REMOTE     0x04u /* an address and key of the peer: wr.rdma, or wr.atomic */
#define VB_CARRIES_OPERANDS   0x08u /* wr.atomic: compare, swap, add */
#define VB_CARRIES_IMMEDIATE  0x10u
#define VB_CARRIES_INVALIDATE 0x20u /* a key to invalidate */

struct vb_operation {
	uint8_t kind;      /* enum vb_request_kind */
	uint8_t op;        /* enum vb_op */
	uint8_t flags;     /* of the last packet */
	uint8_t senders;   /* VB_SENDER_... */
	uint8_t carries;   /* VB_CARRIES_... */
	uint8_t bytes;     /* the only length allowed, 0: any */
	uint8_t wc_opcode; /* enum ibv_wc_opcode */
	bool direct;       /* may be done by direct access */
	uint64_t ex_flag;  /* IBV_QP_EX_WITH_... */
};

#define VB_OPERATIONS (IBV_WR_ATOMIC_WRITE + 1u)

extern const struct vb_operation vb_operations[VB_OPERATIONS + 1];

/* Any byte is a valid argument. An opcode without a row of its own is not offered. */
static inline const struct vb_operation *vb_operation(uint8_t opcode)
{
	return &vb_operations[opcode < VB_OPERATIONS ? opcode : VB_OPERATIONS];
}

/*
 * The VB_SENDER_... bits of a type; 0 for a type that sends nothing, and for a number that is no
 * type.
 */
uint8_t vb_operation_sender(enum ibv_qp_type type);

/* Whether the type has the operation. */
bool vb_qp_type_has_opcode(enum ibv_qp_type type, enum ibv_wr_opcode opcode);

#endif
