/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Endpoints: what the tests of messages are made of. An endpoint is one end of a connection, a
 * queue pair with the buffer that it sends from and receives into. `struct resources` is what the
 * endpoints of a process share: the opened device, a protection domain, a completion queue.
 *
 * Two endpoints of one process:
 *
 *	resources_open(&r, 64, false);
 *	ep_open_on(&a, &r, NULL, NULL, 4096);
 *	ep_open_on(&b, &r, NULL, NULL, 4096);
 *	ep_link(&a, &b);
 *
 * One endpoint in each of two processes, with a socket between them (process.h):
 *
 *	resources_open(&r, 64, false);
 *	ep_open_on(&ep, &r, NULL, NULL, 4096);
 *	ep_exchange(&ep, sock);
 *
 * A pair that one thread conducts. Each has resources of its own, and the far one is here
 * (EP_HERE), or in a second copy of the program that takes requests over a socket (EP_APART). The
 * test describes what it expects once, and runs in both forms:
 *
 *	place = ep_main(argc, argv);
 *	config = ep_defaults(IBV_QPT_RC);
 *	ep_pair(&near, &far, &config, &config, place);
 *
 * What a test may want to see refused returns the errno of its verb. Everything else ends the test
 * on failure. One thread at a time uses an endpoint.
 */
#ifndef TESTS_SUPPORT_ENDPOINT_H
#define TESTS_SUPPORT_ENDPOINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <infiniband/verbs.h>

#include "support/completion.h"
#include "support/device.h"

enum {
	EP_PORT = 1,
	EP_QKEY = 0x11111111,
	EP_ACCESS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
		    IBV_ACCESS_REMOTE_ATOMIC,
	EP_MAX_SGE = 32,    /* scatter/gather entries that a post may carry to an endpoint apart */
	EP_MAX_POLLED = 64, /* completions that one poll may take */
	EP_EXTRA_MRS = 8,   /* regions that a test may add to an endpoint */
	EP_WINDOWS = 4,     /* windows that a test may add to an endpoint */
	EP_WAIT_MS = COMPLETION_WAIT_MS,
	EP_QUIET_MS = COMPLETION_QUIET_MS,
};

struct resources {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel; /* NULL unless asked for */
	struct ibv_cq *cq;                /* NULL if it was to have 0 entries */
	union ibv_gid gid;
	int gid_index;
	enum ibv_mtu mtu;
};

enum ep_place {
	EP_HERE,
	EP_APART,
};

enum ep_cq {
	EP_SEND_CQ,
	EP_RECV_CQ,
};

/* How an endpoint is made and connected. Fields that a verb takes have the verb's names. */
struct ep_config {
	enum ibv_qp_type type;
	struct ibv_qp_cap cap;
	uint64_t send_ops; /* IBV_QP_EX_WITH_...: an extended queue pair */
	uint8_t sq_sig_all;
	uint32_t mr_access;
	uint32_t qp_access_flags;
	uint32_t qkey;
	uint16_t pkey_index;
	uint8_t sgid_index; /* in its own GID table; of ep_open() only */
	uint32_t psn; /* its first one; 0: ep_open() takes 0xfffff0, others one after another */
	uint32_t mtu; /* 0: ep_open() takes 1024 bytes, others the most that both ports have */
	uint8_t max_rd_atomic, max_dest_rd_atomic;
	uint8_t min_rnr_timer, timeout, retry_cnt, rnr_retry;

	/* Of ep_open_on(). NULL: the completion queue of the resources; no shared receive queue. */
	struct ibv_cq *send_cq, *recv_cq;
	struct ibv_srq *srq;

	/* Of ep_open(). */
	uint32_t buf_len;
	uint32_t cqe;             /* of each of its two completion queues */
	uint32_t srq_wr, srq_sge; /* 0 requests: no shared receive queue */
	uint8_t srq_other_pd;     /* the shared receive queue belongs to another domain */
};

/* What the other end must know; sent as it is between processes of one host. */
struct peer {
	union ibv_gid gid;
	uint64_t addr;
	uint64_t length;
	uint32_t qpn;
	uint32_t psn;
	uint32_t rkey;
	uint32_t mtu; /* enum ibv_mtu */
};

