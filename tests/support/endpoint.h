/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * One end of a connection as tests use it: device, protection domain, completion queue, a queue
 * pair with its buffer, and the data by which two ends find each other.
 *
 * Every function ends the test on failure, printing the completion (status,
 * opcode, vendor_err) where there is one.
 */
#ifndef TESTS_SUPPORT_ENDPOINT_H
#define TESTS_SUPPORT_ENDPOINT_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "support/completion.h"
#include "support/device.h"

enum { ENDPOINT_PORT = 1, ENDPOINT_QKEY = 0x11111111 };
enum {
	ENDPOINT_ALL_ACCESS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			      IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC
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

/* Device-wide objects. The channel is NULL unless asked for. */
struct endpoint {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	union ibv_gid gid;
	int gid_index;
	enum ibv_mtu mtu;
};

/* How a queue pair is made and connected; qp_settings_default() fills it. */
struct qp_settings {
	enum ibv_qp_type type;
	struct ibv_cq *send_cq; /* NULL: the endpoint's */
	struct ibv_cq *recv_cq; /* NULL: the endpoint's */
	struct ibv_srq *srq;
	struct ibv_qp_cap cap;
	unsigned int access;
	uint64_t send_ops; /* IBV_QP_EX_WITH_...: an extended queue pair */
	bool signal_all;
	uint8_t timeout;
	uint8_t retry_count;
	uint8_t rnr_retry;
	uint8_t min_rnr_timer;
	uint8_t rd_atomic;
};

/* A queue pair with one registered buffer, and its peer once connected. */
struct side {
	struct endpoint *endpoint;
	struct qp_settings settings;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	unsigned char *buffer;
	size_t size;
	bool owns_buffer;
	struct ibv_ah *ah; /* UD only */
	struct peer local;
	struct peer remote;
};

void endpoint_open(struct endpoint *endpoint, int cqe, bool with_channel);
void endpoint_close(struct endpoint *endpoint);

void qp_settings_default(struct qp_settings *settings, enum ibv_qp_type type);
/* A queue pair in INIT. */
struct ibv_qp *qp_create(struct endpoint *endpoint, const struct qp_settings *settings);
void qp_to_init(struct ibv_qp *qp, const struct qp_settings *settings);
void qp_to_rtr(struct ibv_qp *qp, const struct qp_settings *settings, const struct peer *local,
	       const struct peer *remote, int gid_index);
void qp_to_rts(struct ibv_qp *qp, const struct qp_settings *settings, const struct peer *local);
void qp_to_state(struct ibv_qp *qp, enum ibv_qp_state state);
enum ibv_qp_state qp_state(struct ibv_qp *qp);

/* `buffer` NULL: allocates one (page aligned, zeroed). `settings` NULL: the defaults of RC. */
void side_open(struct side *side, struct endpoint *endpoint, const struct qp_settings *settings,
	       void *buffer, size_t size);
/* Moves the queue pair to RTR and RTS; for UD also makes the address handle. */
void side_connect(struct side *side, const struct peer *remote);
/*
 * Exchanges peer data over `sock`, connects, and meets the other side, so that both are in RTS on
 * return.
 */
void side_exchange(struct side *side, int sock);
void side_close(struct side *side);

/* Two sides within this process. */
void sides_connect(struct side *a, struct side *b);

/*
 * Post work requests on a side. Offsets are into the local and the remote buffer. Return the answer
 * of ibv_post_*.
 */
int post_receive(struct side *side, uint64_t wr_id, size_t offset, size_t length);
int post_send(struct side *side, uint64_t wr_id, size_t offset, size_t length, unsigned int flags);
int post_write(struct side *side, uint64_t wr_id, size_t offset, size_t length,
	       size_t remote_offset, unsigned int flags);
int post_read(struct side *side, uint64_t wr_id, size_t offset, size_t length, size_t remote_offset,
	      unsigned int flags);
int post_fetch_add(struct side *side, uint64_t wr_id, size_t offset, size_t remote_offset,
		   uint64_t add, unsigned int flags);
int post_compare_swap(struct side *side, uint64_t wr_id, size_t offset, size_t remote_offset,
		      uint64_t compare, uint64_t swap, unsigned int flags);

#endif
