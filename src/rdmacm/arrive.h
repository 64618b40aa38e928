/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What happens when the program reads an event: no RTU leaves, and no queue pair changes, before it
 * looks, because programs post receives until then. struct vb_cma_event.arrive.
 */
#ifndef VB_RDMACM_ARRIVE_H
#define VB_RDMACM_ARRIVE_H

#include "rdmacm/event.h"

/* The new id gets its device. A request that came over none is rejected, and nobody is told. */
bool vb_cma_arrive_request(struct vb_cma_event *event);

/*
 * With id->qp: the queue pair becomes ready to receive and to send, RTU leaves, and the event becomes
 * ESTABLISHED; or CONNECT_ERROR, and the peer is told. Without: the rest is the program's.
 */
bool vb_cma_arrive_response(struct vb_cma_event *event);

/* The queue pair of a rejected connection goes to the error state. */
bool vb_cma_arrive_rejected(struct vb_cma_event *event);

/* The end of a connection that failed here was reported already. */
bool vb_cma_arrive_end(struct vb_cma_event *event);

#endif
