/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Event channels: a queue of events behind a descriptor (object/event_queue.h). A channel lives on,
 * closed, until the last id lets go of it: programs destroy channels before their ids.
 */
#ifndef VB_RDMACM_CHANNEL_H
#define VB_RDMACM_CHANNEL_H

#include <stdatomic.h>
#include <stdint.h>

#include <rdma/rdma_cma.h>

#include "object/event_queue.h"

struct vb_cma_channel {
	struct rdma_event_channel pub;
	struct vb_event_queue queue;
	_Atomic uint32_t refs; /* the program's, and one for each id */
	uint32_t generation;
};

static inline struct vb_cma_channel *vb_cma_channel_of(struct rdma_event_channel *channel)
{
	return (struct vb_cma_channel *)(void *)channel;
}

int vb_cma_channel_create(struct vb_cma_channel **channel);
void vb_cma_channel_get(struct vb_cma_channel *channel);
void vb_cma_channel_put(struct vb_cma_channel *channel);

#endif
