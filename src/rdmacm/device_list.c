/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The devices of the process: rdma_get_devices(3), rdma_free_devices(3). */
#include "rdmacm/devices.h"

#include <endian.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/rdma_cma.h>

#include "base/lock.h"
#include "gsi/gsi.h"
#include "rdmacm/face.h"

enum { PORT = 1, GIDS_MOST = 256 };

struct vb_cma_device {
	struct ibv_context *verbs;
	struct ibv_pd *pd;     /* while places refer to the device */
	struct ibv_xrcd *xrcd; /* likewise, once it was asked for */
	unsigned int places;
	unsigned int lists; /* of rdma_get_devices() */
	bool listed;        /* it is in the list of devices */
	uint32_t ifindex;   /* 0: not asked for yet */
	struct vb_cma_device *next;
};

static pthread_mutex_t devices_lock = PTHREAD_MUTEX_INITIALIZER;
static struct vb_cma_device *devices;
/* There was one when somebody looked last: programs make a thousand ids before they bind the first. */
static atomic_bool seen;

void vb_cma_devices_forget(void)
{
	pthread_mutex_init(&devices_lock, NULL);
	devices = NULL;
	atomic_store(&seen, false);
}

int vb_cma_devices_exist(void)
{
	struct ibv_device **list;
	int count = 0;

	if (atomic_load(&seen))
		return 0;
	list = ibv_get_device_list(&count);
	if (!list)
		return -errno;
	ibv_free_device_list(list);
	atomic_store(&seen, count > 0);
	return count ? 0
		     : vb_refuse(ENODEV, VB_REASON_CMA_NO_DEVICE,
				 "no device: no interface is up, or VERBATIM_DEVICES leaves none");
}

/* With the lock. -errno: it was not there, and cannot be had now. */
static int note_device(struct ibv_device *ibv)
{
	struct vb_cma_device **place = &devices, *dev;

	for (; *place; place = &(*place)->next) {
		if ((*place)->verbs->device == ibv) {
			(*place)->listed = true;
			return 0;
		}
	}
	dev = calloc(1, sizeof(*dev));
	if (!dev)
		return vb_refuse(ENOMEM, VB_REASON_NO_MEMORY, "a device: no memory");
	dev->verbs = ibv_open_device(ibv);
	dev->listed = true;
	if (dev->verbs) {
		*place = dev;
		return 0;
	}
	int err = -errno;

	free(dev);
	return err;
}

/*
 * Opens what is new, and closes what is gone and unused. With the lock. -errno: a device is missing,
 * which does not hide the others.
 */
static int scan(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct vb_cma_device **place, *dev;
	int err = list ? 0 : -errno;

	atomic_store(&seen, list && list[0]);
	for (dev = devices; dev; dev = dev->next)
		dev->listed = false;
	for (int i = 0; list && list[i]; i++) {
		int one = note_device(list[i]);

		err = err ? err : one;
	}
	for (place = &devices; (dev = *place);) {
		if (dev->listed || dev->places || dev->lists) {
			place = &dev->next;
			continue;
		}
		*place = dev->next;
		ibv_close_device(dev->verbs);
		free(dev);
	}
	if (list)
		ibv_free_device_list(list);
	return err;
}

/* With the lock. */
static int take_place(struct vb_cma_device *dev, const struct ibv_gid_entry *entry,
		      struct vb_cma_place *place)
{
	struct vb_gsi_device_state state;

	if (!dev->pd)
		dev->pd = ibv_alloc_pd(dev->verbs);
	if (!dev->pd)
		return -errno;
	dev->places++;
	place->device = dev;
	place->verbs = dev->verbs;
	place->pd = dev->pd;
	place->port_num = PORT;
	place->sgid_index = (uint8_t)entry->gid_index;
	place->ifindex = entry->ndev_ifindex;
	place->gid = entry->gid;
	vb_gsi_device_look(dev->verbs->device, entry->gid.raw, &state);
	place->moves = state.moves;
	return 0;
}

static bool is_v4(const union ibv_gid *gid)
{
	static const uint8_t prefix[12] = {[10] = 0xff, [11] = 0xff};

	return !memcmp(gid->raw, prefix, sizeof(prefix));
}

/* What is looked for among the entries of the GID tables. */
struct wanted {
	const union ibv_gid *address; /* NULL: the first of an IP version on an active port */
	uint32_t scope;
	bool v4;
};

static bool is_wanted(const struct wanted *w, const struct ibv_gid_entry *entry)
{
	if (entry->gid_type != IBV_GID_TYPE_ROCE_V2)
		return false;
	if (!w->address)
		return is_v4(&entry->gid) == w->v4;
	return !memcmp(&entry->gid, w->address, sizeof(entry->gid)) &&
	       (!w->scope || w->scope == entry->ndev_ifindex);
}

static bool port_is_active(struct ibv_context *verbs)
{
	struct ibv_port_attr attr;

	return !ibv_query_port(verbs, PORT, &attr) && attr.state == IBV_PORT_ACTIVE;
}

