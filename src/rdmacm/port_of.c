/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The ports in the addresses of an id: rdma_get_src_port(3), rdma_get_dst_port(3). */
#include <rdma/rdma_cma.h>

#include "rdmacm/address.h"
#include "rdmacm/face.h"

VB_EXPORT __be16 rdma_get_src_port(struct rdma_cm_id *id)
{
	return vb_cma_address_port(&id->route.addr.src_addr);
}

VB_EXPORT __be16 rdma_get_dst_port(struct rdma_cm_id *id)
{
	return vb_cma_address_port(&id->route.addr.dst_addr);
}
