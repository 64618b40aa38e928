/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The addresses of a datagram socket: which own address reaches each, and its queue pair. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/sys.h"
#include "rsocket/datagram_private.h"

bool vb_datagram_same(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
	const struct sockaddr_in *a4 = (const struct sockaddr_in *)a;
	const struct sockaddr_in *b4 = (const struct sockaddr_in *)b;
	const struct sockaddr_in6 *a6 = (const struct sockaddr_in6 *)a;
	const struct sockaddr_in6 *b6 = (const struct sockaddr_in6 *)b;

	if (a->ss_family != b->ss_family)
		return false;
	if (a->ss_family == AF_INET)
		return a4->sin_port == b4->sin_port && a4->sin_addr.s_addr == b4->sin_addr.s_addr;
	return a6->sin6_port == b6->sin6_port &&
	       !memcmp(&a6->sin6_addr, &b6->sin6_addr, sizeof(a6->sin6_addr));
}

bool vb_datagram_is_loopback(const struct sockaddr_storage *addr)
{
	const struct sockaddr_in *in = (const struct sockaddr_in *)addr;
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)addr;

	if (addr->ss_family == AF_INET)
		return ntohl(in->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
	return IN6_IS_ADDR_LOOPBACK(&in6->sin6_addr);
}

static uint32_t bucket(const struct sockaddr_storage *addr)
{
	const struct sockaddr_in *in = (const struct sockaddr_in *)addr;
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)addr;
	uint32_t word[4] = {0};
	uint32_t mixed;

	if (addr->ss_family == AF_INET)
		word[3] = in->sin_addr.s_addr;
	else
		memcpy(word, &in6->sin6_addr, sizeof(word));
	mixed = (word[0] ^ word[1] ^ word[2] ^ word[3] ^ (uint32_t)in->sin_port << 16) *
		2654435761u;
	return mixed >> 24;
}

/*
 * The own address from which the kernel would send there: that of an UDP socket which is connected.
 */
static int source_for(struct vb_rsocket *rs, const struct sockaddr_storage *to,
		      struct sockaddr_storage *own)
{
	socklen_t length = sizeof(*own);
	int fd, err = 0;

	memset(own, 0, sizeof(*own));
	if (getsockname(rs->fd, (struct sockaddr *)own, &length))
		return -errno;
	if (own->ss_family == AF_INET
		    ? ((struct sockaddr_in *)own)->sin_addr.s_addr != INADDR_ANY
		    : !IN6_IS_ADDR_UNSPECIFIED(&((struct sockaddr_in6 *)own)->sin6_addr))
		return 0;
	fd = (int)syscall(SYS_socket, rs->family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	length = to->ss_family == AF_INET ? sizeof(struct sockaddr_in)
					  : sizeof(struct sockaddr_in6);
	if (vb_sys_connect(fd, (const struct sockaddr *)to, length))
		err = -errno;
	length = sizeof(*own);
	if (!err && getsockname(fd, (struct sockaddr *)own, &length))
		err = -errno;
	vb_sys_close(fd);
	return err;
}

int vb_datagram_find_dest(struct vb_rsocket *rs, const struct sockaddr_storage *addr,
			  struct vb_datagram_dest **dest)
{
	struct vb_datagram *d = rs->datagram;
	struct vb_datagram_dest **at = &d->dests[bucket(addr)];
	struct sockaddr_storage own;
	struct vb_datagram_qp *qp;
	int err;

	for (*dest = *at; *dest; *dest = (*dest)->next) {
		if (vb_datagram_same(&(*dest)->addr, addr))
			return 0;
	}
	if (d->dest_count >= VB_DATAGRAM_DESTS_MOST)
		return -ENOBUFS;
	err = source_for(rs, addr, &own);
	if (!err)
		err = vb_datagram_qp_for(rs, &own, &qp);
	if (err)
		return err;
	*dest = calloc(1, sizeof(**dest));
	if (!*dest)
		return -ENOMEM;
	(*dest)->addr = *addr;
	(*dest)->qp = qp;
	(*dest)->next = *at;
	*at = *dest;
	d->dest_count++;
	return 0;
}

static union ibv_gid gid_of(const struct sockaddr_storage *addr)
{
	union ibv_gid gid = {0};

	if (addr->ss_family == AF_INET) {
		gid.raw[10] = gid.raw[11] = 0xff;
		memcpy(&gid.raw[12], &((const struct sockaddr_in *)addr)->sin_addr, 4);
	} else {
		memcpy(gid.raw, &((const struct sockaddr_in6 *)addr)->sin6_addr, sizeof(gid.raw));
	}
	return gid;
}

/*
 * RoCE wants the global form of addresses on one's own host, too. A loopback address is none that its
 * packets have: there the queue pair's own address stands for it, as that of all sockets with such
 * addresses.
 */
int vb_datagram_dest_is(struct vb_datagram_dest *dest, uint32_t qpn)
{
	const struct vb_datagram_qp *qp = dest->qp;
	struct ibv_ah_attr attr = {
		.is_global = 1,
		.port_num = qp->id->port_num,
		.grh = {.dgid = gid_of(&dest->addr), .sgid_index = qp->sgid_index, .hop_limit = 64},
	};

	if (dest->ah && dest->qpn == qpn)
		return 0;
	if (vb_datagram_is_loopback(&dest->addr))
		attr.grh.dgid = qp->id->route.addr.addr.ibaddr.sgid;
	if (!dest->ah)
		dest->ah = ibv_create_ah(qp->id->pd, &attr);
	dest->qpn = qpn;
	return dest->ah ? 0 : -errno;
}

void vb_datagram_dests_close(struct vb_datagram *d)
{
	for (uint32_t i = 0; i < VB_DATAGRAM_DESTS; i++) {
		while (d->dests[i]) {
			struct vb_datagram_dest *dest = d->dests[i];

			d->dests[i] = dest->next;
			if (dest->ah)
				ibv_destroy_ah(dest->ah);
			free(dest);
		}
	}
}
