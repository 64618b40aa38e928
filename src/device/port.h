/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The one port of a device, whose attributes follow from its network interface. */
#ifndef VB_DEVICE_PORT_H
#define VB_DEVICE_PORT_H

#include <infiniband/verbs.h>

struct vb_device;

#define VB_PORT 1u

/* -EINVAL with the reason recorded unless `port` is the port's number. */
int vb_port_check(uint32_t port);

int vb_port_query(struct vb_device *device, uint8_t port, struct ibv_port_attr *attr);
int vb_port_query_speed(struct vb_device *device, uint32_t port, uint64_t *speed_100mbps);
int vb_port_query_pkey(uint8_t port, int index, __be16 *pkey);

/* -EINVAL: no such port or index; -ENODATA: the entry is empty. */
int vb_port_query_gid(struct vb_device *device, uint32_t port, uint32_t index,
		      struct ibv_gid_entry *entry);

/* The largest path MTU whose packets fit an interface MTU of `bytes`. */
enum ibv_mtu vb_port_mtu(uint32_t bytes);

#endif
