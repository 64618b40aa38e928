/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Datagram sockets. The first datagram to an address goes over UDP, with a header that says which
 * queue pair its sender has. The receiver answers with its own, and from then on datagrams go from
 * queue pair to queue pair. Nothing is kept for a datagram that finds no room: it is dropped, as UDP
 * drops it.
 */
#include "rsocket/datagram.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/sys.h"
#include "rsocket/bell.h"
#include "rsocket/config.h"
#include "rsocket/datagram_private.h"
#include "rsocket/service.h"

int vb_datagram_open(struct vb_rsocket *rs)
{
	struct vb_datagram *d = calloc(1, sizeof(*d));
	int fd;

	if (!d)
		return -ENOMEM;
	fd = (int)syscall(SYS_socket, rs->family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0) {
		free(d);
		return -errno;
	}
	pthread_mutex_init(&d->mutex, NULL);
	d->epoll = -1;
	rs->fd = fd;
	rs->datagram = d;
	return 0;
}

void vb_datagram_close(struct vb_rsocket *rs)
{
	struct vb_datagram *d = rs->datagram;

	vb_datagram_dests_close(d);
	while (d->qps)
		vb_datagram_qp_close(d);
	while (d->waiting) {
		struct vb_datagram_kept *next = d->waiting->next;

		free(d->waiting);
		d->waiting = next;
	}
	if (d->epoll >= 0)
		vb_sys_close(d->epoll);
	vb_sys_close(rs->fd);
	pthread_mutex_destroy(&d->mutex);
	free(d);
	rs->datagram = NULL;
}

/* The service thread reads the UDP socket from now on. */
static int start(struct vb_rsocket *rs)
{
	struct vb_datagram *d = rs->datagram;

	if (d->epoll < 0) {
		d->epoll = vb_rs_fd_move_up(epoll_create1(EPOLL_CLOEXEC));
		if (d->epoll < 0)
			return -errno;
	}
	return vb_rs_service_add(rs);
}

int vb_datagram_bind(struct vb_rsocket *rs, const struct sockaddr *addr, socklen_t length)
{
	if (bind(rs->fd, addr, length))
		return -errno;
	vb_rs_set_state(rs, VB_RS_BOUND);
	return start(rs);
}

/* A socket that sends has a port, to which the answer comes. */
static int bind_to_any(struct vb_rsocket *rs)
{
	struct sockaddr_storage any = {.ss_family = (sa_family_t)rs->family};
	socklen_t length = rs->family == AF_INET ? sizeof(struct sockaddr_in)
						 : sizeof(struct sockaddr_in6);

	if (vb_rs_state(rs) != VB_RS_IDLE)
		return 0;
	return vb_datagram_bind(rs, (struct sockaddr *)&any, length);
}

int vb_datagram_connect(struct vb_rsocket *rs, const struct sockaddr *addr, socklen_t length)
{
	int err = bind_to_any(rs);

	if (err)
		return err;
	if (vb_sys_connect(rs->fd, addr, length))
		return -errno;
	vb_mutex_take(&rs->datagram->mutex, VB_ORDER_RS_DATAGRAM);
	memset(&rs->peer, 0, sizeof(rs->peer));
	memcpy(&rs->peer, addr, length);
	rs->datagram->is_connected = true;
	vb_mutex_release(&rs->datagram->mutex);
	return 0;
}

static size_t size_of(const struct iovec *iov, int count)
{
	size_t sum = 0;

	for (int i = 0; i < count; i++)
		sum += iov[i].iov_len;
	return sum;
}

/* Whom a call sends to. */
static int destination(struct vb_rsocket *rs, const struct sockaddr *addr, socklen_t length,
		       struct sockaddr_storage *to)
{
	if (!addr) {
		*to = rs->peer;
		return rs->datagram->is_connected ? 0 : -EDESTADDRREQ;
	}
	if (addr->sa_family != rs->family)
		return -EAFNOSUPPORT;
	if (length < (rs->family == AF_INET ? sizeof(struct sockaddr_in) : SIN6_LENGTH_LEAST) ||
	    length > sizeof(*to))
		return -EINVAL;
	memset(to, 0, sizeof(*to));
	memcpy(to, addr, length);
	return 0;
}

ssize_t vb_datagram_send(struct vb_rsocket *rs, const struct iovec *iov, int count,
			 const struct sockaddr *addr, socklen_t length)
{
	struct vb_datagram *d = rs->datagram;
	struct vb_datagram_dest *dest;
	struct sockaddr_storage to;
	size_t size = size_of(iov, count);
	ssize_t n;

	if (size > VB_DATAGRAM_MOST)
		return -EMSGSIZE;
	vb_mutex_take(&rs->mutex, VB_ORDER_RS_SOCKET);
	n = bind_to_any(rs);
	vb_mutex_release(&rs->mutex);
	if (n)
		return n;
	vb_mutex_take(&d->mutex, VB_ORDER_RS_DATAGRAM);
	n = destination(rs, addr, length, &to);
	if (!n) {
		n = vb_datagram_find_dest(rs, &to, &dest);
		if (!n && dest->ah)
			n = vb_datagram_send_qp(rs, dest, iov, count, size);
		else if (!n)
			n = vb_datagram_send_udp(rs, dest, VB_DATAGRAM_DATA, iov, count);
	}
	vb_mutex_release(&d->mutex);
	return n < 0 ? n : (ssize_t)size;
}

