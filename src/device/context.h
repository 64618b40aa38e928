/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* An open device. The public context is the last member of verbs_context, so that ours stands before it (ABI). */
#ifndef VB_DEVICE_CONTEXT_H
#define VB_DEVICE_CONTEXT_H

#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stddef.h>

#include "device/event_queue.h"
#include "device/handle.h"
#include "verbs/ops.h"

struct vb_device;

/* What a context counts per object type, to keep the limits. The sums are per device and process. */
struct vb_context {
	struct vb_face face;	      /* vctx.priv points here */
	struct vb_device *device;
	struct vb_event_queue async;
	struct vb_event_node port_event[4]; /* PORT_ACTIVE, PORT_ERR, GID_CHANGE, DEVICE_FATAL */
	struct vb_handle_table handles[VB_HANDLE_TYPES];
	pthread_mutex_t lock;
	struct vb_context *next;      /* all contexts of the process (context.c) */
	struct verbs_context vctx;    /* .context is what programs see */
};

static inline struct vb_context *vb_context_of(struct ibv_context *ctx)
{
	return (struct vb_context *)(void *)((char *)ctx - offsetof(struct vb_context, vctx.context));
}

/* -ENOENT with the reason recorded unless ctx's handle table says that `handle` names `object`. `what` for the message: "cq". */
int vb_context_check(struct ibv_context *ctx, enum vb_handle_type type, uint32_t handle, const void *object, const char *what);

#endif
