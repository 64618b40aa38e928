/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Where the fields of the connection manager's messages lie, as offsets in the body (IBA 12.6,
 * 12.11). A number of 24 bits shares its word with the byte behind it. For cm_*.c of this room.
 */
#ifndef VB_WIRE_CM_LAYOUT_H
#define VB_WIRE_CM_LAYOUT_H

#include <stdint.h>

/* All messages but REQ and SIDR_*: the sender's communication id, and the receiver's. */
enum {
	AT_LOCAL_ID = 0,
	AT_REMOTE_ID = 4,
};

enum {
	AT_REQ_VENDOR = 4, /* a reserved byte, then 24 bits */
	AT_REQ_SERVICE_ID = 8,
	AT_REQ_GUID = 16,
	AT_REQ_QKEY = 28,
	AT_REQ_QPN = 32,
	AT_REQ_RESPONDER_RESOURCES = 35,
	AT_REQ_EECN = 36,
	AT_REQ_INITIATOR_DEPTH = 39,
	AT_REQ_REMOTE_EECN = 40,
	AT_REQ_SERVICE = 43, /* remote time-out 5, service type 2, flow control 1 */
	AT_REQ_PSN = 44,
	AT_REQ_RETRY = 47, /* local time-out 5, retry count 3 */
	AT_REQ_PKEY = 48,
	AT_REQ_MTU = 50,     /* MTU 4, RDC exists 1, RNR retry count 3 */
	AT_REQ_RETRIES = 51, /* CM retries 4, SRQ 1, extended type 3 */
	AT_REQ_PRIMARY = 52,
	AT_REQ_ALTERNATE = 96,
	AT_REQ_PRIVATE = 140,
};

/* A path of REQ. */
enum {
	AT_PATH_LOCAL_LID = 0,
	AT_PATH_REMOTE_LID = 2,
	AT_PATH_LOCAL_GID = 4,
	AT_PATH_REMOTE_GID = 20,
	AT_PATH_FLOW = 36, /* flow label 20, reserved 6, rate 6 */
	AT_PATH_TRAFFIC_CLASS = 40,
	AT_PATH_HOP_LIMIT = 41,
	AT_PATH_SL = 42,      /* SL 4, subnet local 1, reserved 3 */
	AT_PATH_TIMEOUT = 43, /* local ACK timeout 5, reserved 3 */
};

enum {
	AT_REP_QKEY = 8,
	AT_REP_QPN = 12, /* the low bytes of this and the next two words are the vendor id */
	AT_REP_EECN = 16,
	AT_REP_PSN = 20,
	AT_REP_RESPONDER_RESOURCES = 24,
	AT_REP_INITIATOR_DEPTH = 25,
	AT_REP_ACK_DELAY = 26, /* target ACK delay 5, failover 2, flow control 1 */
	AT_REP_RNR = 27,       /* RNR retry count 3, SRQ 1, reserved 4 */
	AT_REP_GUID = 28,
	AT_REP_PRIVATE = 36,
};

enum {
	AT_RTU_PRIVATE = 8,
	AT_DREQ_QPN = 8,
	AT_DREQ_PRIVATE = 12,
	AT_DREP_PRIVATE = 8,
};

enum {
	AT_MRA_ANSWERED = 8, /* 2 bits */
	AT_MRA_TIMEOUT = 9,  /* 5 bits */
	AT_MRA_PRIVATE = 10,
};

enum {
	AT_REJ_ANSWERED = 8,    /* 2 bits */
	AT_REJ_INFO_LENGTH = 9, /* 7 bits */
	AT_REJ_REASON = 10,
	AT_REJ_INFO = 12,
	AT_REJ_PRIVATE = 84,
};

enum {
	AT_SIDR_REQ_PKEY = 4,
	AT_SIDR_REQ_SERVICE_ID = 8,
	AT_SIDR_REQ_PRIVATE = 16,
};

enum {
	AT_SIDR_REP_STATUS = 4,
	AT_SIDR_REP_INFO_LENGTH = 5,
	AT_SIDR_REP_VENDOR = 6, /* upper 16 of 24 bits; the lower 8 are behind the QPN */
	AT_SIDR_REP_QPN = 8,
	AT_SIDR_REP_SERVICE_ID = 12,
	AT_SIDR_REP_QKEY = 20,
	AT_SIDR_REP_INFO = 24,
	AT_SIDR_REP_PRIVATE = 96,
};

/* Where the private data of a message begins; 0: the attribute is none that is known. */
unsigned int vb_cm_private_at(uint16_t attribute);

#endif
