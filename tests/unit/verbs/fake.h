/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A device made of memory, for tests of the face: one context, one object of each type, and an
 * operations table whose every call is counted and answers what the test has set.
 */
#ifndef TESTS_UNIT_VERBS_FAKE_H
#define TESTS_UNIT_VERBS_FAKE_H

#include <infiniband/verbs.h>
#include <stdbool.h>

enum { FAKE_GIDS = 6, FAKE_PKEYS = 2 };

struct fake {
	int err;       /* what every operation answers: 0 or a negative errno */
	int calls;     /* operations reached since fake_reset() */
	int data_bits; /* query_qp_data_in_order */
	uint32_t got_comp, got_async;
	bool freed; /* free_cq, free_qp or free_srq was called */
	unsigned int access;
	uint64_t iova;
	struct ibv_cq_init_attr_ex cq_attr; /* as the last create saw them */
	struct ibv_qp_init_attr_ex qp_attr;
	struct ibv_srq_init_attr_ex srq_attr;
	struct ibv_gid_entry gid[FAKE_GIDS]; /* an entry of port 0 is an empty slot */
	__be16 pkey[FAKE_PKEYS];
	struct ibv_device device;
	struct ibv_pd pd;
	struct ibv_mr mr;
	struct ibv_comp_channel channel;
	union {
		struct ibv_cq cq;
		struct ibv_cq_ex cq_ex;
	};
	union {
		struct ibv_qp qp;
		struct ibv_qp_ex qp_ex;
	};
	struct ibv_srq srq;
	struct ibv_ah ah;
	struct ibv_mw mw;
};

extern struct fake fake;

/* A clean device; returns its context, opened through ibv_open_device(). */
struct ibv_context *fake_reset(void);

#endif
