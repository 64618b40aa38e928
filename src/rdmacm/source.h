/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Questions to the kernel's addresses and routes, asked with a UDP socket that sends nothing. The
 * system calls are made directly: a library that replaces socket(2) must not see them.
 */
#ifndef VB_RDMACM_SOURCE_H
#define VB_RDMACM_SOURCE_H

#include <stdint.h>
#include <sys/socket.h>

/* 0: it is an address of this host; -EADDRNOTAVAIL, or another negative errno. */
int vb_cma_source_check(const struct sockaddr *addr);

/*
 * From which address packets to `destination` leave. `bound` (NULL: none) is the address that must
 * be used. *source gets it, without a port. -ENETUNREACH, -EHOSTUNREACH, -EINVAL (a link-local
 * destination without its interface), -errno.
 */
int vb_cma_source_find(const struct sockaddr *bound, const struct sockaddr *destination,
		       uint8_t tos, struct sockaddr_storage *source);

/* Bytes that the interface carries; 0: it is not known. */
uint32_t vb_cma_interface_mtu(uint32_t ifindex);

#endif
