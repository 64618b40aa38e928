/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Connections: from one state to the next, by events of the connection manager. */
#ifndef VB_RSOCKET_CONNECT_H
#define VB_RSOCKET_CONNECT_H

#include "rsocket/socket.h"

/* Begins to connect to `rs->peer`. With the mutex. */
int vb_rs_connect_begin(struct vb_rsocket *rs);
/* Handles the events that are there. Takes the mutex. */
void vb_rs_step(struct vb_rsocket *rs);
/* Waits until the socket is connected or has failed: 0, or a negative errno. */
int vb_rs_connect_wait(struct vb_rsocket *rs);

#endif
