/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * XRC for tests: a domain with one shared receive queue (its own protection domain, CQ and buffer),
 * receive queue pairs of the domain, and senders. Every function ends the test on failure.
 */
#ifndef TESTS_SUPPORT_XRC_H
#define TESTS_SUPPORT_XRC_H

#include "support/endpoint.h"

enum { XRC_BUFFER = 65536 };

/* A shared receive queue with the objects that it needs. */
struct xrc_queue {
	struct resources *resources;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	struct ibv_mr *mr;
	unsigned char *buffer;
	uint32_t number;
};

/* What a sender must know of the queue. */
struct xrc_target {
	uint64_t addr;
	uint32_t rkey;
	uint32_t number;
};

/* The domain of the file `path` (O_CREAT), or a private one (NULL). */
struct ibv_xrcd *xrc_domain(struct ibv_context *context, const char *path, int oflags);
/* For a small queue of the resources' domain and completion queue. */
struct ibv_srq_init_attr_ex xrc_srq_attr(const struct resources *resources, struct ibv_xrcd *xrcd);
void xrc_queue_open(struct xrc_queue *queue, struct resources *resources, struct ibv_xrcd *xrcd);
void xrc_queue_close(struct xrc_queue *queue);
struct xrc_target xrc_target(const struct xrc_queue *queue);
void xrc_post(struct xrc_queue *queue, uint64_t wr_id, size_t offset, uint32_t length);

/* Makes a receive queue pair in RESET. Of its attributes only the domain is set. */
struct ibv_qp *xrc_receiver(struct ibv_context *context, struct ibv_xrcd *xrcd);
struct ibv_qp *xrc_receiver_open(struct ibv_context *context, struct ibv_xrcd *xrcd, uint32_t qpn);
/* Opens a side whose queue pair sends, in INIT. It uses the side's buffer. */
void xrc_sender_open(struct endpoint *ep, struct resources *resources);
/* The address of `qp` (a receiver, in any state) for its sender. */
struct peer xrc_peer(const struct resources *resources, const struct ibv_qp *qp);
/* Brings the receiver from RESET to RTS. */
void xrc_receiver_connect(struct resources *resources, struct ibv_qp *qp,
			  const struct peer *sender);

/*
 * Posts one request of the sender, signalled, wr_id 1: SEND, WRITE (with immediate), READ, or
 * ATOMIC of 8 bytes. Returns 0 or errno.
 */
int xrc_request(struct endpoint *ep, enum ibv_wr_opcode opcode, const struct xrc_target *target,
		uint32_t length);

#endif
