/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Which device tests use. */
#include "support/device.h"

#include <stdlib.h>
#include <string.h>

#include "support/check.h"

static bool wanted(const char *name)
{
	const char *only = getenv("VB_TEST_DEVICE");

	return only && *only ? strcmp(name, only) == 0 : strncmp(name, "vb_", 3) == 0;
}

struct ibv_context *device_open(void)
{
	struct ibv_device **list;
	struct ibv_context *context = NULL;
	int count = 0;
	int i;

	list = ibv_get_device_list(&count);
	CHECK_SAY(list, "ibv_get_device_list: errno %d", errno);
	for (i = 0; i < count && !context; i++)
		if (wanted(ibv_get_device_name(list[i]))) {
			context = ibv_open_device(list[i]);
			CHECK_SAY(context, "ibv_open_device(%s): errno %d",
				  ibv_get_device_name(list[i]), errno);
		}
	ibv_free_device_list(list);
	CHECK_SAY(context, "no device to test on among %d", count);
	return context;
}
