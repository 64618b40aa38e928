/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Shared memory objects: memfds that cannot change size, so a mapping of one never faults. They
 * have no name. Mappings are not inherited by forked children. Thread-safe.
 */
#ifndef VB_HOST_SHARED_H
#define VB_HOST_SHARED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * One writer: the creator's mapping stays writable, all other processes can only read
 * (F_SEAL_FUTURE_WRITE). Zero-filled. *fd is adopted (host/descriptor.h). 0 or -errno.
 */
int vb_shared_create(const char *label, size_t bytes, void **map, int *fd);

/*
 * The exception: an object that all processes with its descriptor may write (the turn of atomics).
 */
int vb_shared_create_common(const char *label, size_t bytes, void **map, int *fd);

/* An object of that kind which no process has mapped yet, of whole pages and sparse. */
int vb_shared_create_file(const char *label, size_t bytes, int *fd);

/*
 * Whether this is a memfd of ordinary pages, sealed as its kind demands, whatever process made it.
 * 0 and its size; -EBADMSG as below.
 */
int vb_shared_check(int fd, bool common, uint64_t *bytes, const char **defect);

/*
 * Maps an object that came from another process, after checking that it is a memfd of exactly this
 * size, sealed as its kind demands. Leaves fd open. 0; -EBADMSG: a defect (*defect says which);
 * -errno of mmap(2).
 */
int vb_shared_map(int fd, size_t bytes, bool common, void **map, const char **defect);

/* The same, but only its first `part` bytes are mapped. */
int vb_shared_map_part(int fd, size_t bytes, size_t part, bool common, void **map,
		       const char **defect);
/*
 * One more mapping of the object whose first part is mapped at `map`: `bytes` from its beginning.
 * The descriptor may be closed. NULL: no memory.
 */
void *vb_shared_map_whole(const void *map, size_t bytes);

void vb_shared_unmap(const void *map, size_t bytes);

#endif
