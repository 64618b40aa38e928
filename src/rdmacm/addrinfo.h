/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Names to addresses (addrinfo.c). */
#ifndef VB_RDMACM_ADDRINFO_H
#define VB_RDMACM_ADDRINFO_H

#include <rdma/rdma_cma.h>

struct vb_cma_id;

/* What is refused without looking anything up. */
int vb_cma_addrinfo_check(const char *node, const char *service, const struct rdma_addrinfo *hints);
/* What of the hints counts, into *copy; -ENOMEM. The addresses are the caller's to free, in any case. */
int vb_cma_addrinfo_copy_hints(const struct rdma_addrinfo *hints, struct rdma_addrinfo *copy);

/* The id goes: it is not told of what is looked up for it. No lock is held. */
void vb_cma_addrinfo_abandon(struct vb_cma_id *id);
/* In a forked child. */
void vb_cma_addrinfo_forget(void);

/* After the check. *result gets one entry, unless -errno is returned, or *code is a code of getaddrinfo(3). */
int vb_cma_addrinfo_make(const char *node, const char *service, const struct rdma_addrinfo *hints,
			 struct rdma_addrinfo **result, int *code);

#endif
