/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Driving an engine: what a poll, the progress thread and a posted request make it do. */
#ifndef VB_ENGINE_DRIVE_H
#define VB_ENGINE_DRIVE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "engine/engine.h"

struct vb_qp;

/*
 * Under the lock: serves channels, runnable queue pairs and due timers once. True if anything
 * arrived.
 */
bool vb_engine_drive(struct vb_engine *engine);

/*
 * Under the lock: the same, for a thread that comes beside a poller. The program may reply to what
 * arrives. `last`: this thread does not come again soon.
 */
bool vb_engine_drive_beside(struct vb_engine *engine, bool last);

/*
 * A poll: drives the engine. Where another thread is driving, returns; or, while the engine sleeps,
 * waits and then drives. `armed`: the caller's CQ waits for an event, so the engine stays asleep.
 * `sole`: where the caller has read the engine; it is driven only if it still stands there.
 */
void vb_engine_poll(struct vb_engine *engine, bool armed, _Atomic(struct vb_engine *) *sole);

/* A poll, which extends the lease. Without the lock a count of another thread may be lost. */
static inline void vb_engine_count_poll(struct vb_engine *e)
{
	atomic_store_explicit(&e->polls, atomic_load_explicit(&e->polls, memory_order_relaxed) + 1,
			      memory_order_relaxed);
}

/* Under the lock: a poller's drive, which extends the lease. */
bool vb_engine_polled(struct vb_engine *engine, bool armed);

/* Under the lock: one more, or one fewer, whose link is read by system calls (`reads`). */
void vb_engine_reads_begin(struct vb_engine *engine);
void vb_engine_reads_end(struct vb_engine *engine);

/*
 * Does not wait for the lock. The program ends by exit(3): acknowledgements that wait for a reply
 * are sent.
 */
void vb_engine_at_exit(struct vb_engine *engine);

/*
 * Under the lock: from now on senders ring the doorbell; then looks once more. begin and end: the same
 * for several engines together (doze.h). True: vb_bell_senders_pass() is to come in between.
 */
void vb_engine_sleep(struct vb_engine *engine);
bool vb_engine_sleep_begin(struct vb_engine *engine);
void vb_engine_sleep_end(struct vb_engine *engine);

/*
 * Under the lock: vb_tqp_run() and what follows from it. The queue pair stays in the runnable list
 * while it has work left.
 */
void vb_engine_run_qp(struct vb_engine *engine, struct vb_qp *qp);
/* Under the lock: the program has posted send requests. */
void vb_engine_posted(struct vb_engine *engine, struct vb_qp *qp);

/*
 * Under the lock: so many channels have come. Channels come in the order in which they were asked
 * for, so few of the queue pairs that wait for one ask in vain.
 */
void vb_engine_channels_came(struct vb_engine *engine, uint32_t channels);

#endif
