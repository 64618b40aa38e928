/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What goes over UDP: the first datagrams to an address, and the numbers of queue pairs. */
#include <endian.h>
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "base/sys.h"
#include "rsocket/bell.h"
#include "rsocket/datagram_private.h"

enum {
	TAG = 0x55555555,
	LENGTH4 = 16, /* of the header */
	LENGTH6 = 28,
	BURST = 64, /* packets of one call of the service thread */
	QPN_MAX = 0xffffff,
};

struct udp_header {
	uint32_t tag;
	uint8_t version;
	uint8_t op;
	uint8_t length;
	uint8_t reserved;
	uint32_t qpn;
	uint8_t addr[16];
} __attribute__((packed));

_Static_assert(sizeof(struct udp_header) == LENGTH6, "on the wire");

static socklen_t address_length(const struct sockaddr_storage *addr)
{
	return addr->ss_family == AF_INET ? sizeof(struct sockaddr_in)
					  : sizeof(struct sockaddr_in6);
}

static void put_header(const struct vb_datagram_dest *dest, enum vb_datagram_op op,
		       struct udp_header *h)
{
	const struct sockaddr_storage *own = &dest->qp->own;

	memset(h, 0, sizeof(*h));
	h->tag = htobe32(TAG);
	h->op = (uint8_t)op;
	h->qpn = htobe32(dest->qp->qp->qp_num & QPN_MAX);
	if (own->ss_family == AF_INET) {
		h->version = 4;
		h->length = LENGTH4;
		memcpy(h->addr, &((const struct sockaddr_in *)own)->sin_addr, 4);
	} else {
		h->version = 6;
		h->length = LENGTH6;
		memcpy(h->addr, &((const struct sockaddr_in6 *)own)->sin6_addr, 16);
	}
}

ssize_t vb_datagram_send_udp(struct vb_rsocket *rs, struct vb_datagram_dest *dest,
			     enum vb_datagram_op op, const struct iovec *iov, int count)
{
	struct udp_header header;
	struct iovec with[16];
	struct msghdr msg = {.msg_name = &dest->addr, .msg_iov = with};

	if (count > (int)(sizeof(with) / sizeof(with[0])) - 1)
		return -EMSGSIZE;
	put_header(dest, op, &header);
	with[0] = (struct iovec){&header, header.length};
	if (count)
		memcpy(&with[1], iov, (size_t)count * sizeof(*iov));
	msg.msg_iovlen = (size_t)count + 1;
	msg.msg_namelen = address_length(&dest->addr);
	return vb_sys_sendmsg(rs->fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -errno : 0;
}

/* Whether this is one of ours, whole. */
static bool is_valid(const struct udp_header *h, size_t size, int family)
{
	if (size < LENGTH4 || h->tag != htobe32(TAG) || h->length > size)
		return false;
	if (family == AF_INET)
		return h->version == 4 && h->length == LENGTH4;
	return h->version == 6 && h->length == LENGTH6;
}

static void packet(struct vb_rsocket *rs, const uint8_t *data, size_t size,
		   const struct sockaddr_storage *from)
{
	struct vb_datagram *d = rs->datagram;
	struct vb_datagram_dest *dest;
	struct udp_header h = {0};

	memcpy(&h, data, size < sizeof(h) ? size : sizeof(h));
	if (!is_valid(&h, size, from->ss_family)) {
		d->dropped++;
		return;
	}
	if (!vb_datagram_find_dest(rs, from, &dest) &&
	    !vb_datagram_dest_is(dest, be32toh(h.qpn) & QPN_MAX) && h.op == VB_DATAGRAM_DATA)
		vb_datagram_send_udp(rs, dest, VB_DATAGRAM_CTRL, NULL, 0);
	if (h.op == VB_DATAGRAM_DATA)
		vb_datagram_keep(d, data + h.length, size - h.length, from);
}

void vb_datagram_serve(struct vb_rsocket *rs)
{
	uint8_t data[VB_DATAGRAM_SLOT + LENGTH6];
	bool any = false;

	for (int i = 0; i < BURST; i++) {
		struct sockaddr_storage from = {0};
		struct iovec iov = {data, sizeof(data)};
		struct msghdr msg = {.msg_name = &from,
				     .msg_namelen = sizeof(from),
				     .msg_iov = &iov,
				     .msg_iovlen = 1};
		ssize_t n = vb_sys_recvmsg(rs->fd, &msg, MSG_DONTWAIT);

		if (n < 0 && errno == ECONNREFUSED) /* an answer to an earlier datagram */
			continue;
		if (n < 0)
			break;
		vb_mutex_take(&rs->datagram->mutex, VB_ORDER_RS_DATAGRAM);
		if (!(msg.msg_flags & MSG_TRUNC))
			packet(rs, data, (size_t)n, &from);
		vb_mutex_release(&rs->datagram->mutex);
		any = true;
	}
	if (any)
		vb_rs_bell_ring();
}
