/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Whether a range of this process's address space is mapped. */
#ifndef VB_MEMORY_MAPPING_H
#define VB_MEMORY_MAPPING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Returns 0 if every page of [addr, addr+length) is mapped readable and, with `writable`, also
 * writable. Otherwise returns -EFAULT, and *bad gets the first address that is not. The cost grows
 * with the number of mappings, not of pages. Where the kernel does not tell the rights, a mapped
 * page is enough. *shared: a part of the range is a shared mapping, which other processes may have
 * as well, or this is unknown. The caller ensures length > 0 and that the range does not wrap.
 */
int vb_mapping_check(uintptr_t addr, size_t length, bool writable, bool *shared, uintptr_t *bad);

/* The same against text in the format of /proc/PID/maps, read from a descriptor. */
int vb_mapping_check_text(int fd, uintptr_t addr, size_t length, bool writable, bool *shared,
			  uintptr_t *bad);

#endif