struct endpoint {
	struct ep_config config;
	struct peer local;
	struct peer remote;    /* once connected */
	struct ibv_qp_cap cap; /* as the queue pair has it */
	uint32_t lkey;         /* of the buffer */
	size_t size;           /* of the buffer */

	enum ep_place place;
	int sock; /* to an endpoint apart */
	pid_t pid;

	/* Only valid for an endpoint that is here. */
	struct resources *resources;
	bool owns_resources; /* made by ep_open() */
	bool owns_buffer;
	struct ibv_context *context;
	struct ibv_pd *pd, *other_pd;
	struct ibv_cq *cq[2];
	struct ibv_srq *srq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	struct ibv_ah *ah; /* see ep_peer_ah() */
	struct ibv_mr *extra[EP_EXTRA_MRS];
	struct ibv_mw *window[EP_WINDOWS];
	uint8_t *buffer;
};

/* Resources. */
void resources_open(struct resources *resources, int cqe, bool with_channel);
/* From now on the address of endpoints is this one of the port's GIDs; the first one otherwise. */
void resources_use_gid(struct resources *resources, int gid_index);
void resources_close(struct resources *resources);
/* One message between two endpoints that are made for it and closed: everything works. */
void resources_try(struct resources *resources);

/* Opening. */
struct ep_config ep_defaults(enum ibv_qp_type type);
/*
 * A queue pair in INIT. `config` NULL: the defaults of RC; `buffer` NULL: a new one (page aligned,
 * zeroed).
 */
void ep_open_on(struct endpoint *ep, struct resources *resources, const struct ep_config *config,
		void *buffer, size_t size);
/* A queue pair in RESET with resources of its own: two completion queues and a second domain. */
void ep_open(struct endpoint *ep, const struct ep_config *config, enum ep_place place);
/* A test that has destroyed the queue pair or the region itself sets the pointer to NULL before. */
void ep_close(struct endpoint *ep);
/* A queue pair alone, in INIT. */
struct ibv_qp *ep_create_qp(struct resources *resources, const struct ep_config *config);
/* From RESET to INIT, which ep_create_qp() does, too. */
void ep_init_qp(struct ibv_qp *qp, const struct ep_config *config);

/* The first call of main() of a program with endpoints apart. Reads --two-processes. */
enum ep_place ep_main(int argc, char **argv);

/* Connecting. The attributes of all states up to RTS, for qp_step() and qp_bring_to(). */
struct ibv_qp_attr ep_attr(const struct ep_config *config, const struct peer *local,
			   const struct peer *remote);
/* Moves the queue pair step by step to @state, with @peer as its destination. */
int ep_bring_to(struct endpoint *ep, const struct peer *peer, enum ibv_qp_state state);
void ep_connect(struct endpoint *ep, const struct peer *peer);
/* Connects two new endpoints, or one with itself. */
void ep_link(struct endpoint *a, struct endpoint *b);
/* Both by way of RESET to RTS again, as after an error. */
void ep_relink(struct endpoint *a, struct endpoint *b);
/* Connects with the endpoint behind `sock`; both are in RTS on return. */
void ep_exchange(struct endpoint *ep, int sock);
/* A linked pair in one call: @near always here, @far at @place. */
void ep_pair(struct endpoint *near, struct endpoint *far, const struct ep_config *near_config,
	     const struct ep_config *far_config, enum ep_place place);
void ep_pair_close(struct endpoint *near, struct endpoint *far);

int ep_modify(struct endpoint *ep, const struct ibv_qp_attr *attr, int mask);
int ep_move(struct endpoint *ep, enum ibv_qp_state state);
enum ibv_qp_state ep_state(struct endpoint *ep);

/* A new address handle of @ep, which is here, for @peer. */
struct ibv_ah *ep_ah(struct endpoint *ep, const struct peer *peer);
/* The one for the endpoint that it is connected with; made once, and closed with it. */
struct ibv_ah *ep_peer_ah(struct endpoint *ep);

/* Posting, whole requests. @wr: one, its `next` is ignored; an address handle must be from here. */
int ep_post_send(struct endpoint *ep, const struct ibv_send_wr *wr);
int ep_post_recv(struct endpoint *ep, uint64_t wr_id, const struct ibv_sge *sge, int num_sge);
struct ibv_sge ep_sge(const struct endpoint *ep, size_t offset, uint32_t length);
/* A signalled request. */
struct ibv_send_wr ep_wr(enum ibv_wr_opcode opcode, uint64_t wr_id, struct ibv_sge *sge,
			 int num_sge);
