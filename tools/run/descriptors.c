/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Standard descriptors that the caller has closed. */
#include "run/descriptors.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

void descriptors_reserve(void)
{
	int fd;

	/* Each new descriptor is the lowest that is free. */
	do {
		fd = open("/dev/null", O_RDWR | O_CLOEXEC);
		if (fd < 0) /* no /dev; this takes writes, too */
			fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	} while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}
