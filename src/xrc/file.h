/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The file of an XRC domain. It is kept open as long as the domain, so that no other file gets its
 * inode number meanwhile, although the program may close and delete it (ibv_open_xrcd(3)).
 */
#ifndef VB_XRC_FILE_H
#define VB_XRC_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct vb_xrc_file {
	int fd; /* an open file description of the library's own, -1: none */
	dev_t dev;
	ino_t ino;
	/*
	 * Ns; 0: the file system does not tell. Two files may have had one inode number, at
	 * different times.
	 */
	uint64_t born;
};

/* Finds out which file it is. -EBADF. */
int vb_xrc_file_look(int fd, struct vb_xrc_file *file);
/* Keeps the file, given a descriptor of it. -errno. */
int vb_xrc_file_hold(int fd, struct vb_xrc_file *file);
void vb_xrc_file_release(struct vb_xrc_file *file);
bool vb_xrc_file_same(const struct vb_xrc_file *a, const struct vb_xrc_file *b);
/*
 * The name by which the processes of one user know the file's domain on the device of that GUID
 * (host/commons.h).
 */
void vb_xrc_file_name(const struct vb_xrc_file *file, uint64_t guid, char *name, size_t size);

#endif
