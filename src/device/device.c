/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The devices of the process, and how they follow their network interfaces. */
#include "device/device.h"

#include <endian.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/fork.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/clock.h"
#include "base/reason.h"
#include "device/guid.h"
#include "device/netdev.h"
#include "device/visible.h"

/*
 * Two dumps cost about 0.1 ms, and programs query whole tables entry by entry. With hundreds of
 * interfaces dumps cost more than this age, and must not come to one for each entry.
 */
#define FRESH_NS      5000000ull
#define FRESH_SCANS   8u /* so many times what a snapshot has cost */
#define FRESH_MOST_NS 200000000ull
/* An address that a snapshot of this age has is taken for one that is there. */
#define ADDRESS_NS    1000000000ull

static struct {
	pthread_mutex_t lock;
	struct vb_device *first;
	struct vb_netdevs seen; /* the last snapshot */
	uint64_t seen_at;       /* CLOCK_MONOTONIC ns, 0: never */
	uint64_t scan_ns;       /* what the last snapshot has cost */
} devices = {.lock = PTHREAD_MUTEX_INITIALIZER};

static _Atomic uint32_t changes;

static void (*observer)(const struct vb_device *device, enum vb_port_event event);

/* Readable zeros in place of a driver's operations. */
static const char no_driver[512];

static bool is_running(const struct vb_netdev *n)
{
	return (n->flags & (IFF_UP | IFF_RUNNING)) == (IFF_UP | IFF_RUNNING);
}

static void link_of(const struct vb_netdev *n, struct vb_link_state *link)
{
	memcpy(link->ifname, n->name, sizeof(link->ifname));
	link->ifindex = n->index;
	link->mtu = n->mtu;
	link->present = true;
	link->running = is_running(n);
	memcpy(link->mac, n->mac, sizeof(link->mac));
}

/* Writes the addresses of the interface into the GID table. */
static bool update_gids(struct vb_device *dev, const struct vb_netdevs *seen)
{
	union ibv_gid want[VB_GID_TABLE * 4];
	uint32_t count = 0;

	for (uint32_t i = 0; i < seen->num_addr && count < VB_GID_TABLE * 4; i++) {
		if (dev->link.present && seen->addr[i].index == dev->link.ifindex)
			want[count++] = seen->addr[i].gid;
	}
	return vb_gid_table_update(&dev->gids, want, count);
}

/* Brings one device up to date. Returns the events that follow, as bits of enum vb_port_event. */
static uint32_t update(struct vb_device *dev, const struct vb_netdevs *seen)
{
	const struct vb_netdev *n = vb_netdevs_find(seen, dev->link.ifname);
	struct vb_link_state before = dev->link;
	uint32_t events = 0;

	if (n) {
		link_of(n, &dev->link);
		dev->link.moves += memcmp(before.mac, dev->link.mac, sizeof(before.mac)) != 0;
	} else {
		dev->link.present = false;
		dev->link.running = false;
	}
	if (update_gids(dev, seen))
		events |= 1u << VB_EVENT_GID_CHANGE;
	if (before.running && !dev->link.running)
		events |= 1u << VB_EVENT_PORT_ERR;
	if (!before.running && dev->link.running)
		events |= 1u << VB_EVENT_PORT_ACTIVE;
	if (before.present && !dev->link.present)
		events |= 1u << VB_EVENT_DEVICE_FATAL;
	if (events & (1u << VB_EVENT_DEVICE_FATAL | 1u << VB_EVENT_GID_CHANGE) ||
	    before.moves != dev->link.moves)
		atomic_fetch_add(&changes, 1);
	return events;
}

uint32_t vb_device_changes(void)
{
	return atomic_load_explicit(&changes, memory_order_relaxed);
}

void vb_device_tell(void (*told)(const struct vb_device *device, enum vb_port_event event))
{
	observer = told;
}

static void raise_events(const struct vb_device *dev, uint32_t events)
{
	for (int e = 0; e < VB_PORT_EVENTS; e++) {
		if (observer && (events & 1u << e))
			observer(dev, (enum vb_port_event)e);
	}
}

/* The caller holds the lock. After a snapshot that failed everything is as it was. */
static int refresh(uint64_t max_age)
{
	struct vb_netdevs seen;
	uint64_t now = vb_clock_ns();
	int err;

	if (devices.seen_at && now - devices.seen_at < max_age)
		return 0;
	err = vb_netdevs_scan(&seen);
	if (err)
		return err;
	vb_netdevs_free(&devices.seen);
	devices.seen = seen;
	devices.seen_at = now;
	devices.scan_ns = vb_clock_ns() - now;
	for (struct vb_device *dev = devices.first; dev; dev = dev->next)
		raise_events(dev, update(dev, &seen));
	return 0;
}

/* The caller holds the lock. How old a snapshot may be that answers a query. */
static uint64_t fresh_ns(void)
{
	uint64_t age = devices.scan_ns * FRESH_SCANS;

	if (age > FRESH_MOST_NS)
		age = FRESH_MOST_NS;
	return age > FRESH_NS ? age : FRESH_NS;
}

