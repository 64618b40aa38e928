/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What programs may know of this library beyond verbs: the codes by which a parent domain's allocator learns what the memory
 * is for (ibv_alloc_parent_domain(3)).
 */
#ifndef INFINIBAND_VERBATIM_H
#define INFINIBAND_VERBATIM_H

#include <infiniband/ib_user_ioctl_verbs.h>
#include <stdint.h>

/* The lower 32 bits of resource_type. Values never change their meaning. */
enum verbatim_resource {
	VERBATIM_RESOURCE_SEND_QUEUE = 1, /* send queue of a queue pair */
	VERBATIM_RESOURCE_RECV_QUEUE = 2, /* receive queue of a queue pair */
	VERBATIM_RESOURCE_SRQ = 3,        /* shared receive queue */
	VERBATIM_RESOURCE_CQ = 4,         /* entries of a completion queue */
};

/* The upper 32 bits: the kernel numbers drivers, and this device has none in it. */
#define VERBATIM_DRIVER_ID               RDMA_DRIVER_UNKNOWN

#define VERBATIM_RESOURCE_TYPE(resource) ((uint64_t)VERBATIM_DRIVER_ID << 32 | (uint64_t)(resource))

#endif
