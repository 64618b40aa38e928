/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A socket's life: rsocket(3), rbind(3), rlisten(3), raccept(3), rconnect(3), rshutdown(3), rclose(3). */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <rdma/rsocket.h>

#include "base/clock.h"
#include "base/sys.h"
#include "rsocket/bell.h"
#include "rsocket/config.h"
#include "rsocket/connect.h"
#include "rsocket/datagram.h"
#include "rsocket/listen.h"
#include "rsocket/service.h"
#include "rsocket/table.h"
#include "rsocket/wait.h"

/* How long rclose() waits for a peer that acknowledges nothing, unless SO_LINGER says otherwise. */
#define LINGER_NS 10000000000ull

/* Returns the socket of a call in *rs, in use. */
static int use(int socket, struct vb_rsocket **rs)
{
	*rs = vb_rs_get(socket);
	return *rs ? 0 : -EBADF;
}

static int done(struct vb_rsocket *rs, int socket, int err)
{
	if (rs)
		vb_rs_put(socket);
	return (int)vb_rs_answer(err);
}

static int open_stream_socket(struct vb_rsocket *rs)
{
	int err = vb_rs_open_channel(rs);

	if (err)
		return err;
	return rdma_create_id(rs->channel, &rs->id, rs, RDMA_PS_TCP) ? -errno : 0;
}

static bool is_served(int domain, int type, int protocol)
{
	if (domain != AF_INET && domain != AF_INET6 && domain != AF_IB)
		return false;
	if (type == SOCK_STREAM)
		return !protocol || protocol == IPPROTO_TCP;
	return type == SOCK_DGRAM && (!protocol || protocol == IPPROTO_UDP);
}

VB_EXPORT int rsocket(int domain, int type, int protocol)
{
	const int in_type = SOCK_NONBLOCK | SOCK_CLOEXEC;
	struct vb_rsocket *rs;
	int err;

	if (!is_served(domain, type & ~in_type, protocol))
		return (int)vb_rs_answer(-ENOTSUP);
	rs = vb_rs_alloc(domain, type & ~in_type);
	if (!rs)
		return (int)vb_rs_answer(-ENOMEM);
	rs->flags = type & SOCK_NONBLOCK ? (uint32_t)O_NONBLOCK : 0;
	rs->fd_flags = type & SOCK_CLOEXEC ? FD_CLOEXEC : 0;
	err = rs->type == SOCK_STREAM ? open_stream_socket(rs) : vb_datagram_open(rs);
	if (!err)
		err = vb_rs_enter(rs);
	if (!err)
		return rs->fd;
	vb_rs_free(rs);
	return (int)vb_rs_answer(err);
}

static int set_before_bind(struct vb_rsocket *rs)
{
	int on = 1;

	if (rs->options.on & VB_RS_REUSEADDR)
		rdma_set_option(rs->id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &on, sizeof(on));
	if (rs->family == AF_INET6 && rs->options.on & VB_RS_V6ONLY)
		rdma_set_option(rs->id, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &on, sizeof(on));
	return 0;
}

static int check_address(const struct vb_rsocket *rs, const struct sockaddr *addr, socklen_t length)
{
	size_t least = rs->family == AF_INET    ? sizeof(struct sockaddr_in)
		       : rs->family == AF_INET6 ? offsetof(struct sockaddr_in6, sin6_scope_id)
						: sizeof(sa_family_t);

	if (!addr || length < least || length > sizeof(rs->peer))
		return -EINVAL;
	return addr->sa_family == rs->family ? 0 : -EAFNOSUPPORT;
}

static int bind_stream(struct vb_rsocket *rs, const struct sockaddr *addr, socklen_t length)
{
	struct sockaddr_storage own = {0};

	if (vb_rs_state(rs) != VB_RS_IDLE)
		return -EINVAL;
	memcpy(&own, addr, length);
	set_before_bind(rs);
	if (rdma_bind_addr(rs->id, (struct sockaddr *)&own))
		return -errno;
	vb_rs_set_state(rs, VB_RS_BOUND);
	return 0;
}

