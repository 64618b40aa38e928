/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Asynchronous events of contexts. */
#ifndef VB_OBJECT_ASYNC_H
#define VB_OBJECT_ASYNC_H

#include <infiniband/verbs.h>

#include "object/event_queue.h"

/* Raises an object's event on its context. Thread-safe, never blocks. */
void vb_async_raise(struct ibv_context *ctx, struct vb_event_node *node);
/* The object ends: its pending events are dropped. */
void vb_async_drop(struct ibv_context *ctx, struct vb_event_node *node);

/* ibv_get_async_event(3): blocks or not, as read(2) on async_fd does. */
int vb_async_get(struct ibv_context *ctx, struct ibv_async_event *event);

#endif
