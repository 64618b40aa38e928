/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the tests of ibv_wr_post(3) share: one queue pair of all operations that its type has,
 * linked to itself, and requests on it.
 */
#ifndef TESTS_CALLS_SEND_BUILDERS_H
#define TESTS_CALLS_SEND_BUILDERS_H

#include <infiniband/verbs.h>

#include "support/endpoint.h"

#define QUEUE  8   /* places, of two elements each */
#define INLINE 64u /* bytes that are asked for; ep.cap has what was granted */

extern struct endpoint ep;
extern struct ibv_qp_ex *ex;
extern struct ibv_ah *ah; /* to itself */
extern struct ibv_mw *mw; /* of type 2 */

void builders_open(enum ibv_qp_type type);
void builders_close(void);
/* Whether nothing is disturbed: one batch of one SEND comes through. */
void builders_work(void);

/* The number of the next request, which is signalled. */
void request_begin(uint64_t wr_id);
/* A SEND of 8 bytes, complete. */
void request_send(uint64_t wr_id);
void request_bind(struct ibv_mw *window, unsigned int access);
/* Its completion. */
void request_sent(uint64_t wr_id, enum ibv_wc_status status);

#endif
