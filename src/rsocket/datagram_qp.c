/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Queue pairs of datagram sockets: one for each own address that datagrams come or go by. */
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>

#include "base/sys.h"
#include "rsocket/datagram_private.h"

enum {
	QKEY = 0x01234567,
	BATCH = 16,
	PLACE = VB_DATAGRAM_GRH + VB_DATAGRAM_SLOT,
	RECEIVE = 1 << 30, /* in a wr_id */
	RESOLVE_MS = 2000,
};

/* Before the payload: who sends. */
struct header {
	uint8_t version; /* 4 or 6 */
	uint8_t length;  /* of this header */
	uint16_t port;
	union {
		uint8_t v4[4];
		struct {
			uint32_t flowinfo;
			uint8_t addr[16];
		} __attribute__((packed)) v6;
	};
} __attribute__((packed));

_Static_assert(sizeof(struct header) == VB_DATAGRAM_HEADER6, "on the wire");

static uint8_t *place(const struct vb_datagram_qp *qp, uint32_t number)
{
	return qp->memory + (size_t)number * PLACE;
}

static int post_receive(struct vb_datagram_qp *qp, uint32_t slot)
{
	struct ibv_sge sge = {(uintptr_t)place(qp, slot), PLACE, qp->mr->lkey};
	struct ibv_recv_wr *bad, wr = {.wr_id = RECEIVE | slot, .sg_list = &sge, .num_sge = 1};

	return -ibv_post_recv(qp->qp, &wr, &bad);
}

static void close_one(struct vb_datagram_qp *qp)
{
	if (qp->id && qp->id->qp)
		rdma_destroy_qp(qp->id);
	if (qp->mr)
		ibv_dereg_mr(qp->mr);
	if (qp->memory)
		munmap(qp->memory, 2ul * qp->slots * PLACE);
	if (qp->cq)
		ibv_destroy_cq(qp->cq);
	if (qp->channel)
		ibv_destroy_comp_channel(qp->channel);
	if (qp->id)
		rdma_destroy_id(qp->id);
	free(qp);
}

void vb_datagram_qp_close(struct vb_datagram *d)
{
	struct vb_datagram_qp *qp = d->qps;

	d->qps = qp->next;
	close_one(qp);
}

static int open_queue(struct vb_datagram *d, struct vb_datagram_qp *qp)
{
	struct epoll_event event = {.events = EPOLLIN};
	int flags;

	qp->channel = ibv_create_comp_channel(qp->id->verbs);
	if (!qp->channel)
		return -errno;
	flags = fcntl(qp->channel->fd, F_GETFL);
	if (flags < 0 || fcntl(qp->channel->fd, F_SETFL, flags | O_NONBLOCK))
		return -errno;
	qp->cq = ibv_create_cq(qp->id->verbs, (int)qp->slots * 2, qp, qp->channel, 0);
	if (!qp->cq)
		return -errno;
	return epoll_ctl(d->epoll, EPOLL_CTL_ADD, qp->channel->fd, &event) ? -errno : 0;
}

static int open_memory(struct vb_datagram_qp *qp)
{
	size_t size = 2ul * qp->slots * PLACE;
	void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		return -ENOMEM;
	qp->memory = at;
	qp->mr = ibv_reg_mr(qp->id->pd, at, size, IBV_ACCESS_LOCAL_WRITE);
	return qp->mr ? 0 : -errno;
}

/* The index of the id's GID; where the same GID is there more than once, the one of RoCEv2. */
static int find_gid(struct vb_datagram_qp *qp)
{
	const union ibv_gid *own = &qp->id->route.addr.addr.ibaddr.sgid;
	struct ibv_gid_entry entry;

	for (uint32_t i = 0; i < 256; i++) {
		if (ibv_query_gid_ex(qp->id->verbs, qp->id->port_num, i, &entry, 0))
			continue;
		if (entry.gid_type == IBV_GID_TYPE_ROCE_V2 &&
		    !memcmp(&entry.gid, own, sizeof(*own))) {
			qp->sgid_index = (uint8_t)i;
			return 0;
		}
	}
	return -ENODEV;
}