/* Fills in where an RDMA or ATOMIC request goes; before operands, which are the caller's. */
void ep_target(struct ibv_send_wr *wr, uint64_t addr, uint32_t rkey);
/* Posts one and waits for its completion: its status, or -1 if none came. */
int ep_run(struct endpoint *ep, const struct ibv_send_wr *wr);

/* Posting, short forms. Offsets are into the local and the remote buffer. */
int ep_recv(struct endpoint *ep, uint64_t wr_id, size_t offset, size_t length);
int ep_send(struct endpoint *ep, uint64_t wr_id, size_t offset, size_t length, unsigned int flags);
int ep_write(struct endpoint *ep, uint64_t wr_id, size_t offset, size_t length,
	     size_t remote_offset, unsigned int flags);
int ep_read(struct endpoint *ep, uint64_t wr_id, size_t offset, size_t length, size_t remote_offset,
	    unsigned int flags);
int ep_fetch_add(struct endpoint *ep, uint64_t wr_id, size_t offset, size_t remote_offset,
		 uint64_t add, unsigned int flags);
int ep_compare_swap(struct endpoint *ep, uint64_t wr_id, size_t offset, size_t remote_offset,
		    uint64_t compare, uint64_t swap, unsigned int flags);

/* Completions: completion.h for an endpoint that is here, or these, for any. */
/* Polls until @max completions have come or @ms have passed. Returns how many came. */
int ep_poll(struct endpoint *ep, enum ep_cq which, struct ibv_wc *wc, int max, int ms);
/* One completion within EP_WAIT_MS: its status, or -1 if none came (@wc is then zeroed). */
int ep_poll_one(struct endpoint *ep, enum ep_cq which, struct ibv_wc *wc);
/* Polls for EP_QUIET_MS. Returns how many completions came; none should. */
int ep_poll_none(struct endpoint *ep, enum ep_cq which);

/* Asynchronous events of an endpoint of ep_open(). */
struct ep_event {
	int type;     /* an enum ibv_event_type, or -1: none came */
	bool own_qp;  /* element is the endpoint's queue pair */
	bool own_srq; /* element is its shared receive queue */
	bool own_cq[2];
};
/* Takes and acknowledges one; false if none came within @ms. */
bool ep_event(struct endpoint *ep, struct ep_event *event, int ms);
/* Takes events until one is @type (true) or none came for @ms (false). */
bool ep_wait_event(struct endpoint *ep, enum ibv_event_type type, int ms);

/* The buffer: offsets and lengths in bytes. */
void ep_poke(struct endpoint *ep, size_t offset, const void *data, size_t length);
void ep_peek(struct endpoint *ep, size_t offset, void *data, size_t length);
void ep_fill(struct endpoint *ep, size_t offset, int byte, size_t length);
/* Whether every byte of the range is @byte. */
bool ep_is_filled(struct endpoint *ep, size_t offset, int byte, size_t length);
/* Takes pages away under their registration, as truncating a file does; page-aligned. */
void ep_vanish(struct endpoint *ep, size_t offset, size_t length);

/* One memory region that a test added; index is for ep_dereg(). */
struct ep_key {
	int index;
	uint32_t lkey, rkey;
};
/* Registers [offset, offset + length) of the buffer once more; 0 or errno. */
int ep_reg(struct endpoint *ep, size_t offset, size_t length, int access, bool other_pd,
	   struct ep_key *key);
int ep_dereg(struct endpoint *ep, int index);
/* A window of its domain at place @index, not bound; 0 or errno. */
int ep_window(struct endpoint *ep, int index, enum ibv_mw_type type);
/*
 * Posts the bind of a window (signalled, wr_id 77) to [offset, offset + length) of the buffer
 * through @region. Returns the answer of the posting verb. *rkey gets the key that the bind asks
 * for.
 */
int ep_bind(struct endpoint *ep, int index, const struct ep_key *region, size_t offset,
	    size_t length, int access, uint32_t *rkey);
int ep_window_free(struct endpoint *ep, int index);

/* qkey_viol_cntr of its port (0) or bad_pkey_cntr (1). */
uint32_t ep_port_counter(struct endpoint *ep, int which);

#endif
