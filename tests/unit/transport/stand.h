/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A queue pair on a test stand: its environment records everything, and answers as the test says.
 */
#ifndef TESTS_UNIT_TRANSPORT_STAND_H
#define TESTS_UNIT_TRANSPORT_STAND_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "support/protocol.h"
#include "transport/psn.h"
#include "transport/tqp.h"

#define STAND_RUNS      512
#define STAND_DONE      64
#define STAND_SQ        16
#define STAND_WQE_BYTES 256
#define STAND_MEMORY    65536u
#define STAND_QPN       0x11u
#define STAND_PEER      0x22u
#define STAND_RKEY      0x700u

struct stand_done {
	uint64_t wr_id;
	enum ibv_wc_status status;
	enum vb_reason reason;
};

struct stand {
	struct vb_tqp qp; /* first: the environment finds the stand by it */
	struct vb_resource res[VB_RESOURCES];
	uint32_t rd_end[VB_RESOURCES];

	struct vb_run sent[STAND_RUNS]; /* what went to the link, oldest first */
	unsigned int sents;
	unsigned int room; /* runs that the link still takes */
	uint8_t buffer[STAND_MEMORY];
	uint8_t payload[STAND_MEMORY]; /* of the run sent last */

	struct stand_done done[STAND_DONE];
	unsigned int dones;
	struct vb_recv_done recv_done[STAND_DONE];
	unsigned int recv_dones;
	unsigned int told; /* of requests of the peer (tells in tqp.h) */
	enum ibv_event_type event[STAND_DONE];
	unsigned int events;
	enum vb_reason drops[STAND_RUNS];
	unsigned int dropped;
	unsigned int explained;
	unsigned int state_changes;
	uint64_t timer_ns; /* of the armed timer; 0 = none */
	uint64_t now_ns;   /* the clock; an expiring timer moves it by what it was armed for */
	unsigned int timers;

	struct {
		struct vb_recv_wqe wqe;
		struct ibv_sge sge[2];
	} recv[8];
	unsigned int recvs;
	unsigned int recvs_taken;
	unsigned int untaken;

	uint8_t local[STAND_MEMORY];  /* what requests gather from and responses scatter to */
	uint8_t inbox[STAND_MEMORY];  /* what receives scatter to */
	uint8_t remote[STAND_MEMORY]; /* what the responder serves, at address 0 */
	uint64_t remote_length;       /* how much of it the key grants */
	unsigned int atomics;
	unsigned int flushes;
	uint32_t flushed; /* the placement type of the last one */

	/* Faults that the environment shows. */
	enum vb_reason gather_fault, scatter_fault, recv_fault, copy_fault, invalidate_fault,
		bind_fault;
	unsigned int binds;
	enum vb_direct direct[8]; /* answers of direct access, in order */
	unsigned int directs;
	bool waits, two_sided; /* whether a request waits for direct access; what it was told */
	unsigned int waits_asked;
	_Alignas(16) char sq[STAND_SQ * STAND_WQE_BYTES];
};

/*
 * An RC queue pair in RTS, MTU 1024, PSNs 100 (out) and 200 (in), plenty of room; on a lossy link
 * if asked.
 */
struct stand *stand_new(bool reliable);
void stand_free(struct stand *s);
/* Turns it into another service. */
void stand_service(struct stand *s, enum vb_service service);
void stand_with_direct(struct stand *s);

/* Posts and runs. The entry may be changed between stand_wqe() and stand_post(). */
struct vb_send_wqe *stand_wqe(struct stand *s, enum ibv_wr_opcode opcode, uint32_t length);
bool stand_post(struct stand *s);
bool stand_request(struct stand *s, enum ibv_wr_opcode opcode, uint32_t length);
void stand_recv(struct stand *s, uint32_t length);

/*
 * An incoming run from the peer: service, numbers, P_Key are filled; then received, and the queue
 * pair run.
 */
struct vb_run stand_run(const struct stand *s, enum vb_op op, uint8_t flags, uint32_t psn,
			uint32_t length);
void stand_arrive(struct stand *s, const struct vb_run *run);
void stand_ack(struct stand *s, uint32_t psn, uint8_t syndrome);
void stand_expire(struct stand *s);

/* Both at once; and a READ response. */
void stand_in(struct stand *s, enum vb_op op, uint8_t flags, uint32_t psn, uint32_t length);
struct vb_run stand_response(const struct stand *s, uint32_t psn, uint32_t length);

/*
 * The run sent last is this acknowledgement; the n-th completion is that of the n-th request, with
 * this status.
 */
void stand_expect_ack(const struct stand *s, uint8_t syndrome, uint32_t psn);
void stand_expect_done(const struct stand *s, unsigned int n, enum ibv_wc_status status);

/* The run sent last, and forgetting all of them. */
const struct vb_run *stand_last(const struct stand *s);
void stand_clear(struct stand *s);

#endif
