/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The range of memory that the preloaded libverbatim-mapped.so gives the program blocks from
 * (preload/mapped), and that becomes this process's arena. Both libraries are of one build.
 */
#ifndef VB_HOST_MAPPED_H
#define VB_HOST_MAPPED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct vb_mapped {
	int fd;          /* stays the other library's */
	uint64_t size;   /* of the file, which lies at `base` as a whole */
	uint64_t blocks; /* bytes from `base` on that are the program's; what follows is free */
	char *base;
	/* Whether the whole range lies in the program's blocks. Takes a lock of the other library. */
	bool (*holds)(const void *addr, size_t bytes);
};

/* False: the program has ordinary memory. Not defined where the other library is not loaded. */
__attribute__((weak, visibility("default"))) bool verbatim_mapped_range(struct vb_mapped *mapped);

#endif
