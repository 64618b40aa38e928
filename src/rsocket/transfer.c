/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Reading and writing: rsend(3), rrecv(3) and those that are said by them. */
#include <errno.h>
#include <limits.h>
#include <string.h>

#include <rdma/rsocket.h>

#include "rsocket/connect.h"
#include "rsocket/datagram.h"
#include "rsocket/iomap.h"
#include "rsocket/table.h"
#include "rsocket/wait.h"

/* One call's arguments. */
struct call {
	struct vb_rsocket *rs;
	const struct iovec *iov;
	int count;
	int flags;
};

/* A stream that can carry data, or why there is none. */
static int connected(struct vb_rsocket *rs, int flags)
{
	if (vb_rs_state(rs) == VB_RS_CONNECTED)
		return 0;
	if (vb_rs_is_opening(rs)) {
		if (!vb_rs_is_nonblocking(rs, flags))
			return vb_rs_connect_wait(rs);
		vb_rs_step(rs);
		return vb_rs_is_opening(rs) ? -EAGAIN : connected(rs, flags);
	}
	if (vb_rs_state(rs) == VB_RS_FAILED && rs->error)
		return rs->error;
	return -ENOTCONN;
}

static size_t size_of(const struct call *c)
{
	size_t sum = 0;

	if (c->count == 1)
		return c->iov->iov_len;
	for (int i = 0; i < c->count; i++)
		sum += c->iov[i].iov_len;
	return sum;
}

static ssize_t send_stream(const struct call *c)
{
	struct vb_rsocket *rs = c->rs;
	size_t done = 0, size = size_of(c);
	ssize_t n = connected(rs, c->flags);

	if (n)
		return n;
	for (;;) {
		n = vb_stream_send(&rs->stream, c->iov, c->count, done);
		if (n == -EAGAIN && vb_rs_progress(rs))
			n = vb_stream_send(&rs->stream, c->iov, c->count, done);
		if (n >= 0) {
			done += (size_t)n;
			if (done == size)
				return (ssize_t)done;
			continue;
		}
		if (n != -EAGAIN)
			break;
		__atomic_add_fetch(&rs->write_full, 1, __ATOMIC_RELAXED);
		if (vb_rs_is_nonblocking(rs, c->flags))
			break;
		n = vb_rs_wait(rs, vb_rs_can_send, 0);
		if (n)
			break;
	}
	return done ? (ssize_t)done : n;
}

static ssize_t receive_stream(const struct call *c)
{
	struct vb_rsocket *rs = c->rs;
	bool peek = c->flags & MSG_PEEK;
	size_t done = 0, size = size_of(c);
	ssize_t n = connected(rs, c->flags);

	if (n || !size)
		return n;
	if (!(c->flags & MSG_WAITALL))
		size = 1;
	do {
		n = vb_stream_receive(&rs->stream, c->iov, c->count, done, peek);
		if (n == -EAGAIN && vb_rs_progress(rs))
			n = vb_stream_receive(&rs->stream, c->iov, c->count, done, peek);
		if (n > 0) {
			done += (size_t)n;
			continue;
		}
		if (n != -EAGAIN || vb_rs_is_nonblocking(rs, c->flags))
			break;
		n = vb_rs_wait(rs, vb_rs_can_receive, 0);
		if (n)
			break;
	} while (done < size && !peek);
	return done ? (ssize_t)done : n;
}

static ssize_t send_datagram(const struct call *c, const struct sockaddr *to, socklen_t length)
{
	for (;;) {
		ssize_t n = vb_datagram_send(c->rs, c->iov, c->count, to, length);

		if (n == -EAGAIN && vb_rs_progress(c->rs))
			n = vb_datagram_send(c->rs, c->iov, c->count, to, length);
		if (n != -EAGAIN || vb_rs_is_nonblocking(c->rs, c->flags))
			return n;
		n = vb_rs_wait(c->rs, vb_rs_can_send, 0);
		if (n)
			return n;
	}
}

static ssize_t receive_datagram(const struct call *c, struct sockaddr *from, socklen_t *length)
{
	bool peek = c->flags & MSG_PEEK;

	for (;;) {
		ssize_t n = vb_datagram_receive(c->rs, c->iov, c->count, peek, from, length);

		if (n == -EAGAIN && vb_rs_progress(c->rs))
			n = vb_datagram_receive(c->rs, c->iov, c->count, peek, from, length);
		if (n != -EAGAIN || vb_rs_is_nonblocking(c->rs, c->flags))
			return n;
		n = vb_rs_wait(c->rs, vb_rs_can_receive, 0);
		if (n)
			return n;
	}
}

static ssize_t send_call(int socket, const struct iovec *iov, int count, int flags,
			 const struct sockaddr *to, socklen_t length)
{
	struct call c = {vb_rs_get(socket), iov, count, flags};
	ssize_t n;

	if (!c.rs)
		return vb_rs_answer(-EBADF);
	n = c.rs->datagram ? send_datagram(&c, to, length) : send_stream(&c);
	vb_rs_put(socket);
	return vb_rs_answer(n);
}

static ssize_t receive_call(int socket, const struct iovec *iov, int count, int flags,
			    struct sockaddr *from, socklen_t *length)
{
	struct call c = {vb_rs_get(socket), iov, count, flags};
	ssize_t n;

	if (!c.rs)
		return vb_rs_answer(-EBADF);
	n = c.rs->datagram ? receive_datagram(&c, from, length) : receive_stream(&c);
	vb_rs_put(socket);
	return vb_rs_answer(n);
}

VB_EXPORT ssize_t rsend(int socket, const void *buf, size_t len, int flags)
{
	struct iovec iov = {(void *)buf, len};

	return send_call(socket, &iov, 1, flags, NULL, 0);
}