static int find_most(struct vb_datagram_qp *qp)
{
	struct ibv_port_attr attr;

	if (ibv_query_port(qp->id->verbs, qp->id->port_num, &attr))
		return -ENODEV;
	qp->most = 128u << attr.active_mtu;
	if (qp->most > VB_DATAGRAM_SLOT)
		qp->most = VB_DATAGRAM_SLOT;
	return 0;
}

static int open_qp(struct vb_datagram *d, struct vb_datagram_qp *qp)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_UD,
		.sq_sig_all = 1,
		.cap = {.max_send_sge = 1, .max_recv_sge = 1},
	};
	int err = find_gid(qp);

	if (!err)
		err = find_most(qp);
	if (!err)
		err = open_queue(d, qp);
	if (!err)
		err = open_memory(qp);
	if (err)
		return err;
	attr.send_cq = attr.recv_cq = qp->cq;
	attr.cap.max_send_wr = attr.cap.max_recv_wr = qp->slots;
	if (rdma_create_qp(qp->id, qp->id->pd, &attr))
		return -errno;
	qp->qp = qp->id->qp;
	for (uint32_t i = 0; i < qp->slots && !err; i++)
		err = post_receive(qp, i);
	return err;
}

/* The id only says which device and GID belong to the address; its port is any. */
static int open_id(struct vb_datagram_qp *qp)
{
	struct sockaddr_storage any_port = qp->own;

	if (any_port.ss_family == AF_INET)
		((struct sockaddr_in *)&any_port)->sin_port = 0;
	else
		((struct sockaddr_in6 *)&any_port)->sin6_port = 0;
	if (rdma_create_id(NULL, &qp->id, qp, RDMA_PS_UDP))
		return -errno;
	/* Loopback addresses are on no device; a destination of this kind has one. */
	if (vb_datagram_is_loopback(&qp->own)
		    ? rdma_resolve_addr(qp->id, NULL, (struct sockaddr *)&any_port, RESOLVE_MS)
		    : rdma_bind_addr(qp->id, (struct sockaddr *)&any_port))
		return -errno;
	return qp->id->verbs ? 0 : -ENODEV;
}

static bool same_host(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
	struct sockaddr_storage c = *b;

	if (c.ss_family == AF_INET)
		((struct sockaddr_in *)&c)->sin_port = ((const struct sockaddr_in *)a)->sin_port;
	else
		((struct sockaddr_in6 *)&c)->sin6_port =
			((const struct sockaddr_in6 *)a)->sin6_port;
	return vb_datagram_same(a, &c);
}

/* The port has the same place in addresses of both families. */
static void copy_port(struct sockaddr_storage *to, const struct sockaddr_storage *from)
{
	_Static_assert(offsetof(struct sockaddr_in, sin_port) ==
			       offsetof(struct sockaddr_in6, sin6_port),
		       "RFC 3493");
	memcpy((uint8_t *)to + offsetof(struct sockaddr_in, sin_port),
	       (const uint8_t *)from + offsetof(struct sockaddr_in, sin_port), sizeof(in_port_t));
}

int vb_datagram_qp_for(struct vb_rsocket *rs, const struct sockaddr_storage *own,
		       struct vb_datagram_qp **found)
{
	struct vb_datagram *d = rs->datagram;
	struct vb_datagram_qp *qp;
	struct sockaddr_storage name = {0};
	socklen_t length = sizeof(name);
	int err;

	for (qp = d->qps; qp; qp = qp->next) {
		if (same_host(&qp->own, own)) {
			*found = qp;
			return 0;
		}
	}
	if (getsockname(rs->fd, (struct sockaddr *)&name, &length))
		return -errno;
	qp = calloc(1, sizeof(*qp));
	if (!qp)
		return -ENOMEM;
	qp->own = *own;
	copy_port(&qp->own, &name);
	qp->slots = rs->options.sizes.receive_queue;
	err = open_id(qp);
	if (!err)
		err = open_qp(d, qp);
	if (err) {
		close_one(qp);
		return err;
	}
	qp->next = d->qps;
	d->qps = qp;
	*found = qp;
	return 0;
}

