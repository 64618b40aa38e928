/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The link monitor: the kernel tells of changed interfaces and addresses, so that contexts get GID
 * and port events. It is a route socket among the descriptors that the progress thread watches.
 * Before that thread runs, devices read their interfaces when they are queried.
 */
#include <errno.h>
#include <linux/rtnetlink.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fork.h"
#include "base/lock.h"
#include "base/reason.h"
#include "base/sys.h"
#include "device/device.h"
#include "process/process.h"
#include "host/descriptor.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int watched = -1;

/*
 * The content of the messages does not matter, because a new snapshot is taken. ENOBUFS (messages
 * were lost) is as good as a message.
 */
static void on_change(void *arg)
{
	char buf[8192];
	bool changed = false;

	(void)arg;
	if (!vb_descriptor_ours(watched))
		return;
	while (vb_sys_recv(watched, buf, sizeof(buf), MSG_DONTWAIT) >= 0 || errno == ENOBUFS)
		changed = true;
	if (changed)
		vb_device_refresh_now();
}

static int open_socket(void)
{
	struct sockaddr_nl addr = {
		.nl_family = AF_NETLINK,
		.nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR,
	};
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
	int err;

	if (fd < 0)
		return -errno;
	fd = vb_descriptor_adopt(fd);
	if (!bind(fd, (const struct sockaddr *)&addr, sizeof(addr)))
		return fd;
	err = -errno;
	vb_descriptor_close(fd);
	return err;
}

/* A failure is noted, not returned: devices then read their interfaces when they are queried. */
static void attach(struct vb_node *node)
{
	int fd = -1;
	int err = 0;

	vb_mutex_take(&lock, VB_ORDER_MONITOR);
	if (watched < 0) {
		fd = open_socket();
		err = fd < 0 ? fd : 0;
		if (!err) {
			watched = fd;
			err = vb_node_watch(node, fd, on_change, NULL);
		}
		if (err && fd >= 0) {
			watched = -1;
			vb_descriptor_close(fd);
		}
	}
	vb_mutex_release(&lock);
	if (err)
		vb_note(VB_REASON_SYSTEM, "link monitor: %s; changes are noticed by queries only",
			strerror(-err));
	if (fd >= 0 && !err)
		vb_device_refresh_now(); /* changes from before the socket existed */
}

/* In a forked child: the monitor belongs to the parent. */
static void forked(void)
{
	pthread_mutex_init(&lock, NULL);
	vb_descriptor_close(watched);
	watched = -1;
}

VB_PROCESS_HOOK(.progress_starts = attach);

VB_FORK_HOOK(.phase = VB_FORK_ROOMS, .child = forked);
