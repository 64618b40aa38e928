/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Devices: one for each network interface that is up and has an address.
 *
 * A device exists while a device list or a context holds it, and has the same address for as long. What changes with the
 * interface (addresses, link, MTU) is brought up to date by vb_device_refresh(). All functions are thread-safe.
 */
#ifndef VB_DEVICE_DEVICE_H
#define VB_DEVICE_DEVICE_H

#include <infiniband/verbs.h>
#include <net/if.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "device/gid.h"
#include "process/limits.h"

/* What of the interface matters to the port. */
struct vb_link_state {
	char ifname[IF_NAMESIZE];
	int ifindex;
	uint32_t mtu;
	bool present; /* the interface exists */
	bool running; /* it is up and has a carrier */
};

struct vb_device {
	struct ibv_device ibv;
	const void *
		driver; /* where other libraries look for the driver's operations, and compare the address */
	__be64 guid;
	_Atomic uint32_t objects[VB_HANDLE_TYPES]; /* what vb_context_add() has counted */
	_Atomic uint64_t dm_bytes;                 /* device memory in use */
	/* The rest under the lock of device.c. */
	uint32_t refs;
	struct vb_link_state link;
	struct vb_gid_table gids;
	struct vb_device *next;
};

_Static_assert(offsetof(struct vb_device, driver) == 664,
	       "providers read a pointer right behind struct ibv_device");

static inline struct vb_device *vb_device_of(struct ibv_device *device)
{
	return (struct vb_device *)(void *)device;
}

/* Of struct vb_provider. */
int vb_device_list(struct ibv_device ***list, int *count);
void vb_device_free_list(struct ibv_device **list);

/* The device of this name, also one that no list shows, with a reference; NULL: there is none. -errno: the interfaces cannot be read. */
int vb_device_find(const char *name, struct vb_device **device);

void vb_device_get(struct vb_device *dev);
void vb_device_put(struct vb_device *dev);

/* Looks at the interfaces again, unless that was done within the last milliseconds, and raises the events of what changed. */
void vb_device_refresh(void);
/* The same at once: the kernel said that something has changed. */
void vb_device_refresh_now(void);

/* What happens to a device without anybody's doing. */
enum vb_port_event {
	VB_EVENT_PORT_ACTIVE,
	VB_EVENT_PORT_ERR,
	VB_EVENT_GID_CHANGE,
	VB_EVENT_DEVICE_FATAL,
	VB_PORT_EVENTS
};

/* Who is told of it, under the lock of the devices. For a constructor: before the program can have a device. */
void vb_device_tell(void (*told)(const struct vb_device *device, enum vb_port_event event));

void vb_device_link(struct vb_device *dev, struct vb_link_state *link);
/* False: the slot is empty. `ifindex` may be NULL. */
bool vb_device_gid(struct vb_device *dev, uint32_t index, union ibv_gid *gid, uint32_t *ifindex);

#endif
