/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The oracle: what two queue pairs must do, computed from the requests alone.
 *
 * It keeps its own copy of both memories and executes every request once, in order, as the manual
 * pages of the verbs say. It knows no packet and no PSN, and shares no code with src/transport. The
 * simulator tells it what is posted and what completes; it compares status, order, length,
 * immediate and every byte. It keeps the first contradiction as a sentence.
 */
#ifndef TESTS_SIM_ORACLE_H
#define TESTS_SIM_ORACLE_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#define ORACLE_PIECES 4
#define ORACLE_OPS    160
#define ORACLE_RECVS  400

enum oracle_kind {
	ORACLE_SEND,
	ORACLE_WRITE,
	ORACLE_READ,
	ORACLE_SWAP,
	ORACLE_ADD,
	ORACLE_LOCAL,
	ORACLE_PUT,   /* ATOMIC_WRITE */
	ORACLE_FLUSH, /* changes nothing, but has its place in the order and its answer */
};

struct oracle_piece {
	uint32_t at; /* offset in the side's memory */
	uint32_t length;
};

struct oracle_op {
	enum oracle_kind kind;
	struct oracle_piece piece[ORACLE_PIECES];
	unsigned int pieces;
	uint32_t length;
	uint32_t remote_at; /* offset in the other side's memory */
	uint64_t compare;   /* also the operand of ADD */
	uint64_t swap;
	bool has_imm;
	bool has_inv;
	uint32_t imm;
	bool solicited;
	bool fence;
	/* Possible results: bits 1 << enum ibv_wc_status. */
	uint32_t status;
	uint32_t recv_status; /* of the receive, where the receiver may fail; 0: it does not */
	int event;            /* or this event instead of a receive that fails; -1: none */
	/* Members that the oracle sets. */
	bool posted;
	bool done;
	bool failed;
	bool refused; /* by the other side, which must have been told */
	bool received;
};

struct oracle_recv {
	struct oracle_piece piece[ORACLE_PIECES];
	unsigned int pieces;
	uint32_t length;
	bool posted;
	bool done;
	bool success;
};

struct oracle_side {
	const uint8_t *real;
	uint8_t *model;
	uint8_t *unknown; /* 1: the byte is not determined */
	struct oracle_op op[ORACLE_OPS];
	unsigned int ops;      /* planned */
	unsigned int posted;   /* of these, posted */
	unsigned int finished; /* of these, completed */
	/* Index of the next op that uses a receive of the other side, not yet received. */
	unsigned int next_msg;
	struct oracle_recv recv[ORACLE_RECVS];
	unsigned int recvs;
	unsigned int recv_finished;
	uint32_t may; /* statuses with which any request of this side may end, besides its own */
	uint32_t recv_may;
	bool may_stop;   /* the program itself may move the queue pair to the error state */
	bool send_error; /* a request failed: only flushes follow */
	bool recv_error;
	bool stopped; /* in the error state */
	unsigned int events;
};

struct oracle {
	unsigned int sides;
	uint32_t size;         /* of each memory */
	bool reliable_service; /* RC */
	bool lossy;
	bool may_drop;   /* unreliable service: messages may vanish */
	bool may_repeat; /* unreliable service: messages may come twice, or in another order */
	uint32_t header; /* bytes before the payload of a receive */
	struct oracle_side side[2];
	char fault[400];
};

/*
 * Starts over. The memories of `size` bytes belong to the caller, which has set side[].real, model
 * and unknown before.
 */
void oracle_start(struct oracle *o, unsigned int sides, uint32_t size);

/*
 * Appends a request that the side is going to post. Requests are posted in this order. Returns its
 * number.
 */
unsigned int oracle_plan(struct oracle *o, unsigned int side, const struct oracle_op *op);
void oracle_posted(struct oracle *o, unsigned int side);
unsigned int oracle_recv_posted(struct oracle *o, unsigned int side,
				const struct oracle_piece *piece, unsigned int pieces);

void oracle_send_done(struct oracle *o, unsigned int side, uint64_t id, enum ibv_wc_status status);

struct oracle_message {
	uint64_t id;
	enum ibv_wc_status status;
	enum ibv_wc_opcode opcode;
	uint32_t length;
	uint32_t flags;
	uint32_t imm;
	bool solicited;
};

void oracle_recv_done(struct oracle *o, unsigned int side, const struct oracle_message *m);
/* The protocol has stopped the queue pair, or (app) the program has. */
void oracle_stopped(struct oracle *o, unsigned int side, bool app);
void oracle_event(struct oracle *o, unsigned int side, int event);
/* The side's process has ended: nothing more is expected of it. */
void oracle_gone(struct oracle *o, unsigned int side);

/* At the end: checks that everything has completed, and every byte of both memories. */
void oracle_finish(struct oracle *o, bool side_gone[2]);

#endif
