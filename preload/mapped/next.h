/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The functions of malloc(3) that this library replaces: the next definition of each. */
#ifndef PRELOAD_MAPPED_NEXT_H
#define PRELOAD_MAPPED_NEXT_H

#include <stddef.h>

void *next_malloc(size_t bytes);
void *next_calloc(size_t count, size_t bytes);
void *next_realloc(void *block, size_t bytes);
void *next_memalign(size_t align, size_t bytes);
void next_free(void *block);
size_t next_usable_size(void *block);

#endif
