/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Messages of the connection manager (IBA 12.6, 12.11): MADs of class 0x07 and the structures that
 * they stand for.
 *
 * vb_cm_message_decode() is the one place that validates them. It judges what needs no connection;
 * whose connection a message is for, and whether its state allows the message, is cm/cm.h's matter.
 * A carrier that only wants to know the process that a MAD is for calls vb_cm_message_judge() and
 * then the accessors.
 *
 * Numbers are in host byte order, GIDs as on the wire. Pure; safe from any thread.
 */
#ifndef VB_WIRE_CM_MESSAGE_H
#define VB_WIRE_CM_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/reason.h"
#include "wire/mad.h"

/* Attribute ids. LAP and APR are recognised in order to be dropped: RoCE has no alternate path. */
enum vb_cm_attribute {
	VB_CM_REQ = 0x10,
	VB_CM_MRA = 0x11,
	VB_CM_REJ = 0x12,
	VB_CM_REP = 0x13,
	VB_CM_RTU = 0x14,
	VB_CM_DREQ = 0x15,
	VB_CM_DREP = 0x16,
	VB_CM_SIDR_REQ = 0x17,
	VB_CM_SIDR_REP = 0x18,
	VB_CM_LAP = 0x19,
	VB_CM_APR = 0x1a,
};

/* What MRA and REJ answer. */
enum vb_cm_answered {
	VB_CM_ANSWERED_REQ = 0,
	VB_CM_ANSWERED_REP = 1,
	VB_CM_ANSWERED_OTHER = 2,
};

/* Transport service types of REQ; on the wire XRC is 3 with the extended type 1. */
enum vb_cm_service {
	VB_CM_RC = 0,
	VB_CM_UC = 1,
	VB_CM_RD = 2,
	VB_CM_XRC = 3,
	VB_CM_UD = 4, /* not of REQ: stands for SIDR in cm/ */
};

/* Reasons of REJ (IBA 12.6.7.2). */
enum vb_cm_rejection {
	VB_CM_REJ_NO_QP = 1,
	VB_CM_REJ_NO_RESOURCES = 3,
	VB_CM_REJ_TIMEOUT = 4,
	VB_CM_REJ_UNSUPPORTED = 5,
	VB_CM_REJ_INVALID_COMM_ID = 6,
	VB_CM_REJ_INVALID_SERVICE_ID = 8,
	VB_CM_REJ_INVALID_TRANSPORT = 9,
	VB_CM_REJ_STALE = 10,
	VB_CM_REJ_INVALID_GID = 12,
	VB_CM_REJ_INVALID_MTU = 26,
	VB_CM_REJ_CONSUMER = 28,
	VB_CM_REJ_DUPLICATE_ID = 30,
	VB_CM_REJ_VENDOR = 35,
};

/* Status of SIDR_REP. */
enum vb_cm_sidr_status {
	VB_CM_SIDR_VALID = 0,
	VB_CM_SIDR_NO_SERVICE = 1,
	VB_CM_SIDR_REJECTED = 2,
	VB_CM_SIDR_NO_QP = 3,
	VB_CM_SIDR_REDIRECT = 4,
	VB_CM_SIDR_VERSION = 5,
};

/* Room for private data in each message, and for the additional information of two. */
#define VB_CM_PRIVATE_REQ      92u
#define VB_CM_PRIVATE_MRA      222u
#define VB_CM_PRIVATE_REJ      148u
#define VB_CM_PRIVATE_REP      196u
#define VB_CM_PRIVATE_RTU      224u
#define VB_CM_PRIVATE_DREQ     220u
#define VB_CM_PRIVATE_DREP     224u
#define VB_CM_PRIVATE_SIDR_REQ 216u
#define VB_CM_PRIVATE_SIDR_REP 136u
#define VB_CM_PRIVATE_MOST     224u
#define VB_CM_INFO_BYTES       72u

/* A path of REQ, as its sender sees it. */
struct vb_cm_wire_path {
	uint16_t local_lid, remote_lid;
	uint8_t local_gid[16], remote_gid[16];
	uint32_t flow_label;
	uint8_t rate;
	uint8_t traffic_class;
	uint8_t hop_limit;
	uint8_t sl;
	uint8_t ack_timeout; /* local ACK timeout, 5 bits */
	bool subnet_local;
};

