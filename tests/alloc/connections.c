/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Promise: an allocation that fails while ids are made, connected and ended harms that call or that
 * connection and nothing else. One process listens, the other one connects; a message goes each way.
 *
 * usage: see loop.h
 */
#include <errno.h>
#include <string.h>

#include <rdma/rdma_verbs.h>

#include "alloc/loop.h"
#include "cm/cm.h"
#include "support/check.h"
#include "support/completion.h"

enum { PORT = 7245, BYTES = 64, TIMEOUT_MS = 2000 };

struct end {
	struct rdma_event_channel *channel;
	struct rdma_cm_id *listener, *id;
	struct ibv_mr *mr;
};

static char memory[2 * BYTES];

static bool call(struct side *s, const char *step, int answer)
{
	return side_call(s, step, answer ? errno ? errno : -1 : 0);
}

/* The next event, which should be this one. *id: that of a request. */
static bool event(struct side *s, struct end *e, const char *step, enum rdma_cm_event_type type,
		  struct rdma_cm_id **id)
{
	struct rdma_cm_event *ev;
	enum rdma_cm_event_type came;
	int status;

	CHECK(e->channel);
	if (!side_await(s, step, e->channel->fd))
		return false;
	if (!call(s, "get_cm_event", rdma_get_cm_event(e->channel, &ev)))
		return false;
	came = ev->event;
	status = ev->status;
	if (id && came == type)
		*id = ev->id;
	CHECK_ZERO(rdma_ack_cm_event(ev));
	return came == type || side_event(s, step, (int)came, status);
}

static bool make_qp(struct side *s, struct end *e)
{
	struct ibv_qp_init_attr attr = {
		.cap = {.max_send_wr = 2, .max_recv_wr = 2, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
	};

	CHECK(e->id);
	if (!call(s, "create_qp", rdma_create_qp(e->id, NULL, &attr)))
		return false;
	e->mr = rdma_reg_msgs(e->id, memory, sizeof(memory));
	return side_found(s, "reg_msgs", e->mr) &&
	       call(s, "post_recv", rdma_post_recv(e->id, NULL, memory + BYTES, BYTES, e->mr));
}

static bool channel_make(struct side *s, struct end *e)
{
	e->channel = rdma_create_event_channel();
	return side_found(s, "create_event_channel", e->channel);
}

static bool listen_up(struct side *s, struct end *e)
{
	return channel_make(s, e) &&
	       call(s, "create_id", rdma_create_id(e->channel, &e->listener, NULL, RDMA_PS_TCP)) &&
	       call(s, "bind_addr", rdma_bind_addr(e->listener, cm_address(OWN_V4, PORT))) &&
	       call(s, "listen", rdma_listen(e->listener, 4));
}

static bool accept_one(struct side *s, struct end *e)
{
	struct rdma_conn_param param = {.retry_count = 7};

	return event(s, e, "connect request", RDMA_CM_EVENT_CONNECT_REQUEST, &e->id) &&
	       make_qp(s, e) && call(s, "accept", rdma_accept(e->id, &param)) &&
	       event(s, e, "established, of the listener", RDMA_CM_EVENT_ESTABLISHED, NULL);
}

static bool connect_one(struct side *s, struct end *e)
{
	struct rdma_conn_param param = {.retry_count = 7};

	return channel_make(s, e) &&
	       call(s, "create_id", rdma_create_id(e->channel, &e->id, NULL, RDMA_PS_TCP)) &&
	       call(s, "resolve_addr",
		    rdma_resolve_addr(e->id, NULL, cm_address(OWN_V4, PORT), TIMEOUT_MS)) &&
	       event(s, e, "address resolved", RDMA_CM_EVENT_ADDR_RESOLVED, NULL) &&
	       call(s, "resolve_route", rdma_resolve_route(e->id, TIMEOUT_MS)) &&
	       event(s, e, "route resolved", RDMA_CM_EVENT_ROUTE_RESOLVED, NULL) && make_qp(s, e) &&
	       call(s, "connect", rdma_connect(e->id, &param)) &&
	       event(s, e, "established", RDMA_CM_EVENT_ESTABLISHED, NULL);
}

static bool message(struct side *s, struct end *e)
{
	struct ibv_wc wc = {0};
	bool ok;
	int came;

	CHECK(e->id);
	memset(memory, 'm', BYTES);
	ok = call(s, "post_send",
		  rdma_post_send(e->id, NULL, memory, BYTES, e->mr, IBV_SEND_SIGNALED));
	came = ok ? completion_poll(e->id->send_cq, &wc, 1, REQUEST_MS) : 0;
	ok = ok && side_completion(s, "request", came, &wc);
	if (!side_both(s, ok, NULL, NULL, 0))
		return false;
	came = completion_poll(e->id->recv_cq, &wc, 1, REQUEST_MS);
	ok = side_completion(s, "receive", came, &wc);
	if (ok)
		CHECK(!memcmp(memory, memory + BYTES, BYTES));
	return side_both(s, ok, NULL, NULL, 0);
}

/* The connecting side ends it, and both are told. */
static bool part(struct side *s, struct end *e)
{
	if (!s->index && !call(s, "disconnect", rdma_disconnect(e->id)))
		return false;
	if (!event(s, e, "disconnected", RDMA_CM_EVENT_DISCONNECTED, NULL))
		return false;
	return !s->index || call(s, "disconnect", rdma_disconnect(e->id));
}

static void leave(struct side *s, struct end *e)
{
	if (e->mr)
		call(s, "dereg_mr", rdma_dereg_mr(e->mr));
	if (e->id && e->id->qp)
		rdma_destroy_qp(e->id);
	if (e->id)
		call(s, "destroy_id", rdma_destroy_id(e->id));
	if (e->listener)
		call(s, "destroy_id, of the listener", rdma_destroy_id(e->listener));
	if (e->channel)
		rdma_destroy_event_channel(e->channel);
}

static bool life(struct side *s)
{
	struct end e = {0};
	bool ok = s->index ? listen_up(s, &e) : true;

	ok = side_both(s, ok, NULL, NULL, 0);
	ok = ok && (s->index ? accept_one(s, &e) : connect_one(s, &e));
	ok = side_both(s, ok, NULL, NULL, 0);
	ok = ok && message(s, &e);
	if (ok)
		ok = side_both(s, part(s, &e), NULL, NULL, 0);
	leave(s, &e);
	return side_both(s, side_well(s), NULL, NULL, 0) && ok;
}

static const struct scenario scenarios[] = {
	{"two processes, connection", 2, NULL, life, 0, 0, false, false},
	{"acquainted processes, connection", 2, NULL, life, 0, 0, true, false},
	{.name = NULL},
};

int main(int argc, char **argv)
{
	cm_network();
	return loop_main(argc, argv, scenarios);
}
