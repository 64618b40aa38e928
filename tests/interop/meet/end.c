/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* One end of a connection: address, route, queue pair, events, private data. */
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "meet.h"

enum { MS = 5000, GRH = 40 };

void fail(const char *format, ...)
{
	va_list args;

	printf("FAILED: ");
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf("\n");
	fflush(stdout);
	_Exit(1);
}

void check(bool right, const char *what)
{
	if (!right)
		fail("%s (errno %d, %s)", what, errno, strerror(errno));
}

static struct rdma_addrinfo *lookup(const char *host, const struct options *options,
				    enum rdma_port_space ps, int flags)
{
	struct rdma_addrinfo hints = {.ai_flags = flags, .ai_port_space = ps};
	struct rdma_addrinfo *found;

	check(!rdma_getaddrinfo(host, options->port, &hints, &found), "rdma_getaddrinfo");
	return found;
}

static void create(struct end *end, enum rdma_port_space ps, struct rdma_cm_id **id)
{
	if (!end->channel)
		end->channel = rdma_create_event_channel();
	check(end->channel, "rdma_create_event_channel");
	check(!rdma_create_id(end->channel, id, NULL, ps), "rdma_create_id");
}

void listen_at(struct end *end, const struct options *options, enum rdma_port_space ps)
{
	struct rdma_addrinfo *own = lookup(options->bind, options, ps, RAI_PASSIVE);

	create(end, ps, &end->listener);
	check(!rdma_bind_addr(end->listener, own->ai_src_addr), "rdma_bind_addr");
	check(!rdma_listen(end->listener, 4), "rdma_listen");
	rdma_freeaddrinfo(own);
}

void resolve(struct end *end, const struct options *options, enum rdma_port_space ps)
{
	struct rdma_addrinfo *peer = lookup(options->host, options, ps, 0);

	create(end, ps, &end->id);
	check(!rdma_resolve_addr(end->id, NULL, peer->ai_dst_addr, MS), "rdma_resolve_addr");
	pass(end, RDMA_CM_EVENT_ADDR_RESOLVED);
	check(!rdma_resolve_route(end->id, MS), "rdma_resolve_route");
	pass(end, RDMA_CM_EVENT_ROUTE_RESOLVED);
	rdma_freeaddrinfo(peer);
	queue_pair(end);
}

struct rdma_cm_event *next(struct end *end, enum rdma_cm_event_type type)
{
	struct pollfd waiting = {.fd = end->channel->fd, .events = POLLIN};
	struct rdma_cm_event *event;

	if (poll(&waiting, 1, PATIENCE_MS) != 1)
		fail("no event; %s is awaited", rdma_event_str(type));
	check(!rdma_get_cm_event(end->channel, &event), "rdma_get_cm_event");
	if (event->event != type)
		fail("%s, status %d, instead of %s", rdma_event_str(event->event), event->status,
		     rdma_event_str(type));
	return event;
}

int pass(struct end *end, enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event = next(end, type);
	int status = event->status;

	rdma_ack_cm_event(event);
	return status;
}

void queue_pair(struct end *end)
{
	struct ibv_qp_init_attr attr = {
		.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = end->id->qp_type,
		.sq_sig_all = 1,
	};

	check(!rdma_create_qp(end->id, end->id->pd, &attr), "rdma_create_qp");
	end->memory = calloc(2, MESSAGE_BYTES + GRH);
	end->mr = ibv_reg_mr(end->id->pd, end->memory, 2 * (size_t)(MESSAGE_BYTES + GRH),
			     IBV_ACCESS_LOCAL_WRITE);
	check(end->mr, "ibv_reg_mr");
	post_receive(end);
}

void request(struct end *end)
{
	struct rdma_cm_event *event = next(end, RDMA_CM_EVENT_CONNECT_REQUEST);
	const bool datagrams = event->id->qp_type == IBV_QPT_UD;
	const struct rdma_conn_param *conn = &event->param.conn;

	check(event->listen_id == end->listener, "the request names its listener");
	end->id = event->id;
	if (datagrams) {
		check_private_data(event->param.ud.private_data, event->param.ud.private_data_len,
				   180, ASK_BYTES, 'a');
	} else {
		check_private_data(conn->private_data, conn->private_data_len, 56, ASK_BYTES, 'a');
		check(conn->responder_resources == 3 && conn->initiator_depth == 2,
		      "the depths are the initiator's, as this side sees them");
		check(conn->retry_count == 6 && conn->rnr_retry_count == 5 &&
			      conn->flow_control == 1,
		      "the counts are the initiator's");
	}
	rdma_ack_cm_event(event);
	queue_pair(end);
}

void leave(struct end *end)
{
	if (end->ah)
		ibv_destroy_ah(end->ah);
	if (end->id && end->id->qp)
		rdma_destroy_qp(end->id);
	if (end->mr)
		check(!ibv_dereg_mr(end->mr), "ibv_dereg_mr");
	free(end->memory);
	if (end->id)
		check(!rdma_destroy_id(end->id), "rdma_destroy_id");
	if (end->listener)
		check(!rdma_destroy_id(end->listener), "rdma_destroy_id of the listener");
	if (end->channel)
		rdma_destroy_event_channel(end->channel);
	memset(end, 0, sizeof(*end));
}

void private_data(uint8_t *out, unsigned int bytes, uint8_t seed)
{
	for (unsigned int i = 0; i < bytes; i++)
		out[i] = (uint8_t)(seed + 7 * i) | 1; /* never 0, which is the padding */
}

void check_private_data(const void *data, unsigned int length, unsigned int padded,
			unsigned int bytes, uint8_t seed)
{
	uint8_t wanted[256] = {0};

	if (length != padded)
		fail("%u bytes of private data instead of %u", length, padded);
	private_data(wanted, bytes, seed);
	check(!memcmp(data, wanted, padded), "the private data is the peer's, and zeros");
}
