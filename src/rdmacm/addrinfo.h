/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Names to addresses (addrinfo.c). */
#ifndef VB_RDMACM_ADDRINFO_H
#define VB_RDMACM_ADDRINFO_H

#include <rdma/rdma_cma.h>

/* *result gets one entry, unless -errno is returned, or *code is a code of getaddrinfo(3). */
int vb_cma_addrinfo_make(const char *node, const char *service, const struct rdma_addrinfo *hints,
			 struct rdma_addrinfo **result, int *code);

#endif