VB_EXPORT ssize_t rrecv(int socket, void *buf, size_t len, int flags)
{
	struct iovec iov = {buf, len};

	return receive_call(socket, &iov, 1, flags, NULL, NULL);
}

VB_EXPORT ssize_t rsendto(int socket, const void *buf, size_t len, int flags,
			  const struct sockaddr *dest_addr, socklen_t addrlen)
{
	struct iovec iov = {(void *)buf, len};

	return send_call(socket, &iov, 1, flags, dest_addr, addrlen);
}

VB_EXPORT ssize_t rrecvfrom(int socket, void *buf, size_t len, int flags, struct sockaddr *src_addr,
			    socklen_t *addrlen)
{
	struct iovec iov = {buf, len};
	ssize_t n = receive_call(socket, &iov, 1, flags, src_addr, addrlen);

	/* A stream's data has no address but the peer's. */
	if (n >= 0 && src_addr && addrlen) {
		struct vb_rsocket *rs = vb_rs_get(socket);

		if (rs) {
			if (!rs->datagram)
				rgetpeername(socket, src_addr, addrlen);
			vb_rs_put(socket);
		}
	}
	return n;
}

VB_EXPORT ssize_t rsendmsg(int socket, const struct msghdr *msg, int flags)
{
	if (msg->msg_control && msg->msg_controllen)
		return vb_rs_answer(-ENOTSUP);
	if (msg->msg_iovlen > IOV_MAX)
		return vb_rs_answer(-EMSGSIZE);
	return send_call(socket, msg->msg_iov, (int)msg->msg_iovlen, flags, msg->msg_name,
			 msg->msg_namelen);
}

VB_EXPORT ssize_t rrecvmsg(int socket, struct msghdr *msg, int flags)
{
	socklen_t length = msg->msg_namelen;
	ssize_t n;

	if (msg->msg_control && msg->msg_controllen)
		return vb_rs_answer(-ENOTSUP);
	if (msg->msg_iovlen > IOV_MAX)
		return vb_rs_answer(-EMSGSIZE);
	n = receive_call(socket, msg->msg_iov, (int)msg->msg_iovlen, flags, msg->msg_name,
			 msg->msg_name ? &length : NULL);
	if (n >= 0) {
		msg->msg_namelen = msg->msg_name ? length : 0;
		msg->msg_flags = 0;
	}
	return n;
}

VB_EXPORT ssize_t rwrite(int socket, const void *buf, size_t count)
{
	return rsend(socket, buf, count, 0);
}

VB_EXPORT ssize_t rread(int socket, void *buf, size_t count)
{
	return rrecv(socket, buf, count, 0);
}

VB_EXPORT ssize_t rwritev(int socket, const struct iovec *iov, int iovcnt)
{
	if (iovcnt < 0 || iovcnt > IOV_MAX)
		return vb_rs_answer(-EINVAL);
	return send_call(socket, iov, iovcnt, 0, NULL, 0);
}

VB_EXPORT ssize_t rreadv(int socket, const struct iovec *iov, int iovcnt)
{
	if (iovcnt < 0 || iovcnt > IOV_MAX)
		return vb_rs_answer(-EINVAL);
	return receive_call(socket, iov, iovcnt, 0, NULL, NULL);
}

VB_EXPORT off_t riomap(int socket, void *buf, size_t len, int prot, int flags, off_t offset)
{
	struct vb_rsocket *rs = vb_rs_get(socket);
	off_t at = -EINVAL;

	(void)flags;
	if (!rs)
		return vb_rs_answer(-EBADF);
	if (rs->datagram)
		at = -EOPNOTSUPP;
	else if (vb_rs_state(rs) != VB_RS_CONNECTED)
		at = -ENOTCONN;
	else if (len && !(prot & ~PROT_WRITE))
		at = vb_stream_iomap(&rs->stream, buf, len, prot & PROT_WRITE, offset);
	vb_rs_put(socket);
	return vb_rs_answer(at);
}

VB_EXPORT int riounmap(int socket, void *buf, size_t len)
{
	struct vb_rsocket *rs = vb_rs_get(socket);
	int err = -EINVAL;

	if (!rs)
		return (int)vb_rs_answer(-EBADF);
	if (rs->has_stream && vb_rs_state(rs) == VB_RS_CONNECTED)
		err = vb_stream_iounmap(&rs->stream, buf, len);
	vb_rs_put(socket);
	return (int)vb_rs_answer(err);
}

static ssize_t write_mapped(struct vb_rsocket *rs, const uint8_t *buf, size_t count, off_t offset,
			    int flags)
{
	size_t done = 0;
	ssize_t n = rs->datagram ? -EOPNOTSUPP : connected(rs, flags);

	if (n)
		return n;
	while (done < count) {
		n = vb_stream_iowrite(&rs->stream, buf + done, count - done, offset + (off_t)done);
		if (n > 0) {
			done += (size_t)n;
			continue;
		}
		/* The mapping may be announced by a message that was not looked at yet. */
		if ((n == -EAGAIN || n == -EINVAL) && vb_rs_progress(rs))
			continue;
		if (n != -EAGAIN || vb_rs_is_nonblocking(rs, flags))
			break;
		n = vb_rs_wait(rs, vb_rs_can_send, 0);
		if (n)
			break;
	}
	return done ? (ssize_t)done : n;
}

VB_EXPORT size_t riowrite(int socket, const void *buf, size_t count, off_t offset, int flags)
{
	struct vb_rsocket *rs = vb_rs_get(socket);
	ssize_t n;

	if (!rs)
		return (size_t)vb_rs_answer(-EBADF);
	n = write_mapped(rs, buf, count, offset, flags);
	vb_rs_put(socket);
	return (size_t)vb_rs_answer(n);
}
