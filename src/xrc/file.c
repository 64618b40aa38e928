/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Files of XRC domains: telling them apart, and keeping their inodes. */
#include "xrc/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/sys.h"
#include "host/descriptor.h"

int vb_xrc_file_look(int fd, struct vb_xrc_file *file)
{
	struct statx more;
	struct stat st;

	if (fstat(fd, &st)) /* also works for a descriptor with O_PATH */
		return -EBADF;
	*file = (struct vb_xrc_file){.fd = -1, .dev = st.st_dev, .ino = st.st_ino};
	if (!statx(fd, "", AT_EMPTY_PATH, STATX_BTIME, &more) && more.stx_mask & STATX_BTIME)
		file->born = (uint64_t)more.stx_btime.tv_sec * 1000000000u + more.stx_btime.tv_nsec;
	return 0;
}

/*
 * The file is opened once more and not duplicated, so that the program's locks (flock(2)), and
 * other effects on its open file description, end with its own descriptors. O_PATH needs no right
 * to the file and disturbs neither devices nor fifos.
 */
int vb_xrc_file_hold(int fd, struct vb_xrc_file *file)
{
	char path[40];
	struct vb_xrc_file held;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	file->fd = vb_descriptor_adopt(vb_sys_open(path, O_PATH | O_CLOEXEC));
	if (file->fd < 0 || vb_xrc_file_look(file->fd, &held) || !vb_xrc_file_same(&held, file)) {
		vb_descriptor_close(file->fd); /* /proc is not mounted here */
		file->fd = vb_descriptor_adopt(fcntl(fd, F_DUPFD_CLOEXEC, 0));
	}
	return file->fd < 0 ? -errno : 0;
}

void vb_xrc_file_release(struct vb_xrc_file *file)
{
	vb_descriptor_close(file->fd);
	file->fd = -1;
}

bool vb_xrc_file_same(const struct vb_xrc_file *a, const struct vb_xrc_file *b)
{
	return a->dev == b->dev && a->ino == b->ino && a->born == b->born;
}

void vb_xrc_file_name(const struct vb_xrc_file *file, uint64_t guid, char *name, size_t size)
{
	snprintf(name, size, "xrc-%llx-%llx-%llx-%llx", (unsigned long long)guid,
		 (unsigned long long)file->dev, (unsigned long long)file->ino,
		 (unsigned long long)file->born);
}
