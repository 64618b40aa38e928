/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Reads devices through the public calls, for a view. */
#include "view/device.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "view/patterns.h"
#include "view/pci_address.h"
#include "view/why.h"

#define PREFIX "vb_"

static int read_pkeys(struct view_device *d, struct ibv_context *ctx)
{
	for (int i = 0; i < d->port.pkey_tbl_len && i < VIEW_PKEYS; i++) {
		if (ibv_query_pkey(ctx, VIEW_PORT, i, &d->pkey[i]))
			return EINVAL;
	}
	return 0;
}

static int read_gids(struct view_device *d, struct ibv_context *ctx)
{
	d->gids = d->port.gid_tbl_len > 0 ? (uint32_t)d->port.gid_tbl_len : 0;
	d->gid = calloc(d->gids + 1, sizeof(*d->gid));
	d->owner = calloc(d->gids + 1, sizeof(*d->owner));
	if (!d->gid || !d->owner)
		return ENOMEM;
	for (uint32_t i = 0; i < d->gids; i++) {
		struct ibv_gid_entry entry;

		if (ibv_query_gid_ex(ctx, VIEW_PORT, i, &entry, 0))
			continue;
		d->gid[i] = entry.gid;
		/* The interface may have gone since: then the entry is empty as well. */
		if (!if_indextoname(entry.ndev_ifindex, d->owner[i]))
			memset(&d->gid[i], 0, sizeof(d->gid[i]));
		else if (!d->ifindex)
			d->ifindex = entry.ndev_ifindex;
	}
	return 0;
}

static void name_device(struct view_device *d, struct ibv_device *device)
{
	const char *name = ibv_get_device_name(device);
	size_t skip = strncmp(name, PREFIX, strlen(PREFIX)) ? 0 : strlen(PREFIX);

	memcpy(d->name, device->name, sizeof(d->name));
	memcpy(d->file, device->dev_name, sizeof(d->file));
	memcpy(d->interface, device->name + skip, sizeof(d->interface));
	d->interface[sizeof(d->interface) - 1] = '\0';
	d->ifindex = if_nametoindex(d->interface);
}

/* 0, or a positive errno. */
static int read_device(struct view_device *d, struct ibv_device *device)
{
	struct ibv_context *ctx;
	int err;

	memset(d, 0, sizeof(*d));
	name_device(d, device);
	ctx = ibv_open_device(device);
	if (!ctx)
		return errno;
	err = ibv_query_device(ctx, &d->attr);
	if (!err)
		err = ibv_query_port(ctx, VIEW_PORT, &d->port);
	if (!err)
		err = read_pkeys(d, ctx);
	if (!err)
		err = read_gids(d, ctx);
	ibv_close_device(ctx);
	return err;
}

static void free_device(struct view_device *d)
{
	free(d->gid);
	free(d->owner);
}

static bool is_known(const struct view_devices *all, struct ibv_device *device)
{
	for (uint32_t i = 0; i < all->count; i++) {
		if (!strcmp(all->device[i].name, ibv_get_device_name(device)))
			return true;
	}
	return false;
}

static int append(struct view_devices *all, struct ibv_device *device)
{
	struct view_device *grown = realloc(all->device, (all->count + 1) * sizeof(*all->device));
	struct view_device *d;
	int err;

	if (!grown)
		return -ENOMEM;
	all->device = grown;
	d = &grown[all->count];
	err = read_device(d, device);
	if (!err && d->ifindex) {
		all->count++;
		return 0;
	}
	free_device(d);
	/* Only the device's own end is no failure. */
	return !err || !if_nametoindex(d->interface) ? 0 : -err;
}

static int read_list(struct view_devices *all, const char *patterns)
{
	struct ibv_device **list;
	int err = 0;

	if (*patterns ? setenv(VIEW_PATTERNS, patterns, 1) : unsetenv(VIEW_PATTERNS))
		return view_fail(-errno, "cannot set " VIEW_PATTERNS);
	list = ibv_get_device_list(NULL);
	if (!list)
		return view_fail(-errno, "no list of devices");
	for (struct ibv_device **at = list; *at && !err; at++) {
		if (is_known(all, *at))
			continue;
		err = append(all, *at);
		if (err)
			view_fail(err, "cannot read %s", ibv_get_device_name(*at));
	}
	ibv_free_device_list(list);
	return err;
}

static int by_index(const void *a, const void *b)
{
	const struct view_device *one = a, *two = b;

	return (one->ifindex > two->ifindex) - (one->ifindex < two->ifindex);
}

int view_devices_read(struct view_devices *all, const struct view_patterns *patterns)
{
	const char *set = getenv(VIEW_PATTERNS);
	char *own = set ? strdup(set) : NULL;
	int err = 0;

	memset(all, 0, sizeof(*all));
	if (set && !own)
		return view_fail(-ENOMEM, "no list of devices");
	for (uint32_t i = 0; i < patterns->count && !err; i++)
		err = read_list(all, patterns->text[i]);
	if (own)
		setenv(VIEW_PATTERNS, own, 1);
	else
		unsetenv(VIEW_PATTERNS);
	free(own);
	if (err) {
		view_devices_free(all);
		return err;
	}
	if (all->count)
		qsort(all->device, all->count, sizeof(*all->device), by_index);
	view_pci_addresses(all);
	return 0;
}

void view_devices_free(struct view_devices *all)
{
	for (uint32_t i = 0; i < all->count; i++)
		free_device(&all->device[i]);
	free(all->device);
	memset(all, 0, sizeof(*all));
}
