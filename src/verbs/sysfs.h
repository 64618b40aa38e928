/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Two exported functions (IBVERBS_1.0) that no public header declares; librdmacm calls them.
 */
#ifndef VB_VERBS_SYSFS_H
#define VB_VERBS_SYSFS_H

#include <stddef.h>

/* The place where sysfs is mounted: SYSFS_PATH (not in privileged programs), else "/sys". */
const char *ibv_get_sysfs_path(void);

/*
 * Reads the first line of dir/file without its newline, terminated. Returns its length, or -1 and
 * errno.
 */
int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size);

#endif
