/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Is a small range mapped? Asked of its pages, so that the number of the process's mappings does not matter. */
#ifndef VB_MEMORY_MAPPING_PROBE_H
#define VB_MEMORY_MAPPING_PROBE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Beyond this the pages cost more than most processes' mappings. */
#define VB_MAPPING_PROBE_BYTES (4u << 20)

/*
 * True: every page of [addr, addr+length) is readable and, with `writable`, writable, and *shared says whether a page of it may be in other
 * processes as well. False: not so, or it is unknown; /proc/self/maps tells. The pages are brought in, as an adapter that pins them would;
 * what they hold does not change, whoever else writes them at the moment.
 */
bool vb_mapping_probe(uintptr_t addr, size_t length, bool writable, bool *shared);

#endif
