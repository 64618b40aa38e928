/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The character devices that some programs want to see before they use a verbs device (UCX,
 * Mooncake). This library needs none and opens none.
 */
#ifndef TOOLS_DEVICE_FILE_H
#define TOOLS_DEVICE_FILE_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>

enum { DEVICE_FILE_PATH = 128 };

/*
 * Writes the file's path to `path` (size bytes). True: the path is a character device that this
 * user may open for reading and writing.
 */
bool device_file_usable(const struct ibv_device *device, char *path, size_t size);

/*
 * Prints how root makes the file at `path`. Any character device that every user may open serves.
 */
void device_file_advise(const char *path);

#endif
