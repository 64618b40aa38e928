/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What programs say of a connection, checked and completed: rdma_connect(3), rdma_accept(3). */
#ifndef VB_RDMACM_PARAM_H
#define VB_RDMACM_PARAM_H

#include <rdma/rdma_cma.h>

#include "wire/cm_message.h"

struct vb_cma_id;
struct vb_cma_exchange;

/*
 * Completes `given` (NULL: the device's limits, retries without end) into `full`. `request` are the
 * depths that the peer asked for, NULL for the side that connects. -EINVAL: more than the device
 * can, or more than `private_most` bytes of private data.
 */
int vb_cma_param_complete(const struct vb_cma_id *id, const struct rdma_conn_param *given,
			  const struct vb_cma_exchange *request, unsigned int private_most,
			  const char *call, struct rdma_conn_param *full);

/* The transport service of the id's queue pairs, enum vb_cm_service. */
uint8_t vb_cma_param_service(const struct vb_cma_id *id);

#endif
