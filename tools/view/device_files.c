/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A device as a verbs device. */
#include <endian.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "view/device.h"
#include "view/files.h"
#include "view/files_put.h"

#define BOARD "verbatim"

static void put_guid(struct tree *t, const char *dir, const char *name, __be64 guid)
{
	uint64_t v = be64toh(guid);

	put_text(t, dir, name, "%04x:%04x:%04x:%04x\n", (unsigned int)(v >> 48),
		 (unsigned int)(v >> 32 & 0xffff), (unsigned int)(v >> 16 & 0xffff),
		 (unsigned int)(v & 0xffff));
}

static void link_to_pci(struct tree *t, const char *dir, const struct view_device *d)
{
	char path[PATH_MAX], target[64];

	tree_link(t, tree_path(path, sizeof(path), "%s/device", dir),
		  tree_path(target, sizeof(target), "../../../%s", d->address));
}

static void verbs_files(struct tree *t, const char *base, const struct view_device *d)
{
	char dir[PATH_MAX];

	tree_path(dir, sizeof(dir), "%s/infiniband_verbs/%s", base, d->file);
	put_text(t, dir, "ibdev", "%s\n", d->name);
	put_text(t, dir, "abi_version", "1\n");
	link_to_pci(t, dir, d);
}

void device_files(struct tree *t, const char *base, const struct view_device *d)
{
	char dir[PATH_MAX], ports[PATH_MAX];
	char host[HOST_NAME_MAX + 1] = "";

	gethostname(host, sizeof(host) - 1);
	tree_path(dir, sizeof(dir), "%s/infiniband/%s", base, d->name);
	put_text(t, dir, "node_type", "1: CA\n");
	put_guid(t, dir, "node_guid", d->attr.node_guid);
	put_guid(t, dir, "sys_image_guid", d->attr.sys_image_guid);
	put_text(t, dir, "node_desc", "%s %s\n", d->name, host);
	put_text(t, dir, "fw_ver", "%s\n", d->attr.fw_ver);
	put_text(t, dir, "hw_rev", "%" PRIx32 "\n", d->attr.hw_ver);
	put_text(t, dir, "hca_type", BOARD "\n");
	put_text(t, dir, "board_id", BOARD "\n");
	put_text(t, dir, "uevent", "NAME=%s\n", d->name);
	link_to_pci(t, dir, d);
	port_files(t, tree_path(ports, sizeof(ports), "%s/ports/%d", dir, VIEW_PORT), d);
	verbs_files(t, base, d);
}
