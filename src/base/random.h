/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Unguessable numbers from the system: QPN blocks, key tags, nonces. */
#ifndef VB_BASE_RANDOM_H
#define VB_BASE_RANDOM_H

#include <stdint.h>

#include "base/export.h"
/* Thread-safe. Each draw is a system call: not for the fast path. */
VB_SHARED uint32_t vb_random32(void);
VB_SHARED uint64_t vb_random64(void);

#endif
