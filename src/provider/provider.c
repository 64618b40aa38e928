/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The part of this room that the face knows: the devices, and how to open one. */
#include <infiniband/verbs.h>

#include "object/context.h"
#include "device/device.h"
#include "provider/import_device.h"
#include "provider/table.h"
#include "verbs/ops.h"

static __be64 guid(struct ibv_device *device)
{
	return vb_device_of(device)->guid;
}

static int open_device(struct ibv_device *device, struct ibv_context **ctx)
{
	return vb_context_open(&vb_context_table, device, ctx);
}

const struct vb_provider vb_provider = {
	.list_devices = vb_device_list,
	.free_list = vb_device_free_list,
	.device_guid = guid,
	.open = open_device,
	.import_device = vb_import_device,
	.close = vb_context_close,
};
