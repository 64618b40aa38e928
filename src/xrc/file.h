/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The file that an XRC domain is of. It is kept open as long as the domain is, so that no other file gets its inode
 * number meanwhile, although the program may close and delete it (ibv_open_xrcd(3)).
 */
#ifndef VB_XRC_FILE_H
#define VB_XRC_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct vb_xrc_file {
	int fd; /* a description of our own, -1: none */
	dev_t dev;
	ino_t ino;
	uint64_t born; /* ns, 0: the file system does not tell. Two files may have had one number */
};

/* Which file is it? -EBADF. */
int vb_xrc_file_look(int fd, struct vb_xrc_file *file);
/* Keeps it, given a descriptor of it. -errno. */
int vb_xrc_file_hold(int fd, struct vb_xrc_file *file);
void vb_xrc_file_release(struct vb_xrc_file *file);
bool vb_xrc_file_same(const struct vb_xrc_file *a, const struct vb_xrc_file *b);
/* What the processes of one user call its domain on the device of that GUID (host/commons.h). */
void vb_xrc_file_name(const struct vb_xrc_file *file, uint64_t guid, char *name, size_t size);

#endif
