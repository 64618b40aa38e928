/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Socket addresses: their lengths, and as GIDs. */
#include "rdmacm/address.h"

#include <arpa/inet.h>
#include <endian.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include <infiniband/ib.h>

static const struct sockaddr_in *v4(const struct sockaddr *addr)
{
	return (const struct sockaddr_in *)(const void *)addr;
}

static const struct sockaddr_in6 *v6(const struct sockaddr *addr)
{
	return (const struct sockaddr_in6 *)(const void *)addr;
}

socklen_t vb_cma_address_length(const struct sockaddr *addr)
{
	switch (addr->sa_family) {
	case AF_INET:
		return sizeof(struct sockaddr_in);
	case AF_INET6:
		return sizeof(struct sockaddr_in6);
	case AF_IB:
		return sizeof(struct sockaddr_ib);
	default:
		return 0;
	}
}

union ibv_gid vb_cma_address_gid(const struct sockaddr *addr)
{
	union ibv_gid gid = {.raw = {[10] = 0xff, [11] = 0xff}};

	if (addr->sa_family == AF_INET)
		memcpy(gid.raw + 12, &v4(addr)->sin_addr, 4);
	else
		memcpy(gid.raw, &v6(addr)->sin6_addr, 16);
	return gid;
}

void vb_cma_address_make(int family, const union ibv_gid *gid, uint32_t scope, __be16 port,
			 struct sockaddr_storage *addr)
{
	struct sockaddr_in in4 = {.sin_family = AF_INET, .sin_port = port};
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = port};

	memset(addr, 0, sizeof(*addr));
	if (family == AF_INET) {
		memcpy(&in4.sin_addr, gid->raw + 12, 4);
		memcpy(addr, &in4, sizeof(in4));
		return;
	}
	memcpy(&in6.sin6_addr, gid->raw, 16);
	if (IN6_IS_ADDR_LINKLOCAL(&in6.sin6_addr) || IN6_IS_ADDR_MC_LINKLOCAL(&in6.sin6_addr))
		in6.sin6_scope_id = scope;
	memcpy(addr, &in6, sizeof(in6));
}

__be16 vb_cma_address_port(const struct sockaddr *addr)
{
	switch (addr->sa_family) {
	case AF_INET:
		return v4(addr)->sin_port;
	case AF_INET6:
		return v6(addr)->sin6_port;
	case AF_IB:
		return htobe16((uint16_t)be64toh(
			((const struct sockaddr_ib *)(const void *)addr)->sib_sid));
	default:
		return 0;
	}
}

void vb_cma_address_set_port(struct sockaddr *addr, __be16 port)
{
	if (addr->sa_family == AF_INET)
		((struct sockaddr_in *)(void *)addr)->sin_port = port;
	else if (addr->sa_family == AF_INET6)
		((struct sockaddr_in6 *)(void *)addr)->sin6_port = port;
}

bool vb_cma_address_is_wildcard(const struct sockaddr *addr)
{
	if (addr->sa_family == AF_INET)
		return v4(addr)->sin_addr.s_addr == htonl(INADDR_ANY);
	return addr->sa_family == AF_INET6 && IN6_IS_ADDR_UNSPECIFIED(&v6(addr)->sin6_addr);
}

bool vb_cma_address_is_loopback(const struct sockaddr *addr)
{
	if (addr->sa_family == AF_INET)
		return ntohl(v4(addr)->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
	return addr->sa_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&v6(addr)->sin6_addr);
}

bool vb_cma_address_is_multicast(const struct sockaddr *addr)
{
	if (addr->sa_family == AF_INET)
		return IN_MULTICAST(ntohl(v4(addr)->sin_addr.s_addr));
	return addr->sa_family == AF_INET6 && IN6_IS_ADDR_MULTICAST(&v6(addr)->sin6_addr);
}

static bool needs_scope(const struct sockaddr *addr)
{
	return addr->sa_family == AF_INET6 && (IN6_IS_ADDR_LINKLOCAL(&v6(addr)->sin6_addr) ||
					       IN6_IS_ADDR_MC_LINKLOCAL(&v6(addr)->sin6_addr));
}

uint32_t vb_cma_address_scope(const struct sockaddr *addr)
{
	return needs_scope(addr) ? v6(addr)->sin6_scope_id : 0;
}

bool vb_cma_address_lacks_scope(const struct sockaddr *addr)
{
	return needs_scope(addr) && !v6(addr)->sin6_scope_id;
}

const char *vb_cma_address_text(const struct sockaddr *addr, char text[VB_CMA_ADDRESS_TEXT])
{
	const void *bytes = addr->sa_family == AF_INET ? (const void *)&v4(addr)->sin_addr
						       : (const void *)&v6(addr)->sin6_addr;

	if ((addr->sa_family != AF_INET && addr->sa_family != AF_INET6) ||
	    !inet_ntop(addr->sa_family, bytes, text, VB_CMA_ADDRESS_TEXT))
		snprintf(text, VB_CMA_ADDRESS_TEXT, "(family %d)", addr->sa_family);
	return text;
}