typedef int with_address(struct vb_rsocket *rs, const struct sockaddr *addr, socklen_t length);

/* With the mutex of the socket, by its type. *rs is in use afterwards, or NULL. */
static int call_with_address(int socket, const struct sockaddr *addr, socklen_t length,
			     with_address *stream, with_address *datagram, struct vb_rsocket **rs)
{
	int err = use(socket, rs);

	if (err)
		return err;
	vb_mutex_take(&(*rs)->mutex, VB_ORDER_RS_SOCKET);
	err = check_address(*rs, addr, length);
	if (!err)
		err = (*rs)->datagram ? datagram(*rs, addr, length) : stream(*rs, addr, length);
	vb_mutex_release(&(*rs)->mutex);
	return err;
}

VB_EXPORT int rbind(int socket, const struct sockaddr *addr, socklen_t addrlen)
{
	struct vb_rsocket *rs;
	int err = call_with_address(socket, addr, addrlen, bind_stream, vb_datagram_bind, &rs);

	return done(rs, socket, err);
}

static int listen_locked(struct vb_rsocket *rs, int backlog)
{
	int err;

	if (vb_rs_state(rs) == VB_RS_LISTENING)
		return 0;
	if (vb_rs_state(rs) > VB_RS_LISTENING)
		return -EINVAL;
	err = rs->backlog ? 0 : vb_rs_backlog_open(rs);
	if (err)
		return err;
	if (rdma_listen(rs->id, backlog))
		return -errno;
	vb_rs_set_state(rs, VB_RS_LISTENING);
	return vb_rs_service_add(rs);
}

VB_EXPORT int rlisten(int socket, int backlog)
{
	struct vb_rsocket *rs;
	int err = use(socket, &rs);

	if (err)
		return done(NULL, socket, err);
	vb_mutex_take(&rs->mutex, VB_ORDER_RS_SOCKET);
	err = rs->datagram ? -EOPNOTSUPP : listen_locked(rs, backlog);
	vb_mutex_release(&rs->mutex);
	return done(rs, socket, err);
}

/* The oldest child that is connected. */
static struct vb_rsocket *pop_connected(struct vb_rsocket *rs)
{
	struct vb_rsocket *child;

	while ((child = vb_rs_backlog_pop(rs))) {
		if (vb_rs_state(child) == VB_RS_CONNECTED)
			return child;
		vb_rs_discard(child);
	}
	return NULL;
}

static int accept_one(struct vb_rsocket *rs, struct vb_rsocket **child)
{
	if (vb_rs_state(rs) != VB_RS_LISTENING)
		return -EINVAL;
	while (!(*child = pop_connected(rs))) {
		struct vb_rs_bell bell;
		int err, n = 0;

		if (vb_rs_is_nonblocking(rs, 0))
			return -EAGAIN;
		err = vb_rs_bell_hold(&bell);
		if (!err && !vb_rs_backlog_has(rs) && !vb_rs_is_closing(rs))
			n = vb_sys_poll_one(bell.fd, POLLIN, (int)vb_rs_config()->wake_ms);
		if (n < 0)
			err = -errno;
		vb_rs_bell_leave(&bell);
		if (vb_rs_is_closing(rs))
			err = -EBADF;
		if (err)
			return err;
	}
	return 0;
}

VB_EXPORT int raccept(int socket, struct sockaddr *addr, socklen_t *addrlen)
{
	struct vb_rsocket *rs, *child = NULL;
	int err = use(socket, &rs);

	if (err)
		return done(NULL, socket, err);
	err = rs->datagram ? -EOPNOTSUPP : accept_one(rs, &child);
	if (err)
		return done(rs, socket, err);
	vb_rs_put(socket);
	if (addr && addrlen)
		rgetpeername(child->fd, addr, addrlen);
	return child->fd;
}

