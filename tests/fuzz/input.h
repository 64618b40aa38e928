/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The input of the targets. decode: the payload of one UDP datagram. responder: a head that
 * describes the queue pair, then records, each of four bytes and as many bytes of packet as they
 * say. cm: records as well (cm_input.h).
 */
#ifndef TESTS_FUZZ_INPUT_H
#define TESTS_FUZZ_INPUT_H

#include <stddef.h>
#include <stdint.h>

#define INPUT_HEAD   16
#define INPUT_RECORD 4
#define INPUT_MOST   16384

/* Bytes of the head. */
enum {
	/* Modulo 3: RC, UC, UD; HEAD_XRC: XRC instead of RC; upper bit: a reliable link. */
	HEAD_SERVICE,
	HEAD_MTU,       /* modulo 5: 256 to 4096; upper bits: packets of the longest run */
	HEAD_RD_ATOMIC, /* as requester */
	HEAD_DEST_RD_ATOMIC,
	HEAD_RETRY, /* retry_cnt, rnr_retry */
	HEAD_WINDOW,
	HEAD_RECEIVES, /* posted before the first record */
	HEAD_STATE,    /* 0 = RTS, 1 = RTR, 2 = INIT */
	HEAD_RQ_PSN,   /* three bytes, upper first */
	HEAD_SQ_PSN = HEAD_RQ_PSN + 3,
};

#define HEAD_XRC 0x40 /* in HEAD_SERVICE */

/*
 * Byte 0 of a record; byte 1 is an argument, bytes 2 and 3 the packet's length, lower first; 0 = no
 * packet.
 */
#define DO_PSN   0x01 /* the packet's PSN is what is expected plus the argument (signed) */
#define DO_KEY   0x02 /* its key and address are good ones */
#define DO_RECV  0x04 /* post a receive of argument * 32 bytes first */
/* Post a request first: the lower three bits say which, the upper five how long. */
#define DO_SEND  0x08
#define DO_TIMER 0x10 /* the timer expires first */
#define DO_RUN   0x20 /* let the queue pair work afterwards */
#define DO_FULL  0x40 /* ... while the link has room for argument modulo 4 runs only */
#define DO_EVENT 0x80 /* first an event: argument modulo 6 */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
