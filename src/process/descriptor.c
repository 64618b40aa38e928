/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Keeps descriptors of the device away from the numbers that a program reuses, and notices when a
 * number was reused all the same.
 */
#include "process/descriptor.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

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

static long event_number(int fd)
{
	char path[48], text[512];
	ssize_t n = -1;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	int info = vb_sys_open(path, O_RDONLY | O_CLOEXEC);

	if (info >= 0) {
		n = vb_sys_read(info, text, sizeof(text) - 1);
		vb_sys_close(info);
	}
	if (n < 0)
		return -1;
	text[n] = '\0';
	const char *at = strstr(text, "eventfd-id:");

	return at ? strtol(at + strlen("eventfd-id:"), NULL, 10) : -1;
}

/*
 * The mark of an eventfd: its signal of fcntl(2), F_SETSIG, is SIGIO, which a program with O_ASYNC
 * gets without the mark as well. Programs' own eventfds have no mark.
 */
struct vb_file_id vb_file_id_of(int fd)
{
	struct vb_file_id id = {.event = -1};
	struct stat st;

	if (fstat(fd, &st))
		return id;
	id.device = st.st_dev;
	id.inode = st.st_ino;
	if (S_ISREG(st.st_mode))
		return id;
	id.event = event_number(fd);
	(void)fcntl(fd, F_SETSIG, SIGIO);
	return id;
}

bool vb_file_is(int fd, const struct vb_file_id *id)
{
	struct stat st;

	if (fd < 0 || fstat(fd, &st) || st.st_dev != id->device || st.st_ino != id->inode)
		return false;
	/*
	 * The program may have chosen another signal for it; then the eventfd's own number tells.
	 */
	return S_ISREG(st.st_mode) || fcntl(fd, F_GETSIG) == SIGIO ||
	       (id->event >= 0 && event_number(fd) == id->event);
}
