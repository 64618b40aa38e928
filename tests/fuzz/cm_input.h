/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The input of the target `cm`: records, each of four bytes and as many bytes of a MAD as they say,
 * most 256. What the record asks for beside happens in the order of the bits.
 */
#ifndef TESTS_FUZZ_CM_INPUT_H
#define TESTS_FUZZ_CM_INPUT_H

/*
 * Byte 0 of a record; byte 1 says which connection (lower half) and which call or how long (upper
 * half); bytes 2 and 3 are the MAD's length, lower first; 0 = no MAD.
 */
#define CM_DO_TIME    0x01 /* 2 to the power of (upper half * 3) us pass */
#define CM_DO_CALL    0x02
#define CM_DO_IDS     0x04 /* the MAD names the ids of the connection */
#define CM_DO_NUMBERS 0x08 /* and its queue pair, GUID, and GIDs, where the message has any */
#define CM_DO_OTHER   0x10 /* it comes from another address than the peer's */
#define CM_DO_REFUSE  0x20 /* there is no memory for a request */
#define CM_DO_AGAIN   0x40 /* it comes twice */

/* Calls by the upper half of byte 1. */
enum cm_call {
	CM_CALL_CONNECT,
	CM_CALL_RESOLVE,
	CM_CALL_ACCEPT,
	CM_CALL_ESTABLISH,
	CM_CALL_REJECT,
	CM_CALL_DISCONNECT,
	CM_CALL_NOTIFY,
	CM_CALL_REPLY,
	CM_CALL_RELEASE,
	CM_CALL_TAKEN,
	CM_CALL_UNLISTEN,
	CM_CALL_LISTEN,
	CM_CALL_DEVICE_LOST,
	CM_CALL_END,
	CM_CALL_LAST_WORDS,
};

#endif
