/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Packet pacing (ibv_modify_qp_rate_limit(3)): what a queue pair sends is paid from credit that grows with time, up to a burst.
 * Whoever has credit left may send one run and be in debt for it afterwards; no run is longer than the burst or, where that is less, a packet.
 */
#ifndef VB_ENGINE_PACE_H
#define VB_ENGINE_PACE_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

struct vb_pace {
	uint32_t kbps;   /* 0: not limited */
	int64_t credit;  /* millionths of a bit: kilobits per second times nanoseconds */
	int64_t burst;   /* most credit */
	uint64_t filled; /* when the credit was last brought up to date, CLOCK_MONOTONIC ns */
};

/* burst_bytes 0: what the rate brings in 4 ms, but a packet at least. */
void vb_pace_set(struct vb_pace *pace, uint32_t kbps, uint32_t burst_bytes, uint64_t now);
/* May something be sent now? */
bool vb_pace_ready(struct vb_pace *pace, uint64_t now);
void vb_pace_spend(struct vb_pace *pace, uint64_t bytes);

/* The most that goes out at once. */
uint64_t vb_pace_burst_bytes(const struct vb_pace *pace);

#endif
