/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Who takes the packets while a program polls. */
#include "engine/attend.h"

#include "engine/engine.h"

/* A packet has come while an engine was polled: the poller has so much time to take it. */
#define PROBE_NS       30000
/* It has taken it: the thread does not ask for so long, doubled up to the lease. */
#define TRUST_FIRST_NS 60000
/* It has left it: the thread takes so many at once, doubled up to the most. */
#define GRACE_FIRST    8u
#define GRACE_MOST     256u

void vb_attend_begin(struct vb_attend *a)
{
	*a = (struct vb_attend){.trust_ns = TRUST_FIRST_NS, .grace = GRACE_FIRST};
}

int64_t vb_attend_before(struct vb_attend *a, bool polled, bool *arm)
{
	if (!polled) {
		a->mode = VB_ATTEND_ASKS;
		a->trust_ns = TRUST_FIRST_NS;
	}
	*arm = a->mode == VB_ATTEND_ASKS;
	if (a->mode == VB_ATTEND_PROBES)
		return PROBE_NS;
	return a->mode == VB_ATTEND_TRUSTS ? a->trust_ns : -1;
}

static bool asked(struct vb_attend *a, bool packet)
{
	if (!packet)
		return false;
	if (!a->serves) {
		a->mode = VB_ATTEND_PROBES;
		return false;
	}
	a->serves--;
	return true;
}

static bool probed(struct vb_attend *a, bool taken)
{
	if (taken) {
		a->mode = VB_ATTEND_TRUSTS;
		return false;
	}
	a->mode = VB_ATTEND_ASKS;
	a->lost_ns = a->trust_ns;
	a->lost_grace = a->grace;
	a->trust_ns = TRUST_FIRST_NS;
	a->serves = a->grace;
	a->grace = a->grace * 2 < GRACE_MOST ? a->grace * 2 : GRACE_MOST;
	return true;
}

bool vb_attend_after(struct vb_attend *a, bool packet, uint64_t pollers)
{
	bool taken = pollers != a->pollers;

	a->pollers = pollers;
	switch (a->mode) {
	case VB_ATTEND_ASKS:
		return asked(a, packet);
	case VB_ATTEND_PROBES:
		return probed(a, taken);
	default:
		a->mode = VB_ATTEND_ASKS;
		a->trust_ns *= 2;
		if (a->trust_ns >= (int64_t)VB_LEASE_NS) {
			a->trust_ns = (int64_t)VB_LEASE_NS;
			a->grace = GRACE_FIRST;
		}
		return false;
	}
}