/* With the lock. 1: not on this device. */
static int find_on(struct vb_cma_device *dev, const struct wanted *w, struct vb_cma_place *place)
{
	struct ibv_gid_entry table[GIDS_MOST];
	ssize_t count = ibv_query_gid_table(dev->verbs, table, GIDS_MOST, 0);

	for (ssize_t i = 0; i < count; i++) {
		if (is_wanted(w, &table[i]) && (w->address || port_is_active(dev->verbs)))
			return take_place(dev, &table[i], place);
	}
	return 1;
}

static int find(const struct wanted *w, struct vb_cma_place *place)
{
	int err = 1, missing = 0;

	memset(place, 0, sizeof(*place));
	vb_mutex_take(&devices_lock, VB_ORDER_CM_DEVICES);
	for (struct vb_cma_device *dev = devices; dev && err == 1; dev = dev->next)
		err = find_on(dev, w, place);
	if (err == 1) { /* it may have come with a new device */
		missing = scan();
		for (struct vb_cma_device *dev = devices; dev && err == 1; dev = dev->next)
			err = find_on(dev, w, place);
	}
	vb_mutex_release(&devices_lock);
	if (err != 1)
		return err;
	return missing ? missing : -ENODEV;
}

static struct vb_cma_device *device_on(uint32_t ifindex)
{
	struct ibv_gid_entry table[GIDS_MOST];

	for (struct vb_cma_device *dev = devices; dev; dev = dev->next) {
		if (dev->ifindex == ifindex)
			return dev;
		if (!dev->ifindex && ibv_query_gid_table(dev->verbs, table, GIDS_MOST, 0) > 0)
			dev->ifindex = table[0].ndev_ifindex;
		if (dev->ifindex == ifindex)
			return dev;
	}
	return NULL;
}

uint64_t vb_cma_device_guid(uint32_t ifindex)
{
	const struct vb_cma_device *dev;
	uint64_t guid = 0;

	vb_mutex_take(&devices_lock, VB_ORDER_CM_DEVICES);
	dev = device_on(ifindex);
	if (!dev) {
		scan();
		dev = device_on(ifindex);
	}
	if (dev)
		guid = be64toh(ibv_get_device_guid(dev->verbs->device));
	vb_mutex_release(&devices_lock);
	return guid;
}

int vb_cma_place_find(const union ibv_gid *address, uint32_t scope, struct vb_cma_place *place)
{
	const struct wanted w = {.address = address, .scope = scope};

	return find(&w, place);
}

int vb_cma_place_first(bool v4, struct vb_cma_place *place)
{
	const struct wanted w = {.v4 = v4};

	return find(&w, place);
}

void vb_cma_place_put(struct vb_cma_place *place)
{
	struct vb_cma_device *dev = place->device;

	if (!dev)
		return;
	vb_mutex_take(&devices_lock, VB_ORDER_CM_DEVICES);
	/* Domains that the program still uses stay, and serve the ids to come. */
	if (!--dev->places) {
		if (!ibv_dealloc_pd(dev->pd))
			dev->pd = NULL;
		if (dev->xrcd && !ibv_close_xrcd(dev->xrcd))
			dev->xrcd = NULL;
	}
	vb_mutex_release(&devices_lock);
	memset(place, 0, sizeof(*place));
}

struct ibv_xrcd *vb_cma_place_xrcd(const struct vb_cma_place *place)
{
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1,
		.oflags = O_CREAT,
	};
	struct ibv_xrcd *xrcd;

	vb_mutex_take(&devices_lock, VB_ORDER_CM_DEVICES);
	if (!place->device->xrcd)
		place->device->xrcd = ibv_open_xrcd(place->verbs, &attr);
	xrcd = place->device->xrcd;
	vb_mutex_release(&devices_lock);
	return xrcd;
}

VB_EXPORT struct ibv_context **rdma_get_devices(int *num_devices)
{
	struct ibv_context **list = NULL;
	struct vb_cma_device *dev;
	int count = 0, missing;
	bool any;

	vb_mutex_take(&devices_lock, VB_ORDER_CM_DEVICES);
	missing = scan();
	for (dev = devices; dev; dev = dev->next)
		count += dev->listed;
	any = count;
	if (any)
		list = calloc((size_t)count + 1, sizeof(struct ibv_context *));
	count = 0;
	for (dev = devices; list && dev; dev = dev->next) {
		if (!dev->listed)
			continue;
		dev->lists++;
		list[count++] = dev->verbs;
	}
	vb_mutex_release(&devices_lock);
	if (num_devices)
		*num_devices = count;
	if (!list)
		errno = any ? ENOMEM : missing ? -missing : ENODEV;
	return list;
}

VB_EXPORT void rdma_free_devices(struct ibv_context **list)
{
	vb_mutex_take(&devices_lock, VB_ORDER_CM_DEVICES);
	for (struct ibv_context **one = list; one && *one; one++) {
		for (struct vb_cma_device *dev = devices; dev; dev = dev->next) {
			if (dev->verbs == *one && dev->lists)
				dev->lists--;
		}
	}
	vb_mutex_release(&devices_lock);
	free(list);
}
