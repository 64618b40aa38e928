/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The device list, and opening and closing a device: ibv_get_device_list(3), ibv_open_device(3). */
#include "verbs/face.h"
#include "verbs/slots.h"

VB_EXPORT struct ibv_device **ibv_get_device_list(int *num_devices)
{
	struct ibv_device **list = NULL;
	int count = 0;
	int err = vb_provider.list_devices(&list, &count);

	if (num_devices)
		*num_devices = err ? 0 : count;
	return err ? vb_answer_null(err) : list;
}

VB_EXPORT void ibv_free_device_list(struct ibv_device **list)
{
	if (list)
		vb_provider.free_list(list);
}

VB_EXPORT const char *ibv_get_device_name(struct ibv_device *device)
{
	if (!device)
		return vb_answer_null(vb_refuse_null("get_device_name", "device"));
	return device->name;
}

/*
 * Programs ask the kernel's RDMA subsystem about the number: to it the device is unknown, which -1
 * says.
 */
VB_EXPORT int ibv_get_device_index(struct ibv_device *device)
{
	if (!device)
		return vb_answer_minus_one(vb_refuse_null("get_device_index", "device"));
	return -1;
}

VB_EXPORT __be64 ibv_get_device_guid(struct ibv_device *device)
{
	if (!device) {
		errno = -vb_refuse_null("get_device_guid", "device");
		return 0;
	}
	return vb_provider.device_guid(device);
}

VB_EXPORT struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	struct ibv_context *ctx = NULL;
	int err;

	if (!device)
		return vb_answer_null(vb_refuse_null("open_device", "device"));
	err = vb_provider.open(device, &ctx);
	if (err)
		return vb_answer_null(err);
	vb_slots_fill(ctx);
	return ctx;
}

VB_EXPORT int ibv_close_device(struct ibv_context *ctx)
{
	if (!ctx)
		return vb_answer_minus_one(vb_refuse_null("close_device", "context"));
	return vb_answer_minus_one(vb_provider.close(ctx));
}
