/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Device files: whether they exist, and how they are made. */
#include "device_file.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define FOLDER "/dev/infiniband"

bool device_file_usable(const struct ibv_device *device, char *path, size_t size)
{
	struct stat st;

	snprintf(path, size, FOLDER "/%s", device->dev_name);
	return !stat(path, &st) && S_ISCHR(st.st_mode) && !access(path, R_OK | W_OK);
}

void device_file_advise(const char *path)
{
	printf("Some programs (UCX and what is built on it) use a device only if its file is a character device that they\n"
	       "may open. Nothing reads it, so root can make it a second /dev/null:\n"
	       "    mkdir -p " FOLDER " && mknod -m 666 %s c 1 3\n",
	       path);
}
