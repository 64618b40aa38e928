/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Binding an id to an address of this host. */
#ifndef VB_RDMACM_BIND_H
#define VB_RDMACM_BIND_H

#include <stdint.h>
#include <sys/socket.h>

struct vb_cma_id;
struct vb_cma_place;

/*
 * Checks an address that a program has given: not NULL, of IPv4 or IPv6, with its interface if it
 * is link-local. -EINVAL; -ENODEV: AF_IB, which is served on InfiniBand ports only.
 */
int vb_cma_bind_check(const struct sockaddr *addr, const char *call);

/*
 * Binds an idle id. Wildcards and loopback addresses name no device. With the id's lock.
 * -EADDRNOTAVAIL: no address of this host; -ENODEV: one of an interface without a device; errors of
 * rdmacm/port.h.
 */
int vb_cma_bind(struct vb_cma_id *id, const struct sockaddr *addr, const struct sockaddr *remote);

/* The id is on this place from now on, which takes over the reference. With the id's lock. */
void vb_cma_bind_place(struct vb_cma_id *id, const struct vb_cma_place *place);

#endif
