/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Counts forks, and lets a child begin anew. */
#include "rdmacm/fork.h"

#include <pthread.h>

#include "rdmacm/addrinfo.h"
#include "rdmacm/devices.h"
#include "rdmacm/face.h"
#include "rdmacm/id_list.h"
#include "rdmacm/manager.h"

static uint32_t generation;

static void in_child(void)
{
	generation++;
	vb_cma_id_list_forget();
	vb_cma_addrinfo_forget();
	vb_cma_devices_forget();
	vb_cma_manager_forget();
}

__attribute__((constructor)) static void prepare(void)
{
	(void)pthread_atfork(NULL, NULL, in_child);
}

uint32_t vb_cma_generation(void)
{
	return generation;
}

int vb_cma_check_generation(uint32_t made, const char *what)
{
	if (made == generation)
		return 0;
	return vb_refuse(ENODEV, VB_REASON_FORKED, "%s: the object belongs to the parent process",
			 what);
}
