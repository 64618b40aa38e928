/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * An endpoint in another process: one request and one reply over a socket, each a fixed struct. A
 * function of endpoint.h sends the request; the other process calls the same function on an
 * endpoint of its own.
 */
#ifndef TESTS_SUPPORT_ENDPOINT_APART_H
#define TESTS_SUPPORT_ENDPOINT_APART_H

#include "support/endpoint.h"

#define EP_CHUNK 4096 /* bytes of a buffer in one message */

enum ep_verb {
	EP_OPEN,
	EP_CLOSE,
	EP_BRING_TO,
	EP_MODIFY,
	EP_STATE,
	EP_POST_RECV,
	EP_POST_SEND,
	EP_POLL,
	EP_EVENT,
	EP_POKE,
	EP_PEEK,
	EP_VANISH,
	EP_REG,
	EP_DEREG,
	EP_WINDOW,
	EP_BIND,
	EP_WINDOW_FREE,
	EP_COUNTER,
};

/* What the words a, b and c hold is in apart_serve(). */
struct ep_request {
	enum ep_verb verb;
	int32_t a, b, c;
	uint64_t offset, length;
	struct ep_config config;
	struct peer peer;
	struct ibv_qp_attr attr;
	struct ibv_send_wr wr;
	struct ibv_sge sge[EP_MAX_SGE];
	uint8_t data[EP_CHUNK];
};

struct ep_reply {
	int32_t result;
	struct endpoint opened;
	struct ep_key key;
	struct ep_event event;
	struct ibv_wc wc[EP_MAX_POLLED];
	uint8_t data[EP_CHUNK];
};

/* Starts the process of an endpoint and opens it there. */
void apart_open(struct endpoint *ep);
/* Closes it and waits for the end of its process. */
void apart_close(struct endpoint *ep);

void apart_ask(struct endpoint *ep, const struct ep_request *request, struct ep_reply *reply);
/* For requests whose answer is a number. */
int apart_do(struct endpoint *ep, const struct ep_request *request);

#endif
