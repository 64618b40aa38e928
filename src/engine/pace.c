/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Packet pacing: the credit. */
#include "engine/pace.h"

#include "process/limits.h"

#define UNITS_PER_BYTE 8000000ll
#define DEFAULT_NS     4000000ll     /* a sender that waits is looked at every 2 ms at the latest */
#define LONGEST_NS     1000000000ull /* a longer time counts as this: no product overflows */

void vb_pace_set(struct vb_pace *p, uint32_t kbps, uint32_t burst_bytes, uint64_t now)
{
	int64_t least = (int64_t)VB_MTU_MOST * UNITS_PER_BYTE;

	p->kbps = kbps;
	p->burst = burst_bytes ? burst_bytes * UNITS_PER_BYTE : kbps * DEFAULT_NS;
	if (!burst_bytes && p->burst < least)
		p->burst = least;
	p->credit = p->burst;
	p->filled = now;
}

bool vb_pace_ready(struct vb_pace *p, uint64_t now)
{
	uint64_t passed = now > p->filled ? now - p->filled : 0;

	if (passed > LONGEST_NS)
		passed = LONGEST_NS;
	p->filled = now;
	p->credit += (int64_t)(passed * p->kbps);
	if (p->credit > p->burst)
		p->credit = p->burst;
	return p->credit > 0;
}

void vb_pace_spend(struct vb_pace *p, uint64_t bytes)
{
	p->credit -= (int64_t)bytes * UNITS_PER_BYTE;
}

uint64_t vb_pace_burst_bytes(const struct vb_pace *p)
{
	return (uint64_t)(p->burst / UNITS_PER_BYTE);
}
