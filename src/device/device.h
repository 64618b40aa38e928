/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Devices: one for each network interface that is up and has an address.
 *
 * A device exists as long as a device list or a context holds it, and its address does not change
 * in that time. vb_device_refresh() brings up to date what changes with the interface (addresses,
 * link, MTU). All functions are thread-safe.
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

/* The properties of the interface that the port shows. */
struct vb_link_state {
	char ifname[IF_NAMESIZE];
	int ifindex;
	uint32_t mtu;
	bool present; /* the interface exists */
	bool running; /* it is up and has a carrier */
	uint8_t mac[6];
	uint32_t moves; /* how often the hardware address has changed */
};

struct vb_device {
	struct ibv_device ibv;
	/*
	 * The place where other libraries look for the driver's operations, to compare its address.
	 */
	const void *driver;
	__be64 guid;
	_Atomic uint32_t objects[VB_HANDLE_TYPES]; /* counted by vb_context_add() */
	_Atomic uint64_t dm_bytes;                 /* device memory in use */
	_Atomic uint64_t speed_at;                 /* ns; when `speed` was read, 0: never */
	_Atomic uint32_t speed;                    /* of the link, Mb/s */
	/* The lock of device.c guards the members below. */
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

/* Implement struct vb_provider. */
int vb_device_list(struct ibv_device ***list, int *count);
void vb_device_free_list(struct ibv_device **list);

/*
 * Finds the device of this name, also one that no list shows. *device gets it with a reference, or
 * NULL: there is none. -errno: the interfaces cannot be read.
 */
int vb_device_find(const char *name, struct vb_device **device);

void vb_device_get(struct vb_device *dev);
void vb_device_put(struct vb_device *dev);

/*
 * Reads the interfaces again, unless that was done within the last milliseconds, and raises the
 * events of the changes.
 */
void vb_device_refresh(void);
/* Does so at once: the kernel has told of a change. */
void vb_device_refresh_now(void);

/* Events of a device that no call of the program causes. */
enum vb_port_event {
	VB_EVENT_PORT_ACTIVE,
	VB_EVENT_PORT_ERR,
	VB_EVENT_GID_CHANGE,
	VB_EVENT_DEVICE_FATAL,
	VB_PORT_EVENTS
};

/*
 * Registers the function that is told of events, under the lock of the devices. For a constructor:
 * to be called before the program can have a device.
 */
void vb_device_tell(void (*told)(const struct vb_device *device, enum vb_port_event event));

/*
 * How often an interface of a device has gone, has changed its hardware address, or has other IP
 * addresses: who remembers the number sees that there was a change.
 */
uint32_t vb_device_changes(void);
/* Whether the interface of the device has the address, by the last snapshot. */
bool vb_device_has(struct vb_device *dev, const union ibv_gid *gid);

void vb_device_link(struct vb_device *dev, struct vb_link_state *link);
/* False: the entry is empty. `ifindex` may be NULL. */
bool vb_device_gid(struct vb_device *dev, uint32_t index, union ibv_gid *gid, uint32_t *ifindex);

#endif
