/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Functions that this library does not serve yet: they refuse. They are here so that a program which
 * was linked with them starts. tests/abi/symbols-rdmacm-later.txt has what is missing altogether.
 */
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

#include "rdmacm/face.h"

VB_EXPORT int rdma_join_multicast(struct rdma_cm_id *id, struct sockaddr *addr, void *context)
{
	(void)id;
	(void)addr;
	(void)context;
	return vb_cma_answer(-EOPNOTSUPP);
}

VB_EXPORT int rdma_leave_multicast(struct rdma_cm_id *id, struct sockaddr *addr)
{
	(void)id;
	(void)addr;
	return vb_cma_answer(-EOPNOTSUPP);
}

VB_EXPORT int rdma_join_multicast_ex(struct rdma_cm_id *id,
				     struct rdma_cm_join_mc_attr_ex *mc_join_attr, void *context)
{
	(void)id;
	(void)mc_join_attr;
	(void)context;
	return vb_cma_answer(-EOPNOTSUPP);
}
