/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * dma-bufs out of the arena. The kernel's udmabuf makes them of memfds that cannot shrink, such as
 * the arena. The device of udmabuf may be missing, or closed to this user, and it limits the size.
 */
#include "memory/dmabuf.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/udmabuf.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/reason.h"
#include "base/sys.h"
#include "host/arena.h"
#include "host/descriptor.h"

#define MAKER "/dev/udmabuf"

int vb_dmabuf_export(struct vb_node *node, const void *addr, size_t length)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct udmabuf_create wish = {.flags = UDMABUF_FLAGS_CLOEXEC};
	uint64_t offset;
	int maker = vb_sys_open(MAKER, O_RDWR | O_CLOEXEC);

	if (maker < 0)
		return vb_refuse(vb_system_is_short(-errno) ? errno : EOPNOTSUPP,
				 VB_REASON_UNSUPPORTED, "no dma-buf can be made: " MAKER ": %s",
				 strerror(errno));
	wish.memfd = (uint32_t)vb_arena_file(node, addr, &offset);
	wish.offset = offset;
	wish.size = (length + page - 1) / page * page;
	int fd = ioctl(maker, UDMABUF_CREATE, &wish);
	int err = errno;

	vb_sys_close(maker);
	if (fd >= 0)
		return fd;
	return vb_refuse(vb_system_is_short(-err) ? err : EOPNOTSUPP, VB_REASON_UNSUPPORTED,
			 "no dma-buf of %zu bytes can be made by " MAKER ": %s", length,
			 strerror(err));
}
