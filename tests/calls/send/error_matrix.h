/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* One row of the error matrix: the fault, and what both sides must see of it. */
#ifndef TESTS_CALLS_SEND_ERROR_MATRIX_H
#define TESTS_CALLS_SEND_ERROR_MATRIX_H

#include <stdbool.h>
#include <stddef.h>

#include "support/endpoint.h"

#define TARGET 32768 /* where requests write to and read from in the far buffer */
#define LENGTH 4096
#define NONE   -1

enum {
	DATA_UNTOUCHED, /* the target's bytes must be as before */
	DATA_ARRIVED,   /* and here the sender's */
	DATA_ANY,
};

/* A linked pair and the request that a row is about to spoil. */
struct scene {
	struct endpoint near, far;
	struct ibv_sge sge[4], recv_sge;
	struct ibv_send_wr wr;
	struct ibv_ah *ah, *other_ah;
	struct ibv_mr *big;
	void *big_buf;
	int recv_num;
};

struct row {
	const char *name;
	enum ibv_qp_type type;
	enum ibv_wr_opcode opcode;
	void (*configure)(struct ep_config *near, struct ep_config *far);
	void (*spoil)(struct scene *scene);
	bool receive; /* one is posted at the far end */
	int near_status, far_status;
	enum ibv_qp_state near_state, far_state;
	int far_event;
	int data;
};

extern const struct row error_rows[];
extern const size_t error_row_count;

static inline bool is_atomic(enum ibv_wr_opcode opcode)
{
	return opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

/* Where a request goes: rdma and atomic requests keep it in different places. */
static inline void set_remote(struct scene *s, uint64_t addr, uint32_t rkey)
{
	if (is_atomic(s->wr.opcode)) {
		s->wr.wr.atomic.remote_addr = addr;
		s->wr.wr.atomic.rkey = rkey;
	} else {
		s->wr.wr.rdma.remote_addr = addr;
		s->wr.wr.rdma.rkey = rkey;
	}
}

static inline uint64_t target(const struct scene *s)
{
	return s->far.local.addr + TARGET;
}

#endif
