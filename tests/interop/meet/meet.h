/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The meet program: one binary that connects and is connected to by librdmacm, run on two libraries.
 * The two sides play the same scene, and each checks what its events say. What is wrong ends the
 * program through fail(). Nothing is waited for longer than PATIENCE_MS.
 */
#ifndef MEET_H
#define MEET_H

#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stdint.h>

enum { PATIENCE_MS = 90000, MESSAGE_BYTES = 3000, ASK_BYTES = 21, ANSWER_BYTES = 33 };

/* One side of one connection. */
struct end {
	struct rdma_event_channel *channel;
	struct rdma_cm_id *listener; /* of the passive side */
	struct rdma_cm_id *id;
	struct ibv_mr *mr;
	uint8_t *memory; /* MESSAGE_BYTES to send, then 40 and MESSAGE_BYTES to receive into */
	uint32_t remote_qpn, remote_qkey; /* of datagrams */
	struct ibv_ah *ah;
};

struct options {
	const char *host; /* NULL: this is the passive side */
	const char *bind; /* the address to listen on */
	const char *port;
	bool dies; /* this side is killed when the scene says so */
};

void fail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
void check(bool right, const char *what);

/* end.c: what every scene needs. */
void listen_at(struct end *end, const struct options *options, enum rdma_port_space ps);
void resolve(struct end *end, const struct options *options, enum rdma_port_space ps);
/* The next event, which must be this one; acknowledge it. */
struct rdma_cm_event *next(struct end *end, enum rdma_cm_event_type type);
/* The same, acknowledged; its status. */
int pass(struct end *end, enum rdma_cm_event_type type);
/* The request; end->id is the child, with a queue pair and a receive posted. */
void request(struct end *end);
void queue_pair(struct end *end);
/* end->id's queue pair, id and channel; and the listener. */
void leave(struct end *end);
/* Checks the pattern and the padding of private data. seed: which text. */
void private_data(uint8_t *out, unsigned int bytes, uint8_t seed);
void check_private_data(const void *data, unsigned int length, unsigned int padded,
			unsigned int bytes, uint8_t seed);

/* message.c: one message each way; returns when it has come, or the status of the failed completion. */
void post_receive(struct end *end);
void send_message(struct end *end, uint8_t seed);
enum ibv_wc_status completion(struct ibv_cq *cq);
void check_message(struct end *end, uint8_t seed);

#endif
