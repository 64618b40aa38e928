/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Keeping descriptors of the device away from the numbers that a program reuses. */
#include "device/descriptor.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/sys.h"

#define FIRST_NUMBER 256

int vb_descriptor_move_up(int fd)
{
	int moved;

	if (fd < 0 || fd >= FIRST_NUMBER)
		return fd;
	moved = fcntl(fd, F_DUPFD_CLOEXEC, FIRST_NUMBER);
	if (moved < 0)
		return fd;
	vb_sys_close(fd);
	return moved;
}
