/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Sources of changes for a kept view. */
#include "view/changes.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/port_counters.h"
#include "view/tree.h"

enum { ROOM = 8192 };

static int open_route(void)
{
	struct sockaddr_nl addr = {
		.nl_family = AF_NETLINK,
		.nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR,
	};
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);

	if (fd >= 0 && bind(fd, (const struct sockaddr *)&addr, sizeof(addr))) {
		close(fd);
		fd = -1;
	}
	return fd;
}

void changes_open(struct changes *c, const char *dir)
{
	c->route = open_route();
	c->notify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	c->latest = 0;
	changes_watch(c, dir);
}

void changes_close(struct changes *c)
{
	if (c->route >= 0)
		close(c->route);
	if (c->notify >= 0)
		close(c->notify);
	c->route = c->notify = -1;
}

static bool watch(struct changes *c, int wd)
{
	if (wd <= c->latest)
		return false;
	c->latest = wd;
	return true;
}

/* Watching a folder that is watched already changes nothing. */
bool changes_watch(struct changes *c, const char *dir)
{
	static const char *const folders[] = {
		"",
		"sys",
		"sys/class",
		"sys/class/infiniband",
		"sys/class/infiniband_verbs",
		"sys/bus/pci/devices",
		"sys/devices",
		"dev",
		"dev/infiniband",
	};
	const uint32_t gone = IN_DELETE | IN_DELETE_SELF | IN_MOVED_FROM | IN_MOVE_SELF |
			      IN_ONLYDIR;
	char path[PATH_MAX];
	bool any = false;

	if (c->notify < 0)
		return false;
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		tree_path(path, sizeof(path), "%s/%s", dir, folders[i]);
		any |= watch(c, inotify_add_watch(c->notify, path, gone));
	}
	/* A process that begins to count. */
	c->counters = inotify_add_watch(c->notify,
					tree_path(path, sizeof(path), "%s/" VB_COUNTER_FOLDER, dir),
					gone | IN_CREATE);
	return watch(c, c->counters) || any;
}

bool changes_route(struct changes *c)
{
	char room[ROOM];
	bool any = false;
	ssize_t n;

	while ((n = read(c->route, room, sizeof(room))) > 0 || (n < 0 && errno == ENOBUFS))
		any = true;
	return any;
}

/* What each writing leaves and removes itself. */
static bool is_scratch(const struct inotify_event *e)
{
	return e->len && !strcmp(e->name, TREE_SCRATCH);
}

struct changes_seen changes_files(struct changes *c)
{
	_Alignas(struct inotify_event) char room[ROOM];
	struct changes_seen seen = {0};
	ssize_t n;

	while ((n = read(c->notify, room, sizeof(room))) > 0) {
		for (ssize_t at = 0; at < n;) {
			const struct inotify_event *e =
				(const struct inotify_event *)(const void *)(room + at);

			/* The end of the folder itself is a change of the tree. */
			if (e->wd == c->counters && !(e->mask & (IN_DELETE_SELF | IN_MOVE_SELF)))
				seen.counters = true;
			else if (!is_scratch(e))
				seen.tree = true;
			at += (ssize_t)(sizeof(*e) + e->len);
		}
	}
	return seen;
}
