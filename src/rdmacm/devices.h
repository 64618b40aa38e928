/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The devices as the communication manager has them: each opened once, its context and its default
 * protection domain shared by all ids of the process, because programs compare these pointers. A
 * context that was opened stays until its device is gone and nobody refers to it.
 */
#ifndef VB_RDMACM_DEVICES_H
#define VB_RDMACM_DEVICES_H

#include <stdbool.h>
#include <stdint.h>

#include <infiniband/verbs.h>

struct vb_cma_device;

/* An address of this host on a device. */
struct vb_cma_place {
	struct vb_cma_device *device; /* a reference; NULL: none */
	struct ibv_context *verbs;
	struct ibv_pd *pd;
	uint8_t port_num;
	uint8_t sgid_index;
	uint32_t ifindex;
	union ibv_gid gid;
	uint32_t moves; /* of the interface's hardware address, as the program knows (rdmacm/removal.h) */
	bool left; /* the program knows that the address is not on the interface any more */
};

/* 0 or -ENODEV; opens none. */
int vb_cma_devices_exist(void);

/*
 * The place of the address, which is a GID; `scope` is the interface of a link-local one, else 0.
 * -ENODEV: no device has it; -errno: no protection domain. The caller has a reference to the place.
 */
int vb_cma_place_find(const union ibv_gid *address, uint32_t scope, struct vb_cma_place *place);

/*
 * The place for addresses that mean this host: the first address of the IP version on a device whose
 * port is active.
 */
int vb_cma_place_first(bool v4, struct vb_cma_place *place);

/*
 * The node GUID of the device of an interface, host order; 0: there is none. Looks for new devices
 * if it has to.
 */
uint64_t vb_cma_device_guid(uint32_t ifindex);
/* Nothing, if there is no device. */
void vb_cma_place_put(struct vb_cma_place *place);

/* The XRC domain of the place's device, one for the process; NULL with errno. */
struct ibv_xrcd *vb_cma_place_xrcd(const struct vb_cma_place *place);

/* In a forked child: the devices are the parent's. */
void vb_cma_devices_forget(void);

#endif
