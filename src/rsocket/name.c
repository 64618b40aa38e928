/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Addresses: rgetsockname(3) and rgetpeername(3). */
#include <errno.h>
#include <string.h>

#include <infiniband/ib.h>
#include <rdma/rsocket.h>

#include "rsocket/table.h"

static socklen_t length_of(const struct sockaddr *addr, int family)
{
	switch (addr->sa_family ? addr->sa_family : family) {
	case AF_INET:
		return sizeof(struct sockaddr_in);
	case AF_INET6:
		return sizeof(struct sockaddr_in6);
	default:
		return sizeof(struct sockaddr_ib);
	}
}

/*
 * As much as fits; *length becomes the whole length. An IPv6 socket that a wildcard listener accepted
 * may have an IPv4 connection; it says so by a mapped address, as with TCP.
 */
static void give(const struct vb_rsocket *rs, const struct sockaddr *from, struct sockaddr *to,
		 socklen_t *length)
{
	struct sockaddr_storage whole = {0};
	socklen_t have = length_of(from, rs->family);

	memcpy(&whole, from, have);
	if (!whole.ss_family)
		whole.ss_family = (sa_family_t)rs->family;
	if (rs->family == AF_INET6 && whole.ss_family == AF_INET) {
		const struct sockaddr_in *in = (const struct sockaddr_in *)from;
		struct sockaddr_in6 mapped = {.sin6_family = AF_INET6, .sin6_port = in->sin_port};

		mapped.sin6_addr.s6_addr[10] = mapped.sin6_addr.s6_addr[11] = 0xff;
		memcpy(&mapped.sin6_addr.s6_addr[12], &in->sin_addr, sizeof(in->sin_addr));
		have = sizeof(mapped);
		memcpy(&whole, &mapped, have);
	}
	memcpy(to, &whole, *length < have ? *length : have);
	*length = have;
}

static int udp_name(int fd, struct sockaddr *addr, socklen_t *length, bool peer)
{
	int failed = peer ? getpeername(fd, addr, length) : getsockname(fd, addr, length);

	return failed ? -errno : 0;
}

static int name(int socket, struct sockaddr *addr, socklen_t *length, bool peer)
{
	struct vb_rsocket *rs = vb_rs_get(socket);
	int err = 0;

	if (!rs)
		return (int)vb_rs_answer(-EBADF);
	if (!addr || !length || (int)*length < 0)
		err = -EINVAL;
	else if (rs->datagram)
		err = udp_name(rs->fd, addr, length, peer);
	else if (!peer)
		give(rs, rdma_get_local_addr(rs->id), addr, length);
	else if (vb_rs_state(rs) == VB_RS_CONNECTED || vb_rs_is_opening(rs))
		give(rs, rdma_get_peer_addr(rs->id), addr, length);
	else
		err = -ENOTCONN;
	vb_rs_put(socket);
	return (int)vb_rs_answer(err);
}

VB_EXPORT int rgetpeername(int socket, struct sockaddr *addr, socklen_t *addrlen)
{
	return name(socket, addr, addrlen, true);
}

VB_EXPORT int rgetsockname(int socket, struct sockaddr *addr, socklen_t *addrlen)
{
	return name(socket, addr, addrlen, false);
}
