/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Packet pacing (ibv_modify_qp_rate_limit(3)): a queue pair pays for what it sends from a credit
 * that grows with time, up to a burst. With any credit left it may send one run, and have a debt
 * afterwards. No run is longer than the burst, or a packet if the burst is shorter.
 */
#ifndef VB_ENGINE_PACE_H
#define VB_ENGINE_PACE_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

struct vb_pace {
	uint32_t kbps;   /* 0: no limit */
	int64_t credit;  /* millionths of a bit: kilobits per second times nanoseconds */
	int64_t burst;   /* the most credit */
	uint64_t filled; /* when the credit was last brought up to date, CLOCK_MONOTONIC ns */
};

/* burst_bytes 0: what the rate brings in 4 ms, at least a packet. */
void vb_pace_set(struct vb_pace *pace, uint32_t kbps, uint32_t burst_bytes, uint64_t now);
/* Whether a run may be sent now. */
bool vb_pace_ready(struct vb_pace *pace, uint64_t now);
void vb_pace_spend(struct vb_pace *pace, uint64_t bytes);

/* The most bytes that are sent at once. */
uint64_t vb_pace_burst_bytes(const struct vb_pace *pace);

#endif
