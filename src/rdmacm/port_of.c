/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The ports in the addresses of an id: rdma_get_src_port(3), rdma_get_dst_port(3). */
#include <endian.h>

#include <infiniband/ib.h>
#include <rdma/rdma_cma.h>

#include "rdmacm/face.h"

static __be16 port_of(const struct sockaddr_storage *addr)
{
	switch (addr->ss_family) {
	case AF_INET:
		return ((const struct sockaddr_in *)addr)->sin_port;
	case AF_INET6:
		return ((const struct sockaddr_in6 *)addr)->sin6_port;
	case AF_IB:
		return htobe16((uint16_t)be64toh(((const struct sockaddr_ib *)addr)->sib_sid));
	default:
		return 0;
	}
}

VB_EXPORT __be16 rdma_get_src_port(struct rdma_cm_id *id)
{
	return port_of(&id->route.addr.src_storage);
}

VB_EXPORT __be16 rdma_get_dst_port(struct rdma_cm_id *id)
{
	return port_of(&id->route.addr.dst_storage);
}
