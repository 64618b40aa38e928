/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The port of a device. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "view/counter_files.h"
#include "view/counters_sum.h"
#include "view/device.h"
#include "view/files.h"
#include "view/files_put.h"
#include "view/rate.h"

static const char *state_name(enum ibv_port_state state)
{
	static const char *const names[] = {"NOP",   "DOWN",   "INIT",
					    "ARMED", "ACTIVE", "ACTIVE_DEFER"};

	return (unsigned int)state < sizeof(names) / sizeof(names[0]) ? names[state] : "?";
}

static const char *physical_name(unsigned int state)
{
	static const char *const names[] = {
		[1] = "Sleep",    [2] = "Polling",
		[3] = "Disabled", [4] = "PortConfigurationTraining",
		[5] = "LinkUp",   [6] = "LinkErrorRecovery",
		[7] = "Phy Test",
	};

	return state && state < sizeof(names) / sizeof(names[0]) ? names[state] : "<unknown>";
}

static void attributes(struct tree *t, const char *port, const struct view_device *d)
{
	const struct ibv_port_attr *a = &d->port;
	char rate[RATE_TEXT];

	put_text(t, port, "state", "%d: %s\n", a->state, state_name(a->state));
	put_text(t, port, "phys_state", "%d: %s\n", a->phys_state, physical_name(a->phys_state));
	put_text(t, port, "rate", "%s\n", rate_text(a->active_width, a->active_speed, rate));
	put_text(t, port, "lid", "0x%x\n", a->lid);
	put_text(t, port, "lid_mask_count", "%u\n", a->lmc);
	put_text(t, port, "sm_lid", "0x%x\n", a->sm_lid);
	put_text(t, port, "sm_sl", "%u\n", a->sm_sl);
	put_text(t, port, "cap_mask", "0x%08" PRIx32 "\n", a->port_cap_flags);
	put_text(t, port, "link_layer", "%s\n",
		 a->link_layer == IBV_LINK_LAYER_ETHERNET ? "Ethernet" : "InfiniBand");
	for (unsigned int i = 0; i < a->pkey_tbl_len && i < VIEW_PKEYS; i++) {
		char name[32];

		put_text(t, port, tree_path(name, sizeof(name), "pkeys/%u", i), "0x%04x\n",
			 ntohs(d->pkey[i]));
	}
}

static void gid_text(const union ibv_gid *gid, char *text, size_t size)
{
	size_t length = 0;

	for (int i = 0; i < 16; i += 2)
		length += (size_t)snprintf(text + length, size - length, "%s%02x%02x", i ? ":" : "",
					   gid->raw[i], gid->raw[i + 1]);
	snprintf(text + length, size - length, "\n");
}

/*
 * hwloc stops at the first entry that is missing, so empty ones have the zero GID. They are one
 * file of many names, which saves memory where there are hundreds of interfaces. Types and owners
 * of empty entries are absent; where the kernel answers EINVAL a file cannot.
 */
static void gids(struct tree *t, const char *port, const struct view_device *d)
{
	char path[PATH_MAX], zero[PATH_MAX] = "", text[64];

	for (uint32_t i = 0; i < d->gids && !t->error; i++) {
		tree_path(path, sizeof(path), "%s/gids/%" PRIu32, port, i);
		gid_text(&d->gid[i], text, sizeof(text));
		if (d->owner[i][0])
			tree_file(t, path, text);
		else if (*zero)
			tree_twin(t, zero, path);
		else
			tree_file(t, tree_path(zero, sizeof(zero), "%s", path), text);
	}
}

/* The folder is there without any entry, too. */
static void gid_attributes(struct tree *t, const char *port, const struct view_device *d)
{
	char path[PATH_MAX], name[32];

	tree_dir(t, tree_path(path, sizeof(path), "%s/gid_attrs/types", port));
	for (uint32_t i = 0; i < d->gids; i++) {
		if (d->owner[i][0])
			put_text(t, path, tree_path(name, sizeof(name), "%" PRIu32, i),
				 "RoCE v2\n");
	}
	tree_dir(t, tree_path(path, sizeof(path), "%s/gid_attrs/ndevs", port));
	for (uint32_t i = 0; i < d->gids; i++) {
		if (d->owner[i][0])
			put_text(t, path, tree_path(name, sizeof(name), "%" PRIu32, i), "%s\n",
				 d->owner[i]);
	}
}

static void counters(struct tree *t, const char *port)
{
	char path[PATH_MAX];

	for (unsigned int i = 0; i < counter_file_count; i++)
		tree_own_file(t,
			      tree_path(path, sizeof(path), "%s/%s/%s", port,
					counter_files[i].folder, counter_files[i].name),
			      "0\n");
	tree_file(t, tree_path(path, sizeof(path), "%s/hw_counters/lifespan", port), "10\n");
}

/* The first number of a file below the port; 0: there is none. */
static uint64_t number(const struct tree *t, const char *port, const char *name)
{
	char path[PATH_MAX], text[COUNTER_TEXT];
	int fd = openat(t->top, tree_path(path, sizeof(path), "%s/%s", port, name),
			O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);

	if (fd >= 0)
		close(fd);
	text[n > 0 ? n : 0] = '\0';
	return strtoull(text, NULL, 10);
}

/*
 * No process counts how often the link went down; the tree of before and the port of now tell. To
 * be called before the state is written.
 */
static void count_down(struct tree *t, const char *port, const struct view_device *d)
{
	static const char name[] = "counters/link_downed";
	char path[PATH_MAX];
	int fd;

	if (number(t, port, "state") != IBV_PORT_ACTIVE || d->port.state == IBV_PORT_ACTIVE)
		return;
	fd = openat(t->top, tree_path(path, sizeof(path), "%s/%s", port, name),
		    O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return;
	counters_put(fd, number(t, port, name) + 1);
	close(fd);
}

void port_files(struct tree *t, const char *port, const struct view_device *d)
{
	count_down(t, port, d);
	attributes(t, port, d);
	gids(t, port, d);
	gid_attributes(t, port, d);
	counters(t, port);
}
