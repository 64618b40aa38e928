/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Socket addresses: their lengths, and as GIDs. Pure; safe from any thread. */
#ifndef VB_RDMACM_ADDRESS_H
#define VB_RDMACM_ADDRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include <infiniband/verbs.h>

/* Bytes of an address of AF_INET, AF_INET6 or AF_IB; 0: of another family. */
socklen_t vb_cma_address_length(const struct sockaddr *addr);

/* The address as a GID: ::ffff:a.b.c.d for IPv4. Only AF_INET and AF_INET6. */
union ibv_gid vb_cma_address_gid(const struct sockaddr *addr);
/* A socket address of the family, with the port (network order). */
void vb_cma_address_make(int family, const union ibv_gid *gid, uint32_t scope, __be16 port,
			 struct sockaddr_storage *addr);

/* Network order; 0: none, or no IP address. */
__be16 vb_cma_address_port(const struct sockaddr *addr);
void vb_cma_address_set_port(struct sockaddr *addr, __be16 port);

bool vb_cma_address_is_wildcard(const struct sockaddr *addr);
bool vb_cma_address_is_loopback(const struct sockaddr *addr);
bool vb_cma_address_is_multicast(const struct sockaddr *addr);
/* The interface of an IPv6 address whose meaning depends on it, else 0. */
uint32_t vb_cma_address_scope(const struct sockaddr *addr);
/* IPv6, link-local, without its interface. */
bool vb_cma_address_lacks_scope(const struct sockaddr *addr);

/* "192.0.2.1", "fe80::1", for messages; `text` has VB_CMA_ADDRESS_TEXT bytes. */
#define VB_CMA_ADDRESS_TEXT 64
const char *vb_cma_address_text(const struct sockaddr *addr, char text[VB_CMA_ADDRESS_TEXT]);

#endif
