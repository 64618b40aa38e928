/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * One end of a connection: a device context with a protection domain, two completion queues, a
 * buffer with its memory region, and one queue pair. An end is in this process or in another one
 * (END_APART: a second copy of the program that takes requests over a socket). Every function below
 * works on either, so a test describes the expected results once and runs in both forms.
 *
 * An end is used by one thread. Functions return 0, a count, or the errno of the verb that they
 * stand for. A failure of the fixture itself ends the program (CHECK).
 */
#ifndef TESTS_SUPPORT_END_H
#define TESTS_SUPPORT_END_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <infiniband/verbs.h>

#include "support/completion.h"
#include "support/device.h"

#define END_MAX_SGE   32    /* scatter/gather entries that a post may carry to an end */
#define END_EXTRA_MRS 8     /* regions that a test may add to an end */
#define END_WINDOWS   4     /* windows that a test may add to an end */
#define END_WAIT_MS   10000 /* time limit for an expected event, however slow the machine */
#define END_QUIET_MS  60    /* time for which the absence of an event is watched */

enum end_place {
	END_HERE,
	END_APART,
};

enum end_cq {
	END_SEND_CQ,
	END_RECV_CQ,
};

/* How an end is made. Counts are work requests, lengths are bytes; packet timers as in verbs. */
struct end_config {
	enum ibv_qp_type type;
	uint32_t send_wr, recv_wr, send_sge, recv_sge, inline_data;
	uint32_t cqe;
	uint32_t srq_wr; /* 0: no shared receive queue */
	uint32_t srq_sge;
	uint64_t send_ops; /* IBV_QP_EX_WITH_...: an extended queue pair */
	uint32_t buf_len;
	uint32_t mr_access;
	uint32_t qp_access;
	uint32_t qkey;
	uint32_t psn;
	uint32_t mtu;
	uint8_t sig_all;
	uint8_t srq_other_pd;
	uint8_t rd_atomic, dest_rd_atomic;
	uint8_t min_rnr_timer, timeout, retry_cnt, rnr_retry;
	uint16_t pkey_index;
	uint8_t sgid_index; /* index in its own GID table */
};

/* What the other side must know of an end. */
struct end_info {
	uint32_t qpn, psn, rkey, lkey;
	uint32_t max_send_wr, max_recv_wr, max_send_sge, max_recv_sge, max_inline;
	uint64_t addr;
	union ibv_gid gid;
};

struct end {
	struct end_config config;
	struct end_info info;
	enum end_place place;
	int sock;
	pid_t pid;

	/* Only valid for an end that is here. */
	struct ibv_context *ctx;
	struct ibv_pd *pd, *other_pd;
	struct ibv_cq *cq[2];
	struct ibv_srq *srq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	struct ibv_mr *extra[END_EXTRA_MRS];
	struct ibv_mw *window[END_WINDOWS];
	uint8_t *buf;
};

/* One memory region that a test added; index is for end_dereg. */
struct end_key {
	int index;
	uint32_t lkey, rkey;
};

struct end_event {
	int type;     /* an enum ibv_event_type, or -1: none came */
	bool own_qp;  /* element is the end's queue pair */
	bool own_srq; /* element is its shared receive queue */
	bool own_cq[2];
};

/*
 * The first call of main(). In the process that was started as the other end, executes requests and
 * does not return. Reads --two-processes. Returns where the far end of a test is to be.
 */
enum end_place end_main(int argc, char **argv);

struct end_config end_defaults(enum ibv_qp_type type);
void end_open(struct end *end, const struct end_config *config, enum end_place place);
void end_close(struct end *end);

/* Moves the queue pair step by step from RESET to @state, with @peer as its destination. */
int end_bring_to(struct end *end, const struct end_info *peer, enum ibv_qp_state state);
/* Connects two new ends, or one with itself; all queue pairs to RTS. */
void end_link(struct end *a, struct end *b);
/* A linked pair in one call: @near always here, @far at @place. */
void end_pair(struct end *near, struct end *far, const struct end_config *near_config,
	      const struct end_config *far_config, enum end_place place);
void end_pair_close(struct end *near, struct end *far);

int end_modify(struct end *end, const struct ibv_qp_attr *attr, int mask);
int end_move(struct end *end, enum ibv_qp_state state);
enum ibv_qp_state end_state(struct end *end);

int end_post_recv(struct end *end, uint64_t wr_id, const struct ibv_sge *sge, int num_sge);
/*
 * @wr: one request, its `next` is ignored. An address handle must belong to an end of this process.
 */
int end_post_send(struct end *end, const struct ibv_send_wr *wr);

/* Polls until @max completions have come or @ms have passed. Returns how many came. */
int end_poll(struct end *end, enum end_cq which, struct ibv_wc *wc, int max, int ms);
/* One completion within END_WAIT_MS: its status, or -1 if none came (@wc is then zeroed). */
int end_poll_one(struct end *end, enum end_cq which, struct ibv_wc *wc);
/* Polls for END_QUIET_MS. Returns how many completions came; none should. */
int end_poll_none(struct end *end, enum end_cq which);

/* Takes and acknowledges one asynchronous event; false if none came within @ms. */
bool end_event(struct end *end, struct end_event *event, int ms);
/* Takes events until one is @type (true) or none came for @ms (false). */
bool end_wait_event(struct end *end, enum ibv_event_type type, int ms);

/* The end's buffer: offsets and lengths in bytes. */
void end_poke(struct end *end, size_t offset, const void *data, size_t length);
void end_peek(struct end *end, size_t offset, void *data, size_t length);
void end_fill(struct end *end, size_t offset, int byte, size_t length);
/* Whether every byte of the range is @byte. */
bool end_is_filled(struct end *end, size_t offset, int byte, size_t length);

/* Registers [offset, offset + length) of the buffer once more; 0 or errno. */
int end_reg(struct end *end, size_t offset, size_t length, int access, bool other_pd,
	    struct end_key *key);
int end_dereg(struct end *end, int index);
/* A window of the end's domain at place @index, not bound; 0 or errno. */
int end_window(struct end *end, int index, enum ibv_mw_type type);
/*
 * Posts the bind of a window (signalled, wr_id 77) to [offset, offset + length) of the buffer
 * through @region. Returns the answer of the posting verb. *rkey gets the key that the bind asks
 * for.
 */
int end_bind(struct end *end, int index, const struct end_key *region, size_t offset, size_t length,
	     int access, uint32_t *rkey);
int end_window_free(struct end *end, int index);
/*
 * Takes pages of the buffer away under their registration, as truncating a file does; page-aligned.
 */
void end_vanish(struct end *end, size_t offset, size_t length);
/* qkey_viol_cntr of port 1 (0) or bad_pkey_cntr (1). */
uint32_t end_port_counter(struct end *end, int which);

/* Short forms of the requests that most tests send. */
struct ibv_sge end_sge(const struct end *end, size_t offset, uint32_t length);
struct ibv_send_wr end_wr(enum ibv_wr_opcode opcode, uint64_t wr_id, struct ibv_sge *sge,
			  int num_sge);
/* An address handle of @end (of this process) for @peer. */
struct ibv_ah *end_ah(struct end *end, const struct end_info *peer);

#endif
