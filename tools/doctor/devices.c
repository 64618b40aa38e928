/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The list of devices that a program gets, and the state of their ports. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <infiniband/verbs.h>

#include "doctor/apart.h"
#include "doctor/checks.h"
#include "doctor/finding.h"

#define SECONDS 10
#define TABLE   256

/*
 * Variables by which programs are told an index of the GID table. On adapters that list each address
 * for RoCE v1 and for v2, IPv4 over v2 is often at 3, so that recipes name this number.
 */
static void judge_index(const char *device, const struct ibv_gid_entry *gids, ssize_t count)
{
	static const char *const variables[] = {"NCCL_IB_GID_INDEX", "NVSHMEM_IB_GID_INDEX",
						"UCX_IB_GID_INDEX"};
	char cure[128];

	for (size_t v = 0; v < sizeof(variables) / sizeof(variables[0]) && count > 0; v++) {
		const char *value = getenv(variables[v]);
		bool there = !value || *value < '0' || *value > '9';

		for (ssize_t i = 0; i < count && !there; i++)
			there = gids[i].gid_index == strtoul(value, NULL, 10);
		if (there)
			continue;
		snprintf(cure, sizeof(cure),
			 "unset %s, or set it to an index that `verbatim devices` lists (%u)",
			 variables[v], gids[0].gid_index);
		finding_problem(cure, "device %s: %s=%s, and that place of its GID table is empty",
				device, variables[v], value);
	}
}

static void judge_active(struct ibv_context *ctx, const char *name,
			 const struct ibv_port_attr *port)
{
	struct ibv_gid_entry gids[TABLE];
	ssize_t count = ibv_query_gid_table(ctx, gids, TABLE, 0);

	if (count > 0)
		finding_ok(
			"device %s: port active, path MTU to other hosts up to %u, %zd GIDs, indices %u "
			"to %u",
			name, 128u << port->active_mtu, count, gids[0].gid_index,
			gids[count - 1].gid_index);
	else
		finding_ok("device %s: port active, no GID", name);
	judge_index(name, gids, count);
}

static void judge(struct ibv_device *device)
{
	const char *name = ibv_get_device_name(device);
	struct ibv_context *ctx = ibv_open_device(device);
	struct ibv_port_attr port;

	if (!ctx) {
		finding_problem("look at the lines above", "device %s: it cannot be opened: %s",
				name, strerror(errno));
		return;
	}
	if (ibv_query_port(ctx, 1, &port))
		finding_problem("look at the lines above", "device %s: its port cannot be asked",
				name);
	else if (port.state != IBV_PORT_ACTIVE)
		finding_note(
			"bring the interface up (ip link), or leave the device out with VERBATIM_DEVICES",
			"device %s: its port is %s; many programs take the first device in the list",
			name, ibv_port_state_str(port.state));
	else
		judge_active(ctx, name, &port);
	ibv_close_device(ctx);
}

/* The result is the number of problems. */
static int judge_all(void *unused)
{
	int count = 0;
	struct ibv_device **list = ibv_get_device_list(&count);
	const char *patterns = getenv("VERBATIM_DEVICES");

	(void)unused;
	if (!list)
		finding_problem("look at the lines above", "devices: no list: %s", strerror(errno));
	else if (!count && patterns && *patterns)
		finding_problem("unset VERBATIM_DEVICES, or VERBATIM_DEVICES='*' for all",
				"devices: none is listed, for VERBATIM_DEVICES=%s leaves them out",
				patterns);
	else if (!count)
		finding_problem("see the line about interfaces above", "devices: none is listed");
	for (int i = 0; list && i < count; i++)
		judge(list[i]);
	if (list)
		ibv_free_device_list(list);
	return (int)finding_problems();
}

static int judge_anew(void *before)
{
	return judge_all(NULL) - *(int *)before;
}

void check_devices(void)
{
	int before = (int)finding_problems();
	int found = apart_run(judge_anew, &before, SECONDS);

	if (found < 0)
		finding_problem(
			"run it again with VERBATIM_LOG=debug",
			"devices: the process that asked for the list was killed or did not end");
	else
		finding_count((unsigned int)found);
}
