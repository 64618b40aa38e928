/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* On whose behalf keys of a key table are looked up. */
#ifndef VB_MEMORY_KEY_USER_H
#define VB_MEMORY_KEY_USER_H

#include <stdint.h>

#include "host/page.h"

/* The key table, and the user on whose behalf keys are looked up. */
struct vb_mem {
	const struct vb_keyring *keys;
	uint32_t pd;
	uint32_t qpn;
	uint32_t engine; /* the engine whose lock is held, and whose mark may be set */
};

#endif
