/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The link monitor: has the kernel tell about changed interfaces and addresses, so that contexts get GID and port events.
 *
 * It lives in the progress thread. Before that thread runs, devices look at their interfaces when they are queried.
 */
#ifndef VB_DEVICE_MONITOR_H
#define VB_DEVICE_MONITOR_H

#include "host/node.h"

/* Starts monitoring, in the progress thread. Failing is no fault of anybody's: noted, not returned. */
void vb_monitor_attach(struct vb_node *node);

#endif