static int connect_stream(struct vb_rsocket *rs, const struct sockaddr *addr, socklen_t length)
{
	enum vb_rs_state state = vb_rs_state(rs);

	if (vb_rs_is_opening(rs))
		return -EALREADY;
	if (state == VB_RS_CONNECTED)
		return -EISCONN;
	if (state != VB_RS_IDLE && state != VB_RS_BOUND)
		return state == VB_RS_FAILED && rs->error ? rs->error : -EINVAL;
	memset(&rs->peer, 0, sizeof(rs->peer));
	memcpy(&rs->peer, addr, length);
	if (state == VB_RS_IDLE)
		set_before_bind(rs);
	return vb_rs_connect_begin(rs);
}

/* The caller waits, or the service thread goes on. From then on that thread sees the end. */
static int connect_go_on(struct vb_rsocket *rs)
{
	int err;

	if (!vb_rs_is_nonblocking(rs, 0)) {
		err = vb_rs_connect_wait(rs);
		if (err)
			return err;
	}
	vb_mutex_take(&rs->mutex, VB_ORDER_RS_SOCKET);
	err = vb_rs_service_add(rs);
	vb_mutex_release(&rs->mutex);
	if (err)
		return err;
	return vb_rs_is_opening(rs) ? -EINPROGRESS : vb_rs_connect_wait(rs);
}

VB_EXPORT int rconnect(int socket, const struct sockaddr *addr, socklen_t addrlen)
{
	struct vb_rsocket *rs;
	int err =
		call_with_address(socket, addr, addrlen, connect_stream, vb_datagram_connect, &rs);

	if (!err && !rs->datagram)
		err = connect_go_on(rs);
	return done(rs, socket, err);
}

static bool is_sent(struct vb_rsocket *rs)
{
	return vb_stream_is_sent(&rs->stream);
}

/* Until the peer has everything, for a bounded time. */
static void linger(struct vb_rsocket *rs)
{
	uint64_t length = LINGER_NS;

	if (rs->options.linger.l_onoff)
		length = (uint64_t)rs->options.linger.l_linger * 1000000000ull;
	if (length)
		while (vb_rs_wait(rs, is_sent, vb_clock_ns() + length) == -EINTR)
			;
}

static int shutdown_stream(struct vb_rsocket *rs, int how)
{
	if (how != SHUT_RD && how != SHUT_WR && how != SHUT_RDWR)
		return -EINVAL;
	if (vb_rs_state(rs) == VB_RS_LISTENING) {
		vb_rs_bell_ring();
		return 0;
	}
	if (vb_rs_state(rs) != VB_RS_CONNECTED)
		return -ENOTCONN;
	vb_stream_shutdown(&rs->stream, how);
	vb_rs_bell_ring(); /* threads that read here find the end */
	if (how != SHUT_RD)
		linger(rs);
	return 0;
}

VB_EXPORT int rshutdown(int socket, int how)
{
	struct vb_rsocket *rs;
	int err = use(socket, &rs);

	if (err)
		return done(NULL, socket, err);
	err = rs->datagram ? 0 : shutdown_stream(rs, how);
	return done(rs, socket, err);
}

/* What was sent still goes out. What the peer sent and nobody read is lost. */
static void end_stream(struct vb_rsocket *rs)
{
	if (vb_rs_state(rs) != VB_RS_CONNECTED)
		return;
	vb_stream_shutdown(&rs->stream, SHUT_RDWR);
	linger(rs);
}

VB_EXPORT int rclose(int socket)
{
	struct vb_rsocket *rs;
	int err = use(socket, &rs);

	if (err) /* a child of fork(2) closes what it inherited */
		return (int)vb_rs_answer(vb_rs_forget(socket) ? 0 : err);
	if (!rs->datagram)
		end_stream(rs);
	vb_mutex_take(&rs->mutex, VB_ORDER_RS_SOCKET);
	vb_rs_service_remove(rs);
	vb_mutex_release(&rs->mutex);
	rs = vb_rs_remove(socket, 1);
	vb_rs_put(socket);
	if (!rs)
		return (int)vb_rs_answer(-EBADF);
	vb_rs_free(rs);
	return 0;
}
