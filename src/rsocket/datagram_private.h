/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What the files of datagram sockets share. All but the opening is under `mutex`. */
#ifndef VB_RSOCKET_DATAGRAM_PRIVATE_H
#define VB_RSOCKET_DATAGRAM_PRIVATE_H

#include "rsocket/datagram.h"

enum {
	VB_DATAGRAM_SLOT = 2048, /* bytes of a receive, behind the GRH */
	VB_DATAGRAM_GRH = 40,
	VB_DATAGRAM_HEADER4 = 8, /* before the payload, from queue pair to queue pair */
	VB_DATAGRAM_HEADER6 = 24,
	VB_DATAGRAM_MOST = VB_DATAGRAM_SLOT - VB_DATAGRAM_HEADER6,
	VB_DATAGRAM_KEPT = 384,  /* datagrams that wait to be read; more are dropped */
	VB_DATAGRAM_DESTS = 256, /* buckets of addresses */
	VB_DATAGRAM_DESTS_MOST = 65536,
	SIN6_LENGTH_LEAST = 24, /* without the scope, as older programs have it */
};

enum vb_datagram_op {
	VB_DATAGRAM_DATA = 0, /* a datagram, and the queue pair of its sender */
	VB_DATAGRAM_CTRL = 7, /* the queue pair alone */
};

struct vb_datagram_kept {
	struct vb_datagram_kept *next;
	struct sockaddr_storage from;
	size_t size;
	uint8_t data[];
};

/* The queue pair of one own address. */
struct vb_datagram_qp {
	struct vb_datagram_qp *next;
	struct rdma_cm_id *id; /* bound to the address, for its device, port and GID */
	struct sockaddr_storage own;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	uint8_t *memory; /* receives, then sends */
	uint8_t sgid_index;
	uint32_t slots; /* of each */
	uint32_t most;  /* bytes of a message, by the path's MTU */
	uint32_t posted, sent;
	bool armed;
};

/* One address that datagrams go to or came from. */
struct vb_datagram_dest {
	struct vb_datagram_dest *next;
	struct sockaddr_storage addr;
	struct vb_datagram_qp *qp; /* that reaches it */
	struct ibv_ah *ah;         /* NULL: its queue pair is not known */
	uint32_t qpn;
};

struct vb_datagram {
	pthread_mutex_t mutex;
	bool is_connected;
	int epoll; /* of the channels of all queue pairs */
	struct vb_datagram_qp *qps;
	struct vb_datagram_dest *dests[VB_DATAGRAM_DESTS];
	uint32_t dest_count;
	struct vb_datagram_kept *waiting, *last;
	uint32_t waiting_count;
	uint64_t dropped;
};

void vb_datagram_keep(struct vb_datagram *d, const void *data, size_t size,
		      const struct sockaddr_storage *from);

/* datagram_dest.c */
/* Finds or makes it, with the queue pair that reaches it. */
int vb_datagram_find_dest(struct vb_rsocket *rs, const struct sockaddr_storage *addr,
			  struct vb_datagram_dest **dest);
/* Its queue pair is known. */
int vb_datagram_dest_is(struct vb_datagram_dest *dest, uint32_t qpn);
void vb_datagram_dests_close(struct vb_datagram *d);
bool vb_datagram_same(const struct sockaddr_storage *a, const struct sockaddr_storage *b);
/* 127.0.0.0/8 and ::1. */
bool vb_datagram_is_loopback(const struct sockaddr_storage *addr);

/* datagram_qp.c */
/* The one for an own address, with the port of the socket. */
int vb_datagram_qp_for(struct vb_rsocket *rs, const struct sockaddr_storage *own,
		       struct vb_datagram_qp **qp);
/* Ends the first one. */
void vb_datagram_qp_close(struct vb_datagram *d);
bool vb_datagram_qp_poll(struct vb_datagram *d, struct vb_datagram_qp *qp);
ssize_t vb_datagram_send_qp(struct vb_rsocket *rs, struct vb_datagram_dest *dest,
			    const struct iovec *iov, int count, size_t size);

/* datagram_udp.c */
ssize_t vb_datagram_send_udp(struct vb_rsocket *rs, struct vb_datagram_dest *dest,
			     enum vb_datagram_op op, const struct iovec *iov, int count);

#endif
