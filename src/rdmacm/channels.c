/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Event channels: rdma_create_event_channel(3), rdma_destroy_event_channel(3). */
#include "rdmacm/channel.h"

#include <stdlib.h>

#include "rdmacm/devices.h"
#include "rdmacm/face.h"
#include "rdmacm/fork.h"

int vb_cma_channel_create(struct vb_cma_channel **channel)
{
	struct vb_cma_channel *made = calloc(1, sizeof(*made));
	int err;

	if (!made)
		return vb_cma_refuse_memory("create_event_channel");
	err = vb_event_queue_init(&made->queue);
	if (err) {
		free(made);
		return err;
	}
	made->pub.fd = made->queue.fd;
	made->generation = vb_cma_generation();
	atomic_init(&made->refs, 1);
	*channel = made;
	return 0;
}

void vb_cma_channel_get(struct vb_cma_channel *channel)
{
	atomic_fetch_add(&channel->refs, 1);
}

void vb_cma_channel_put(struct vb_cma_channel *channel)
{
	if (atomic_fetch_sub(&channel->refs, 1) > 1)
		return;
	vb_event_queue_fini(&channel->queue);
	free(channel);
}

VB_EXPORT struct rdma_event_channel *rdma_create_event_channel(void)
{
	struct vb_cma_channel *channel = NULL;
	int err = vb_cma_devices_exist();

	if (!err)
		err = vb_cma_channel_create(&channel);
	return err ? vb_cma_answer_null(err) : &channel->pub;
}

VB_EXPORT void rdma_destroy_event_channel(struct rdma_event_channel *pub)
{
	struct vb_cma_channel *channel = vb_cma_channel_of(pub);

	if (!channel)
		return;
	/*
	 * Threads that wait for an event go on waiting: rping and others end while one of theirs
	 * does, and take an error for a failure of the whole program.
	 */
	vb_event_queue_shut(&channel->queue);
	vb_cma_channel_put(channel);
}
