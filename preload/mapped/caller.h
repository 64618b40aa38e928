/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Whether libibverbs itself asks for memory. Its own state does not go where peers can write.
 */
#ifndef PRELOAD_MAPPED_CALLER_H
#define PRELOAD_MAPPED_CALLER_H

#include <stdbool.h>

/* `address`: where the call returns to. */
bool caller_is_library(const void *address);

#endif