static socklen_t address_length(const struct sockaddr_storage *addr)
{
	return addr->ss_family == AF_INET ? sizeof(struct sockaddr_in)
					  : sizeof(struct sockaddr_in6);
}

ssize_t vb_datagram_receive(struct vb_rsocket *rs, const struct iovec *iov, int count, bool peek,
			    struct sockaddr *addr, socklen_t *length)
{
	struct vb_datagram *d = rs->datagram;
	struct vb_datagram_kept *k;
	size_t done = 0;

	vb_mutex_take(&d->mutex, VB_ORDER_RS_DATAGRAM);
	k = d->waiting;
	if (!k) {
		vb_mutex_release(&d->mutex);
		return -EAGAIN;
	}
	for (int i = 0; i < count && done < k->size; i++) {
		size_t here = k->size - done < iov[i].iov_len ? k->size - done : iov[i].iov_len;

		if (here) /* an empty element may have no address */
			memcpy(iov[i].iov_base, k->data + done, here);
		done += here;
	}
	if (addr && length) {
		socklen_t have = address_length(&k->from);

		memcpy(addr, &k->from, *length < have ? *length : have);
		*length = have;
	}
	if (!peek) {
		d->waiting = k->next;
		if (!d->waiting)
			d->last = NULL;
		(void)__atomic_sub_fetch(&d->waiting_count, 1, __ATOMIC_RELEASE);
		free(k);
	}
	vb_mutex_release(&d->mutex);
	return (ssize_t)done;
}

/* With the mutex. */
void vb_datagram_keep(struct vb_datagram *d, const void *data, size_t size,
		      const struct sockaddr_storage *from)
{
	struct vb_datagram_kept *k;

	if (d->waiting_count >= VB_DATAGRAM_KEPT) {
		d->dropped++;
		return;
	}
	k = malloc(sizeof(*k) + size);
	if (!k) {
		d->dropped++;
		return;
	}
	k->next = NULL;
	k->size = size;
	k->from = *from;
	memcpy(k->data, data, size);
	if (d->last)
		d->last->next = k;
	else
		d->waiting = k;
	d->last = k;
	(void)__atomic_add_fetch(&d->waiting_count, 1, __ATOMIC_RELEASE);
}

bool vb_datagram_can_receive(struct vb_rsocket *rs)
{
	return __atomic_load_n(&rs->datagram->waiting_count, __ATOMIC_ACQUIRE);
}

bool vb_datagram_can_send(struct vb_rsocket *rs)
{
	struct vb_datagram *d = rs->datagram;
	bool can = true;

	vb_mutex_take(&d->mutex, VB_ORDER_RS_DATAGRAM);
	for (const struct vb_datagram_qp *qp = d->qps; qp; qp = qp->next)
		can &= qp->posted - qp->sent < qp->slots;
	vb_mutex_release(&d->mutex);
	return can;
}

bool vb_datagram_progress(struct vb_rsocket *rs)
{
	struct vb_datagram *d = rs->datagram;
	bool any = false;

	vb_mutex_take(&d->mutex, VB_ORDER_RS_DATAGRAM);
	for (struct vb_datagram_qp *qp = d->qps; qp; qp = qp->next)
		any |= vb_datagram_qp_poll(d, qp);
	vb_mutex_release(&d->mutex);
	return any;
}

bool vb_datagram_arm(struct vb_rsocket *rs)
{
	struct vb_datagram *d = rs->datagram;
	bool any = false;

	vb_mutex_take(&d->mutex, VB_ORDER_RS_DATAGRAM);
	for (struct vb_datagram_qp *qp = d->qps; qp; qp = qp->next) {
		if (qp->armed)
			continue;
		qp->armed = !ibv_req_notify_cq(qp->cq, 0);
		any |= vb_datagram_qp_poll(d, qp);
	}
	vb_mutex_release(&d->mutex);
	return any;
}

bool vb_datagram_woken(struct vb_rsocket *rs)
{
	struct vb_datagram *d = rs->datagram;
	bool any = false;
	struct ibv_cq *cq;
	void *context;

	vb_mutex_take(&d->mutex, VB_ORDER_RS_DATAGRAM);
	for (struct vb_datagram_qp *qp = d->qps; qp; qp = qp->next) {
		if (qp->armed && !ibv_get_cq_event(qp->channel, &cq, &context)) {
			qp->armed = false;
			ibv_ack_cq_events(cq, 1);
		}
		any |= vb_datagram_qp_poll(d, qp);
	}
	vb_mutex_release(&d->mutex);
	return any;
}

int vb_datagram_wake_fd(struct vb_rsocket *rs)
{
	return rs->datagram->epoll;
}
