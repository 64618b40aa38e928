/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Importing contexts. */
#include "provider/import_device.h"

#include <errno.h>
#include <string.h>

#include "base/reason.h"
#include "device/device.h"
#include "object/context.h"
#include "object/passport.h"
#include "provider/table.h"

/* The device of this name, with a reference. */
static int find_device(const char *name, struct vb_device **device)
{
	int err = vb_device_find(name, device);

	if (err || *device)
		return err;
	return vb_refuse(ENODEV, VB_REASON_ARG, "import_device: no device %s here", name);
}

int vb_import_device(int cmd_fd, struct ibv_context **ctx)
{
	const struct vb_passport *origin;
	char name[IBV_SYSFS_NAME_MAX];
	int err = vb_passport_map(cmd_fd, &origin);

	if (err)
		return err;
	memcpy(name, origin->device, sizeof(name));
	name[sizeof(name) - 1] = '\0';
	struct vb_device *device;

	err = find_device(name, &device);
	if (!err) {
		err = vb_context_open(&vb_context_table, &device->ibv, ctx);
		vb_device_put(device);
	}
	if (err) {
		vb_passport_unmap(origin);
		return err;
	}
	vb_context_adopt(*ctx, origin, cmd_fd);
	return 0;
}
