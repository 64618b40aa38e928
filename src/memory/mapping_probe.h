/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Whether a small range is mapped, found out from its pages. The cost does not depend on the number
 * of the process's mappings.
 */
#ifndef VB_MEMORY_MAPPING_PROBE_H
#define VB_MEMORY_MAPPING_PROBE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* For a larger range the pages cost more than the mappings of most processes. */
#define VB_MAPPING_PROBE_BYTES (4u << 20)

/*
 * True: every page of [addr, addr+length) is readable and, with `writable`, writable; *shared says
 * whether other processes may have a page of it as well. False: not so, or unknown; /proc/self/maps
 * tells. The pages are brought in, as by an adapter that pins them. Their content does not change,
 * also while other threads write to them.
 */
bool vb_mapping_probe(uintptr_t addr, size_t length, bool writable, bool *shared);

#endif
