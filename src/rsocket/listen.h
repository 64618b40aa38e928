/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Connections that wait to be accepted by the program. */
#ifndef VB_RSOCKET_LISTEN_H
#define VB_RSOCKET_LISTEN_H

#include "rsocket/socket.h"

int vb_rs_backlog_open(struct vb_rsocket *rs);
/* Drops a reference; a listener's also ends what waits. */
void vb_rs_backlog_close(struct vb_rsocket *rs, bool is_listener);

/* A request came to a listener: makes the child and accepts. With the listener's mutex. */
void vb_rs_request(struct vb_rsocket *listener, struct rdma_cm_event *event);
/* A child is connected, or has failed. With its mutex. */
void vb_rs_backlog_push(struct vb_rsocket *child);
/* Ends a child that nobody will accept. No call uses it. */
void vb_rs_discard(struct vb_rsocket *child);
/* The oldest; NULL if there is none. */
struct vb_rsocket *vb_rs_backlog_pop(struct vb_rsocket *listener);
bool vb_rs_backlog_has(const struct vb_rsocket *listener);
/* How many came so far. */
uint32_t vb_rs_backlog_count(const struct vb_rsocket *listener);

#endif
