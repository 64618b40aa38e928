/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Binding ports: the calls, over the shared table. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/random.h"
#include "base/reason.h"
#include "base/sys.h"
#include "gsi/port_table.h"
#include "gsi/private.h"

#define RANGE_FILE "/proc/sys/net/ipv4/ip_local_port_range"
#define RANGE_FROM 32768u
#define RANGE_TO   60999u

/* The ports that the kernel chooses from; ours are others, but people expect the same numbers. */
static void port_range(uint16_t *from, uint16_t *to)
{
	unsigned int low = 0, high = 0;
	char text[64];
	int fd = vb_sys_open(RANGE_FILE, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : vb_sys_read(fd, text, sizeof(text) - 1);

	if (fd >= 0)
		vb_sys_close(fd);
	if (n > 0) {
		text[n] = 0;
		if (sscanf(text, "%u %u", &low, &high) != 2)
			low = 0;
	}
	if (!low || low > high || high > 65535) {
		low = RANGE_FROM;
		high = RANGE_TO;
	}
	*from = (uint16_t)low;
	*to = (uint16_t)high;
}

static bool has_ended(void *arg, uint32_t seat)
{
	return seat < VB_COMMONS_SEATS && vb_gsi_seat_ended(arg, seat);
}

/* Takes the table's lock. 0, or -errno with the reason recorded. */
static int enter(struct vb_port_asker *who, bool chooses)
{
	struct vb_commons *commons = atomic_load(&vb_gsi.commons);

	memset(who, 0, sizeof(*who));
	who->number = atomic_load(&vb_gsi.number);
	if (!who->number)
		return vb_refuse(ENOTCONN, VB_REASON_ARG, "ports: the process has no GSI");
	who->seat = vb_commons_seat(commons);
	who->has_ended = has_ended;
	who->arg = commons;
	who->now = vb_gsi_boot_ns();
	if (chooses) {
		who->random = vb_random32();
		port_range(&who->port_from, &who->port_to);
	}
	if (!vb_commons_lock(commons))
		return vb_refuse(EBUSY, VB_REASON_PEER_STILL,
				 "ports: a process was stopped while it changed the table");
	return 0;
}

static void leave(const struct vb_port_asker *who)
{
	vb_commons_unlock(who->arg);
}

static int judged(int err, const char *call, uint16_t space, uint16_t port)
{
	switch (err) {
	case -EADDRINUSE:
	case -EADDRNOTAVAIL:
		return vb_refuse(-err, VB_REASON_PORT_BOUND, "%s: port %u of port space 0x%x: %s",
				 call, port, space, port ? "another id has it" : "all are in use");
	case -ENOMEM:
		return vb_refuse(ENOMEM, VB_REASON_ARG_LIMIT, "%s: %u ports are bound on this host",
				 call, VB_PORT_BINDINGS);
	case -EINVAL:
		return vb_refuse(EINVAL, VB_REASON_ARG, "%s: no port space 0x%x", call, space);
	case -ENOENT:
		return vb_refuse(ENOENT, VB_REASON_HANDLE, "%s: no such binding of this process",
				 call);
	default:
		return err;
	}
}

int vb_gsi_bind(struct vb_gsi_binding *b, uint64_t *handle)
{
	struct vb_port_asker who;
	int err = enter(&who, !b->port);

	if (err)
		return err;
	err = vb_port_bind(vb_gsi_table(), &who, b, handle);
	leave(&who);
	return judged(err, "bind", b->space, b->port);
}

int vb_gsi_listen(uint64_t handle)
{
	struct vb_port_asker who;
	int err = enter(&who, false);

	if (err)
		return err;
	err = vb_port_listen(vb_gsi_table(), &who, handle);
	leave(&who);
	return judged(err, "listen", 0, 0);
}

int vb_gsi_rebind(uint64_t handle, const uint8_t remote[16], uint16_t remote_port, bool reuse,
		  bool afonly)
{
	struct vb_gsi_binding b = {.remote_port = remote_port, .reuse = reuse, .afonly = afonly};
	struct vb_port_asker who;
	int err = enter(&who, false);

	if (err)
		return err;
	memcpy(b.remote, remote, sizeof(b.remote));
	err = vb_port_change(vb_gsi_table(), &who, handle, &b);
	leave(&who);
	return judged(err, "bind", 0, 0);
}

void vb_gsi_unbind(uint64_t handle)
{
	struct vb_port_asker who;

	if (enter(&who, false))
		return;
	vb_port_unbind(vb_gsi_table(), &who, handle);
	leave(&who);
}
