/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The unit that links carry: a run of consecutive packets of one message.
 *
 * A run stands for `segments` RoCEv2 packets of the path MTU with consecutive PSNs. On a UDP link
 * it is one burst of packets, on a shared-memory link one slot; the protocol is the same on both.
 * Members are in host byte order, except for the immediate, which verbs pass through unswapped. The
 * sender's transport fills a run in, or a link's decoder does after it has validated every length.
 * The payload is passed beside the run.
 */
#ifndef VB_TRANSPORT_RUN_H
#define VB_TRANSPORT_RUN_H

#include <stdbool.h>
#include <stdint.h>

enum vb_service {
	VB_SERVICE_RC,
	VB_SERVICE_UC,
	VB_SERVICE_UD,
	VB_SERVICE_XRC,
};

enum vb_op {
	VB_OP_SEND,          /* FIRST/LAST flags say which part of the message */
	VB_OP_WRITE,         /* RETH in the run with FIRST */
	VB_OP_READ_REQUEST,  /* always one packet; takes as many PSNs as its response has packets */
	VB_OP_READ_RESPONSE, /* AETH in the FIRST and the LAST packet */
	VB_OP_COMPARE_SWAP,
	VB_OP_FETCH_ADD,
	VB_OP_ATOMIC_ACK,
	VB_OP_ACK, /* ACK or NAK; the syndrome tells which */
	/*
	 * Reliable links only: the request was dropped. `imm` = enum vb_reason, `msn` = the PSN
	 * that is expected.
	 */
	VB_OP_DROP,
	/* RETH and 8 bytes; answered, like FLUSH, by a READ response of no bytes (IBA A19). */
	VB_OP_ATOMIC_WRITE,
	VB_OP_FLUSH,
	VB_OP_COUNT,
};

static inline bool vb_op_is_request(uint8_t op)
{
	return op <= VB_OP_READ_REQUEST || op == VB_OP_COMPARE_SWAP || op == VB_OP_FETCH_ADD ||
	       op == VB_OP_ATOMIC_WRITE || op == VB_OP_FLUSH;
}

/* XRC is RC with a receive queue named by each request (IBA A14). */
static inline bool vb_service_reliable(uint8_t service)
{
	return service == VB_SERVICE_RC || service == VB_SERVICE_XRC;
}

/* vb_run.flags */
#define VB_RUN_FIRST          0x01 /* holds the first packet of its message */
#define VB_RUN_LAST           0x02 /* holds the last packet of its message */
#define VB_RUN_IMM            0x04 /* immediate data in the last packet (with LAST) */
#define VB_RUN_INV            0x08 /* key to invalidate in the last packet (with LAST) */
#define VB_RUN_SOLICITED      0x10 /* solicited event (last packet) */
#define VB_RUN_ACK_REQ        0x20 /* AckReq in the last packet of the run */
/*
 * An ACK of the other direction rides on this SEND or WRITE; ack_psn is its PSN. Only on links that
 * carry it (acks_ride in tqp.h).
 */
#define VB_RUN_ACKS           0x40
/*
 * The payload of this SEND did not come with it: it lies in the sender's memory, and the receiver
 * fetches it (`lent`). Only on links that do so (lends in tqp.h).
 */
#define VB_RUN_LENT           0x80

/*
 * AETH syndromes (IBA 9.7.5.1.1): the upper three bits are the class, the lower five credits, timer
 * or code.
 */
#define VB_AETH_ACK           0x1f /* "credits: unlimited" */
#define VB_AETH_RNR           0x20 /* | timer */
#define VB_AETH_NAK_SEQUENCE  0x60
#define VB_AETH_NAK_INVALID   0x61
#define VB_AETH_NAK_ACCESS    0x62
#define VB_AETH_NAK_OPERATION 0x63
#define VB_AETH_CLASS(s)      ((s)&0x60)
#define VB_AETH_VALUE(s)      ((s)&0x1f)

/*
 * FETH: placement type (enum ibv_placement_type) in the lower four bits, then two bits of
 * selectivity level.
 */
#define VB_FETH(type, level)  ((uint32_t)(type) | (uint32_t)(level) << 4)
#define VB_FETH_TYPE(f)       ((f)&0x0f)
#define VB_FETH_LEVEL(f)      ((f) >> 4 & 0x03)

#define VB_MESSAGE_MOST       (1u << 31) /* bytes of one message (IBA 9.7.4.1.5) */
#define VB_MTU_MOST           4096u      /* bytes of payload of one packet (IBA 9.4.1) */

#define VB_QPN_MASK           0xffffffu
#define VB_SRQN_MASK          0xffffffu
#define VB_QPN_MULTICAST      0xffffffu
#define VB_QPN_SERVICES       1u /* the General Services Interface (IBA 3.9.5) */

#define VB_HOP_LIMIT_ROUTE    0

/*
 * The destination of a datagram, and the header that its receiver sees (the GRH of a UD receive).
 */
struct vb_path {
	uint8_t sgid[16];
	uint8_t dgid[16];
	uint32_t flow_label;
	uint8_t traffic_class;
	uint8_t hop_limit; /* VB_HOP_LIMIT_ROUTE: as the sender's network decides */
	uint8_t pad[2];
};

/* Where a payload lies that was not sent, and the numbers by which it is seen that it still does. */
struct vb_lent {
	uint64_t addr; /* in the sender's address space */
	uint32_t key;
	uint32_t key_generation;
	uint32_t qp_generation; /* of the sender's published entry */
};

struct vb_run {
	uint8_t service;  /* enum vb_service */
	uint8_t op;       /* enum vb_op */
	uint8_t flags;    /* VB_RUN_* */
	uint8_t syndrome; /* AETH */
	uint16_t pkey;
	uint16_t segments; /* packets of this run, at least 1 (a READ request: 1) */
	uint32_t dest_qpn;
	uint32_t src_qpn; /* always set on shared memory; on the wire only with a DETH (else 0) */
	uint32_t psn;     /* of the first packet */
	uint32_t length;  /* payload bytes of the run */
	uint32_t msn;     /* AETH */
	uint32_t imm;     /* immediate (big endian, as given) or, with INV, the key to invalidate */
	uint32_t qkey;    /* UD */
	uint32_t ack_psn; /* with ACKS */
	uint32_t srqn;    /* XRC requests: the shared receive queue (XRCETH) */
	uint32_t rkey;    /* RETH, AtomicETH */
	uint32_t dma_length; /* RETH: length of the whole message */
	uint32_t flush;      /* FETH */
	uint64_t va;         /* RETH, AtomicETH */
	uint64_t swap_add;   /* AtomicETH: value to swap in or to add */
	uint64_t compare;    /* AtomicETH */
	uint64_t original;   /* AtomicAckETH */
	struct vb_lent lent; /* with LENT */
	struct vb_path path; /* UD only; else undefined */
};

#endif