void vb_device_refresh(void)
{
	vb_mutex_take(&devices.lock, VB_ORDER_DEVICES);
	refresh(fresh_ns());
	vb_mutex_release(&devices.lock);
}

void vb_device_refresh_now(void)
{
	vb_mutex_take(&devices.lock, VB_ORDER_DEVICES);
	refresh(0);
	vb_mutex_release(&devices.lock);
}

static void name_device(struct ibv_device *d, const char *ifname)
{
	d->node_type = IBV_NODE_CA;
	d->transport_type = IBV_TRANSPORT_IB;
	snprintf(d->name, sizeof(d->name), "vb_%s", ifname);
	snprintf(d->dev_name, sizeof(d->dev_name), "uverbs_%s", ifname);
	snprintf(d->dev_path, sizeof(d->dev_path), "/sys/class/infiniband_verbs/%s", d->dev_name);
	snprintf(d->ibdev_path, sizeof(d->ibdev_path), "/sys/class/infiniband/%s", d->name);
}

static struct vb_device *make_device(const struct vb_netdev *n)
{
	struct vb_device *dev = calloc(1, sizeof(*dev));
	char machine[256];

	if (!dev)
		return NULL;
	vb_guid_machine(machine, sizeof(machine));
	name_device(&dev->ibv, n->name);
	dev->driver = no_driver;
	dev->guid = htobe64(vb_guid_of(n, machine));
	link_of(n, &dev->link);
	update_gids(dev, &devices.seen);
	dev->next = devices.first;
	devices.first = dev;
	return dev;
}

static bool has_address(const struct vb_netdev *n)
{
	for (uint32_t i = 0; i < devices.seen.num_addr; i++) {
		if (devices.seen.addr[i].index == n->index)
			return true;
	}
	return false;
}

static struct vb_device *find_or_make(const struct vb_netdev *n)
{
	for (struct vb_device *dev = devices.first; dev; dev = dev->next) {
		if (!strcmp(dev->link.ifname, n->name))
			return dev;
	}
	return make_device(n);
}

static void put(struct vb_device *dev)
{
	struct vb_device **at = &devices.first;

	if (--dev->refs)
		return;
	while (*at != dev)
		at = &(*at)->next;
	*at = dev->next;
	free(dev);
}

void vb_device_get(struct vb_device *dev)
{
	vb_mutex_take(&devices.lock, VB_ORDER_DEVICES);
	dev->refs++;
	vb_mutex_release(&devices.lock);
}

void vb_device_put(struct vb_device *dev)
{
	vb_mutex_take(&devices.lock, VB_ORDER_DEVICES);
	put(dev);
	vb_mutex_release(&devices.lock);
}

/* A device list in the making. The caller holds the lock. */
struct listing {
	struct ibv_device **list;
	const char *patterns;
	int count;
	bool all;     /* include every device, without regard to patterns and defaults */
	bool running; /* one of the listed devices has a running link */
};

/* Loopback devices come last. */
static bool shown(const struct listing *l, const struct vb_device *dev, bool loopback)
{
	enum vb_wish wish = vb_wish_of(l->patterns, dev->ibv.name);
	bool listed = l->all || wish == VB_WISH_SHOW ||
		      (wish == VB_WISH_DEFAULT && !(loopback && l->running));

	if (!listed)
		vb_log(VB_LOG_INFO, "device %s is not listed: %s", dev->ibv.name,
		       wish == VB_WISH_HIDE ? "VERBATIM_DEVICES leaves it out"
					    : "another device has a running link");
	return listed;
}

/*
 * Appends the loopback interfaces, or all others. Loopback devices come last, because a program
 * that takes the first device needs one that reaches other hosts. -ENOMEM.
 */
static int collect(struct listing *l, unsigned int loopback)
{
	for (uint32_t i = 0; i < devices.seen.num_dev; i++) {
		const struct vb_netdev *n = &devices.seen.dev[i];
		struct vb_device *dev;

		if (!(n->flags & IFF_UP) || (n->flags & IFF_LOOPBACK) != loopback ||
		    !has_address(n))
			continue;
		dev = find_or_make(n);
		if (!dev)
			return vb_refuse(ENOMEM, VB_REASON_NO_MEMORY, "no memory for device vb_%s",
					 n->name);
		dev->refs++;
		if (!shown(l, dev, loopback)) {
			put(dev);
			continue;
		}
		l->list[l->count++] = &dev->ibv;
		l->running |= is_running(n);
	}
	return 0;
}

static void list_free(struct ibv_device **list)
{
	for (struct ibv_device **d = list; d && *d; d++)
		put(vb_device_of(*d));
	free(list);
}

static int list_make(struct listing *l)
{
	int err = refresh(0);

	if (err)
		return err;
	l->list = calloc(devices.seen.num_dev + 1, sizeof(*l->list));
	if (!l->list)
		return vb_refuse(ENOMEM, VB_REASON_NO_MEMORY, "no memory for a device list");
	err = collect(l, 0);
	if (!err)
		err = collect(l, IFF_LOOPBACK);
	if (err)
		list_free(l->list);
	return err;
}

#define NONE_TEXT 384