static size_t put_header(const struct vb_datagram_qp *qp, uint8_t *to)
{
	const struct sockaddr_in *in = (const struct sockaddr_in *)&qp->own;
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)&qp->own;
	struct header h = {0};

	h.port = in->sin_port; /* at the same place in both */
	if (qp->own.ss_family == AF_INET) {
		h.version = 4;
		h.length = VB_DATAGRAM_HEADER4;
		memcpy(h.v4, &in->sin_addr, sizeof(h.v4));
	} else {
		h.version = 6;
		h.length = VB_DATAGRAM_HEADER6;
		h.v6.flowinfo = in6->sin6_flowinfo;
		memcpy(h.v6.addr, &in6->sin6_addr, sizeof(h.v6.addr));
	}
	memcpy(to, &h, h.length);
	return h.length;
}

/* The sender's address; 0: this is no header. */
static size_t take_header(const uint8_t *from, size_t size, struct sockaddr_storage *addr)
{
	struct sockaddr_in *in = (struct sockaddr_in *)addr;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)addr;
	struct header h = {0};

	memset(addr, 0, sizeof(*addr));
	memcpy(&h, from, size < sizeof(h) ? size : sizeof(h));
	if (h.version == 4 && h.length == VB_DATAGRAM_HEADER4 && size >= VB_DATAGRAM_HEADER4) {
		in->sin_family = AF_INET;
		in->sin_port = h.port;
		memcpy(&in->sin_addr, h.v4, sizeof(h.v4));
		return h.length;
	}
	if (h.version == 6 && h.length == VB_DATAGRAM_HEADER6 && size >= VB_DATAGRAM_HEADER6) {
		in6->sin6_family = AF_INET6;
		in6->sin6_port = h.port;
		in6->sin6_flowinfo = h.v6.flowinfo;
		memcpy(&in6->sin6_addr, h.v6.addr, sizeof(h.v6.addr));
		return h.length;
	}
	return 0;
}

ssize_t vb_datagram_send_qp(struct vb_rsocket *rs, struct vb_datagram_dest *dest,
			    const struct iovec *iov, int count, size_t size)
{
	struct vb_datagram_qp *qp = dest->qp;
	uint8_t *at = place(qp, qp->slots + qp->posted % qp->slots);
	struct ibv_sge sge = {(uintptr_t)at, 0, qp->mr->lkey};
	struct ibv_send_wr *bad, wr = {
					 .sg_list = &sge,
					 .num_sge = 1,
					 .opcode = IBV_WR_SEND,
					 .wr.ud = {dest->ah, dest->qpn, QKEY},
				 };
	size_t done;
	int err;

	(void)rs;
	if (qp->posted - qp->sent >= qp->slots)
		return -EAGAIN;
	done = put_header(qp, at);
	if (done + size > qp->most)
		return -EMSGSIZE;
	for (int i = 0; i < count; i++) {
		if (iov[i].iov_len) /* an empty element may have no address */
			memcpy(at + done, iov[i].iov_base, iov[i].iov_len);
		done += iov[i].iov_len;
	}
	sge.length = (uint32_t)done;
	err = ibv_post_send(qp->qp, &wr, &bad);
	if (err)
		return -err;
	qp->posted++;
	return (ssize_t)size;
}

static void received(struct vb_datagram *d, struct vb_datagram_qp *qp, const struct ibv_wc *wc)
{
	uint32_t slot = (uint32_t)wc->wr_id & (RECEIVE - 1);
	const uint8_t *at = place(qp, slot) + VB_DATAGRAM_GRH;
	struct sockaddr_storage from;
	size_t size, header;

	if (wc->status != IBV_WC_SUCCESS)
		return;
	size = wc->byte_len > VB_DATAGRAM_GRH ? wc->byte_len - VB_DATAGRAM_GRH : 0;
	header = take_header(at, size, &from);
	if (header)
		vb_datagram_keep(d, at + header, size - header, &from);
	else
		d->dropped++;
	post_receive(qp, slot);
}

bool vb_datagram_qp_poll(struct vb_datagram *d, struct vb_datagram_qp *qp)
{
	struct ibv_wc wc[BATCH];
	bool any = false;
	int n;

	do {
		n = ibv_poll_cq(qp->cq, BATCH, wc);
		for (int i = 0; i < n; i++) {
			if (wc[i].wr_id & RECEIVE)
				received(d, qp, &wc[i]);
			else
				qp->sent++;
		}
		any |= n > 0;
	} while (n == BATCH);
	return any;
}
