/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Whether the threads of the program that poll also take the packets of other hosts, or leave them.
 *
 * A program may poll, and then spin on its memory until a WRITE has come. Its polls say nothing
 * about the packet that comes next. So the progress thread lets itself be woken by packets beside a
 * poller as well. It first leaves the packet to the poller for a moment. If the poller has taken it,
 * the thread does not ask again for a while, which becomes longer each time. If not, the thread
 * takes the packets that follow at once, so many of them as grow each time.
 *
 * Pure: time passes where the caller waits. For one thread.
 */
#ifndef VB_ENGINE_ATTEND_H
#define VB_ENGINE_ATTEND_H

#include <stdbool.h>
#include <stdint.h>

struct vb_attend {
	enum { VB_ATTEND_ASKS, VB_ATTEND_PROBES, VB_ATTEND_TRUSTS } mode;
	uint32_t serves;  /* so many packets more the thread takes at once */
	uint32_t grace;   /* and so many when a poller has left one again */
	int64_t trust_ns; /* the next time for which it does not ask */
	/* What these two were before a poller had left a packet; lost_ns 0: they are not known. */
	uint32_t lost_grace;
	int64_t lost_ns;
	uint64_t pollers; /* packets that pollers had taken at the last look */
};

void vb_attend_begin(struct vb_attend *a);

/*
 * Before a wait. `polled`: the sockets are read by an engine that is polled. Returns the longest
 * time to wait (ns, negative: no limit). *arm: the next packet is to end the wait.
 */
int64_t vb_attend_before(struct vb_attend *a, bool polled, bool *arm);

/*
 * Behind the wait. `packet`: one has ended it. `pollers`: packets that pollers have taken so far.
 * True: the thread is to take what has come, also of engines that are polled.
 */
bool vb_attend_after(struct vb_attend *a, bool packet, uint64_t pollers);

/* Whether the thread, while it is awake, looks for packets beside pollers. */
static inline bool vb_attend_serves(const struct vb_attend *a)
{
	return a->mode == VB_ATTEND_ASKS && a->serves;
}
/* It was to take packets, but a poller is in the engine: the poller takes them when it gets there. */
static inline void vb_attend_found_poller(struct vb_attend *a)
{
	a->mode = VB_ATTEND_TRUSTS;
	if (a->lost_ns) {
		a->trust_ns = a->lost_ns;
		a->grace = a->lost_grace;
	}
	a->lost_ns = 0;
	a->serves = 0;
}
/* It has found one in this way. */
static inline void vb_attend_served(struct vb_attend *a)
{
	if (a->serves)
		a->serves--;
}

#endif
