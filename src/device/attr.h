/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The attributes of a device. */
#ifndef VB_DEVICE_ATTR_H
#define VB_DEVICE_ATTR_H

#include <infiniband/verbs.h>

struct vb_device;

int vb_attr_query(const struct vb_device *device, struct ibv_device_attr_ex *attr);

/* The clock of completion timestamps: nanoseconds of CLOCK_MONOTONIC. */
int vb_attr_query_clock(struct ibv_values_ex *values);

#endif
