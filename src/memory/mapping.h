/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Is a range of this process's address space mapped? */
#ifndef VB_MEMORY_MAPPING_H
#define VB_MEMORY_MAPPING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * 0 if every page of [addr, addr+length) is mapped readable and, with `writable`, also writable; else -EFAULT and *bad is the
 * first address that is not. Costs time per mapping, not per page. Where the kernel does not tell the rights, being
 * mapped is enough. *shared: some of it is a shared mapping, which other processes may have as well, or nobody can tell. length > 0 and no wrap is the caller's to see to.
 */
int vb_mapping_check(uintptr_t addr, size_t length, bool writable, bool *shared, uintptr_t *bad);

/* The same against text in the format of /proc/PID/maps, read from a descriptor. */
int vb_mapping_check_text(int fd, uintptr_t addr, size_t length, bool writable, bool *shared,
			  uintptr_t *bad);

#endif
