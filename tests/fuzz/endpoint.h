/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A queue pair under test: the environment that the protocol needs, made of a few buffers. It
 * aborts the process as soon as the protocol asks for something that it was not promised, or breaks
 * a promise of its own.
 */
#ifndef TESTS_FUZZ_ENDPOINT_H
#define TESTS_FUZZ_ENDPOINT_H

#include <stdbool.h>
#include <stdint.h>

#include "demand.h"
#include "transport/access.h"
#include "transport/tqp.h"

#define END_SQ        8u
#define END_WQE_BYTES 256u
#define END_RECVS     64u
#define END_REGION    16384u
#define END_LOCAL     32768u
#define END_IOVA      0x7000000000ull
#define END_KEY       0x1100u
#define END_KEY_DULL  0x2200u /* without remote rights; can be invalidated */
#define END_QPN       0x000111u

struct endpoint {
	struct vb_tqp qp; /* first: the environment finds the endpoint by it */
	struct vb_resource *res;
	uint32_t *rd_end;
	struct vb_key keys[2];
	uint8_t *region; /* memory that peers can reach */
	uint8_t *local;  /* memory that requests gather from and scatter to */
	uint8_t *room;   /* reserved in the link */
	uint32_t room_bytes;
	struct vb_run room_for; /* the run that it was reserved for */
	uint32_t runs_left;     /* runs that the link still takes */
	bool reserved;
	bool entered; /* XRC: the latest request named a queue that exists */
	bool runs;    /* what arrives is longer than the path MTU: a run of several packets */
	_Alignas(8) char sq[END_SQ * END_WQE_BYTES];
	struct vb_recv_wqe recv[END_RECVS];
	uint32_t recvs_posted;
	uint32_t recvs_taken;
	uint32_t completed;

	/* If set, gets every run that is sent. */
	void (*watch)(struct endpoint *e, const struct vb_run *run, const uint8_t *payload);
	/* The last results, for tests that know what to expect. */
	struct vb_run sent;
	uint32_t runs_sent;
	enum vb_reason said; /* of a drop or a refusal */
	struct vb_recv_done received;
	uint32_t receives;
	enum ibv_wc_status send_status;
};

/* Builds it from the head of an input. */
void endpoint_start(struct endpoint *e, const uint8_t *head);
void endpoint_stop(struct endpoint *e);

void endpoint_post_recv(struct endpoint *e, uint32_t length);
/* By a record's argument. */
void endpoint_post_send(struct endpoint *e, uint8_t what);
void endpoint_event(struct endpoint *e, uint8_t what);
void endpoint_run(struct endpoint *e, uint32_t runs);

#endif
