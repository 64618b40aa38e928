/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Bytes of the library's own memory that the kernel has as well (a packet that is still in the
 * queue of its socket), and can copy from there into memory which the program may have unmapped.
 * That costs a fraction of process_vm_writev(2), which pins each page.
 */
#ifndef VB_BASE_COPY_SOURCE_H
#define VB_BASE_COPY_SOURCE_H

#include <stdbool.h>
#include <stdint.h>

struct vb_copy_source {
	/*
	 * Copies `length` bytes, which are those at `from`, to `to`, in ascending order; the last
	 * aligned 8 bytes after all others. False: it cannot, or the memory is gone. Then the
	 * content of the range is undefined.
	 */
	bool (*copy)(struct vb_copy_source *source, const void *from, uint64_t to, uint64_t length);
};

#endif
