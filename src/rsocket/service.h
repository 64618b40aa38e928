/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The thread that does what must go on while the program computes: requests to listeners,
 * connections that are being made, their end, keepalive, the first datagram to a new address. It
 * starts with the first socket that needs it, waits for descriptors, and blocks all signals.
 */
#ifndef VB_RSOCKET_SERVICE_H
#define VB_RSOCKET_SERVICE_H

#include "rsocket/socket.h"

/* From now on the thread handles what the socket's descriptor brings. With the socket's mutex. */
int vb_rs_service_add(struct vb_rsocket *rs);
void vb_rs_service_remove(struct vb_rsocket *rs);
/* The time of the next keepalive has changed. */
void vb_rs_service_keepalive(struct vb_rsocket *rs);

void vb_rs_service_forked(void);

#endif
