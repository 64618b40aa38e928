/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What a view shows of one device, as the public calls of the library answer. */
#ifndef TOOLS_VIEW_DEVICE_H
#define TOOLS_VIEW_DEVICE_H

#include <infiniband/verbs.h>
#include <net/if.h>
#include <stdint.h>

enum { VIEW_PORT = 1, VIEW_ADDRESS = sizeof("7662:00:00.0"), VIEW_PKEYS = 16 };

struct view_device {
	char name[IBV_SYSFS_NAME_MAX]; /* "vb_eth0" */
	char file[IBV_SYSFS_NAME_MAX]; /* "uverbs_eth0" */
	char interface[IF_NAMESIZE];   /* "eth0" */
	uint32_t ifindex;
	char address[VIEW_ADDRESS]; /* PCI address, "7662:02:00.0" */
	struct ibv_device_attr attr;
	struct ibv_port_attr port;
	__be16 pkey[VIEW_PKEYS];
	uint32_t gids; /* entries of the table */
	union ibv_gid *gid;
	char (*owner)[IF_NAMESIZE]; /* of each entry; "": the entry is empty */
};

struct view_devices {
	struct view_device *device;
	uint32_t count;
};

struct view_patterns;

/*
 * Reads all devices that a list shows under one of the patterns. A device that ends while it is
 * read is left out. 0, or -errno with view_why().
 */
int view_devices_read(struct view_devices *devices, const struct view_patterns *patterns);
void view_devices_free(struct view_devices *devices);

#endif
