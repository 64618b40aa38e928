/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Unguessable numbers: getrandom(2), which cannot fail for so few bytes once the system has booted.
 */
#include "base/random.h"

#include <stdlib.h>
#include <sys/random.h>

#include "base/sys.h"

uint64_t vb_random64(void)
{
	uint64_t v = 0;

	while (vb_sys_getrandom(&v, sizeof(v), 0) != (ssize_t)sizeof(v))
		;
	return v;
}

uint32_t vb_random32(void)
{
	return (uint32_t)vb_random64();
}
