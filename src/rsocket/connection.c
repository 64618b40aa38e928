/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How a connection is made: address, route, queue pair, request, answer. Each step is an event of
 * the connection manager, taken by whoever looks first: the caller that waits, or the service
 * thread.
 */
#include "rsocket/connect.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

#include "base/clock.h"
#include "base/sys.h"
#include "rsocket/bell.h"
#include "rsocket/config.h"
#include "rsocket/listen.h"
#include "rsocket/service.h"

enum {
	FIRST_TIMEOUT_MS = 1000,
	MOST_ATTEMPTS = 6,
	RETRIES = 7,
};

static void resolve_address(struct vb_rsocket *rs)
{
	struct sockaddr *to = (struct sockaddr *)&rs->peer;

	vb_rs_set_state(rs, VB_RS_RESOLVING_ADDRESS);
	if (rdma_resolve_addr(rs->id, NULL, to, rs->timeout_ms))
		vb_rs_fail(rs, -errno);
}

static void resolve_route(struct vb_rsocket *rs)
{
	struct vb_rs_options *o = &rs->options;
	int failed;

	vb_rs_set_state(rs, VB_RS_RESOLVING_ROUTE);
	if (o->on & VB_RS_TOS_SET)
		rdma_set_option(rs->id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &o->tos, 1);
	if (o->route)
		failed = rdma_set_option(rs->id, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, o->route,
					 o->route_size);
	else
		failed = rdma_resolve_route(rs->id, rs->timeout_ms);
	if (failed)
		vb_rs_fail(rs, -errno);
}

/* A step took too long: once more, with twice the time. Anything else is final. */
static void resolve_failed(struct vb_rsocket *rs, int status)
{
	if (status != -ETIMEDOUT && status != -EAGAIN) {
		vb_rs_fail(rs, status ? status : -EHOSTUNREACH);
	} else if (++rs->attempts > MOST_ATTEMPTS) {
		vb_rs_fail(rs, -ETIMEDOUT);
	} else {
		rs->timeout_ms *= 2;
		if (vb_rs_state(rs) == VB_RS_RESOLVING_ADDRESS)
			resolve_address(rs);
		else
			resolve_route(rs);
	}
}

static void request(struct vb_rsocket *rs)
{
	uint8_t hello[VB_RS_HELLO_SIZE];
	struct rdma_conn_param param = {
		.private_data = hello,
		.private_data_len = sizeof(hello),
		.flow_control = 1,
		.retry_count = RETRIES,
		.rnr_retry_count = RETRIES,
	};
	int err = vb_rs_open_stream(rs, hello);

	if (err) {
		vb_rs_fail(rs, err);
		return;
	}
	vb_rs_set_state(rs, VB_RS_CONNECTING);
	if (rdma_connect(rs->id, &param))
		vb_rs_fail(rs, -errno);
}

static void established(struct vb_rsocket *rs, const struct rdma_cm_event *event)
{
	const struct rdma_conn_param *param = &event->param.conn;
	struct vb_rs_hello hello;
	int err = 0;

	if (vb_rs_state(rs) == VB_RS_CONNECTING) {
		err = vb_rs_hello_decode(&hello, param->private_data, param->private_data_len);
		if (!err)
			err = vb_stream_begin(&rs->stream, &hello);
	} else {
		hello = rs->stream.peer; /* of the request */
		err = vb_stream_begin(&rs->stream, &hello);
	}
	if (err) {
		rdma_disconnect(rs->id);
		vb_rs_fail(rs, err);
		return;
	}
	if (vb_rs_state(rs) == VB_RS_ACCEPTING) {
		vb_rs_set_state(rs, VB_RS_CONNECTED);
		vb_rs_backlog_push(rs);
	} else {
		vb_rs_set_state(rs, VB_RS_CONNECTED);
	}
	vb_rs_service_keepalive(rs);
}

/* The other side, or the way to it, ends what is under way or there. */
static void ended(struct vb_rsocket *rs, int error)
{
	if (vb_rs_is_opening(rs)) {
		bool accepting = vb_rs_state(rs) == VB_RS_ACCEPTING;

		vb_rs_fail(rs, error ? error : -ECONNRESET);
		/* Nobody has this number yet: accept(2) finds the socket, and its first use fails. */
		if (accepting)
			vb_rs_backlog_push(rs);
	} else if (vb_rs_state(rs) == VB_RS_CONNECTED) {
		vb_stream_lost(&rs->stream, error);
	}
}

static void handle(struct vb_rsocket *rs, struct rdma_cm_event *event)
{
	enum vb_rs_state state = vb_rs_state(rs);

	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		if (state == VB_RS_RESOLVING_ADDRESS)
			resolve_route(rs);
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		if (state == VB_RS_RESOLVING_ROUTE)
			request(rs);
		break;
	case RDMA_CM_EVENT_ADDR_ERROR:
	case RDMA_CM_EVENT_ROUTE_ERROR:
		resolve_failed(rs, event->status);
		break;
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		if (state == VB_RS_LISTENING)
			vb_rs_request(rs, event);
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		if (state == VB_RS_CONNECTING || state == VB_RS_ACCEPTING)
			established(rs, event);
		break;
	case RDMA_CM_EVENT_REJECTED:
		ended(rs, -ECONNREFUSED);
		break;
	case RDMA_CM_EVENT_UNREACHABLE:
	case RDMA_CM_EVENT_CONNECT_ERROR:
		ended(rs, event->status < 0 ? event->status : -ETIMEDOUT);
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		ended(rs, 0);
		break;
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		ended(rs, -ENODEV);
		break;
	default:
		break;
	}
}

void vb_rs_step(struct vb_rsocket *rs)
{
	struct rdma_cm_event *event;
	bool any = false;

	vb_mutex_take(&rs->mutex, VB_ORDER_RS_SOCKET);
	while (!vb_rs_is_closing(rs) && !rdma_get_cm_event(rs->channel, &event)) {
		handle(rs, event);
		rdma_ack_cm_event(event);
		any = true;
	}
	vb_mutex_release(&rs->mutex);
	if (any)
		vb_rs_bell_ring();
}

int vb_rs_connect_begin(struct vb_rsocket *rs)
{
	rs->attempts = 1;
	rs->timeout_ms = FIRST_TIMEOUT_MS;
	resolve_address(rs);
	return vb_rs_state(rs) == VB_RS_FAILED ? rs->error : 0;
}

static int outcome(struct vb_rsocket *rs)
{
	if (vb_rs_is_closing(rs))
		return -EBADF;
	if (vb_rs_state(rs) == VB_RS_CONNECTED)
		return 0;
	return rs->error ? rs->error : -ECONNREFUSED;
}

int vb_rs_connect_wait(struct vb_rsocket *rs)
{
	struct vb_rs_bell bell;
	int wake = (int)vb_rs_config()->wake_ms;

	while (vb_rs_is_opening(rs) && !vb_rs_is_closing(rs)) {
		int n = 0, err = vb_rs_bell_hold(&bell);
		struct pollfd fds[] = {{.fd = rs->fd, .events = POLLIN},
				       {.fd = bell.fd, .events = POLLIN}};

		if (!err && vb_rs_is_opening(rs) && !vb_rs_is_closing(rs))
			n = vb_sys_poll(fds, 2, wake);
		if (n < 0)
			err = -errno;
		vb_rs_bell_leave(&bell);
		if (err)
			return err;
		vb_rs_step(rs);
	}
	return outcome(rs);
}