/* Why the list is empty: what each interface lacks. The caller holds the lock. */
static void explain_none(char text[NONE_TEXT])
{
	size_t used = 0;

	text[0] = '\0';
	for (uint32_t i = 0; i < devices.seen.num_dev && used < NONE_TEXT; i++) {
		const struct vb_netdev *n = &devices.seen.dev[i];
		const char *why = !(n->flags & IFF_UP) ? "is down"
				  : !has_address(n)    ? "has no address"
						       : "is left out by VERBATIM_DEVICES";

		used += (size_t)snprintf(text + used, NONE_TEXT - used, "%s%s %s", used ? ", " : "",
					 n->name, why);
	}
}

int vb_device_list(struct ibv_device ***list, int *count)
{
	char none[NONE_TEXT];
	struct listing l = {.patterns = vb_wish_patterns()};
	int err;

	vb_fork_prepare(); /* before a thread can hold the lock */
	vb_mutex_take(&devices.lock, VB_ORDER_DEVICES);
	err = list_make(&l);
	if (!err && !l.count)
		explain_none(none);
	vb_mutex_release(&devices.lock);
	if (!err && !l.count)
		vb_note_refused(ENODEV, VB_REASON_NO_DEVICE,
				"get_device_list: the list is empty: %s",
				none[0] ? none : "there is no network interface");
	*count = err ? 0 : l.count;
	if (!err)
		*list = l.list;
	return err;
}

int vb_device_find(const char *name, struct vb_device **device)
{
	struct listing l = {.all = true};
	int err;

	*device = NULL;
	vb_fork_prepare();
	vb_mutex_take(&devices.lock, VB_ORDER_DEVICES);
	err = list_make(&l);
	for (int i = 0; !err && i < l.count && !*device; i++) {
		if (!strcmp(l.list[i]->name, name)) {
			*device = vb_device_of(l.list[i]);
			(*device)->refs++;
		}
	}
	if (!err)
		list_free(l.list);
	vb_mutex_release(&devices.lock);
	return err;
}

void vb_device_free_list(struct ibv_device **list)
{
	vb_mutex_take(&devices.lock, VB_ORDER_DEVICES);
	list_free(list);
	vb_mutex_release(&devices.lock);
}

void vb_device_link(struct vb_device *dev, struct vb_link_state *link)
{
	vb_mutex_take(&devices.lock, VB_ORDER_DEVICES);
	*link = dev->link;
	vb_mutex_release(&devices.lock);
}

bool vb_device_gid(struct vb_device *dev, uint32_t index, union ibv_gid *gid, uint32_t *ifindex)
{
	bool used = false;

	vb_mutex_take(&devices.lock, VB_ORDER_DEVICES);
	if (index < VB_GID_TABLE && dev->gids.used[index]) {
		used = true;
		*gid = dev->gids.gid[index];
		if (ifindex)
			*ifindex = (uint32_t)dev->link.ifindex;
	}
	vb_mutex_release(&devices.lock);
	return used;
}

bool vb_device_has(struct vb_device *dev, const union ibv_gid *gid)
{
	bool has = false;

	vb_mutex_take(&devices.lock, VB_ORDER_DEVICES);
	for (uint32_t i = 0; i < VB_GID_TABLE && !has; i++)
		has = dev->gids.used[i] && !memcmp(&dev->gids.gid[i], gid, sizeof(*gid));
	vb_mutex_release(&devices.lock);
	return has;
}

/* The caller holds the lock. The interface that has the address; 0: none has. */
static uint32_t interface_of(const union ibv_gid *gid)
{
	for (uint32_t i = 0; i < devices.seen.num_addr; i++) {
		if (!memcmp(&devices.seen.addr[i].gid, gid, sizeof(*gid)))
			return (uint32_t)devices.seen.addr[i].index;
	}
	return 0;
}

uint32_t vb_gid_interface(const union ibv_gid *gid)
{
	uint32_t ifindex = 0;

	vb_mutex_take(&devices.lock, VB_ORDER_DEVICES);
	if (devices.seen_at && vb_clock_ns() - devices.seen_at < ADDRESS_NS)
		ifindex = interface_of(gid);
	if (!ifindex) {
		refresh(fresh_ns());
		ifindex = interface_of(gid);
	}
	vb_mutex_release(&devices.lock);
	return ifindex;
}

bool vb_gid_is_local(const union ibv_gid *gid)
{
	bool local = vb_gid_is_loopback(gid);

	if (local)
		return true;
	vb_mutex_take(&devices.lock, VB_ORDER_DEVICES);
	refresh(fresh_ns());
	local = interface_of(gid);
	vb_mutex_release(&devices.lock);
	return local;
}

static void fork_lock(void)
{
	vb_mutex_take(&devices.lock, VB_ORDER_DEVICES);
}

static void fork_unlock(void)
{
	vb_mutex_release(&devices.lock);
}

/* The lock is held across the fork, so the child finds the list whole. */
VB_FORK_HOOK(.phase = VB_FORK_DEVICES, .before = fork_lock, .parent = fork_unlock,
	     .child = fork_unlock);