struct vb_cm_req {
	uint64_t service_id;
	uint64_t guid;      /* of the sender's device */
	uint32_t vendor_id; /* ECE; its options are the message's modifier */
	uint32_t qkey;
	uint32_t qpn, eecn, remote_eecn;
	uint32_t psn;
	uint16_t pkey;
	uint8_t responder_resources;
	uint8_t initiator_depth;
	uint8_t service;        /* enum vb_cm_service; RD and unknown extended types included */
	uint8_t extended;       /* extended transport type; 1: XRC */
	uint8_t remote_timeout; /* CM response time-outs, 5 bits: the receiver's, the sender's */
	uint8_t local_timeout;
	uint8_t retry_count, rnr_retry_count; /* 3 bits */
	uint8_t mtu;                          /* enum ibv_mtu as on the wire, 4 bits */
	uint8_t cm_retries;                   /* 4 bits */
	bool flow_control, rdc, srq;
	struct vb_cm_wire_path primary, alternate;
};

struct vb_cm_rep {
	uint64_t guid;
	uint32_t vendor_id;
	uint32_t qkey;
	uint32_t qpn, eecn;
	uint32_t psn;
	uint8_t responder_resources;
	uint8_t initiator_depth;
	uint8_t ack_delay; /* target ACK delay, 5 bits */
	uint8_t failover;  /* 2 bits */
	uint8_t rnr_retry_count;
	bool flow_control, srq;
};

struct vb_cm_mra {
	uint8_t answered;        /* enum vb_cm_answered */
	uint8_t service_timeout; /* 5 bits: the answer comes within 4.096 us << service_timeout */
};

struct vb_cm_rej {
	uint16_t reason;
	uint8_t answered;
	uint8_t info_length; /* at most VB_CM_INFO_BYTES */
	uint8_t info[VB_CM_INFO_BYTES];
};

struct vb_cm_dreq {
	uint32_t remote_qpn;
};

struct vb_cm_sidr_req {
	uint64_t service_id;
	uint16_t pkey;
};

struct vb_cm_sidr_rep {
	uint64_t service_id;
	uint32_t vendor_id;
	uint32_t qpn;
	uint32_t qkey;
	uint8_t status; /* enum vb_cm_sidr_status */
	uint8_t info_length;
	uint8_t info[VB_CM_INFO_BYTES];
};

/*
 * A message. SIDR_REQ has its request id in local_id, SIDR_REP in remote_id; REQ has no remote_id.
 * So local_id is always a number of the sender, remote_id one of the receiver.
 */
struct vb_cm_message {
	uint16_t attribute; /* enum vb_cm_attribute */
	uint32_t modifier;  /* REQ, REP, SIDR_REP: options of ECE */
	uint64_t tid;
	uint32_t local_id, remote_id;
	union {
		struct vb_cm_req req;
		struct vb_cm_rep rep;
		struct vb_cm_mra mra;
		struct vb_cm_rej rej;
		struct vb_cm_dreq dreq;
		struct vb_cm_sidr_req sidr_req;
		struct vb_cm_sidr_rep sidr_rep;
	};
	/* As many bytes as the attribute has room for, zeros behind what the sender gave. */
	uint8_t private_data[VB_CM_PRIVATE_MOST];
};

/*
 * Whether the bytes are a message that this implementation has to do with: 256 of them, class 7,
 * class version 2, method SEND, an attribute of the list above but LAP and APR. Returns
 * VB_REASON_NONE, or CM_MALFORMED, CM_OTHER.
 */
enum vb_reason vb_cm_message_judge(const uint8_t *mad, size_t length);

/*
 * Judges the bytes as above and by their content (lengths within, ids that may not be 0), and fills
 * *message. Returns VB_REASON_NONE, or why the MAD is to be dropped without an answer.
 */
enum vb_reason vb_cm_message_decode(const uint8_t *mad, size_t length,
				    struct vb_cm_message *message);

/* Writes all 256 bytes; what is reserved becomes 0. Fields are cut to their widths. */
void vb_cm_message_encode(const struct vb_cm_message *message, uint8_t mad[VB_MAD_BYTES]);

/* Room for private data in messages of the attribute; 0 if it is unknown. */
unsigned int vb_cm_private_room(uint16_t attribute);

/*
 * Accessors for MADs that vb_cm_message_judge() has let pass.
 *
 * _receiver: the communication id of the receiver; 0 if the message names none (REQ, SIDR_REQ, and
 * REJ of a sender that knows none). _service: true, and the service id, for REQ and SIDR_REQ.
 * _sender: the communication id, or SIDR request id, of the sender; 0 for SIDR_REP.
 */
uint16_t vb_cm_message_attribute(const uint8_t mad[VB_MAD_BYTES]);
uint32_t vb_cm_message_receiver(const uint8_t mad[VB_MAD_BYTES]);
uint32_t vb_cm_message_sender(const uint8_t mad[VB_MAD_BYTES]);
bool vb_cm_message_service(const uint8_t mad[VB_MAD_BYTES], uint64_t *service_id);

#endif
