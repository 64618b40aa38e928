/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Fork. The parent goes on undisturbed. In the child every inherited object refuses (its engine, rings and progress thread are
 * the parent's), while devices can be listed and opened anew, and an inherited context re-opens itself for what is created on it
 * (context_fork.c). The locks of the lists are held across the fork, so that the child finds them whole.
 */
#include "process/fork.h"

#include <pthread.h>
#include <stdatomic.h>

#include "object/context.h"
#include "engine/cq.h"
#include "device/device.h"
#include "raw/flow.h"
#include "provider/import.h"
#include "device/monitor.h"
#include "engine/paths.h"
#include "process/process.h"
#include "raw/qp.h"

static _Atomic uint32_t generation;

uint32_t vb_fork_generation(void)
{
	return atomic_load_explicit(&generation, memory_order_relaxed);
}

static void before(void)
{
	vb_device_fork_lock();
	vb_context_fork_lock();
}

static void in_parent(void)
{
	vb_context_fork_unlock();
	vb_device_fork_unlock();
}

static void in_child(void)
{
	vb_process_forked();
	vb_monitor_forked();
	vb_cq_moderate_forked();
	vb_flow_forked();
	vb_raw_forked();
	vb_import_forked();
	vb_paths_forked();
	atomic_fetch_add(&generation, 1);
	vb_context_forked();
	vb_context_fork_unlock();
	vb_device_fork_unlock();
}

static void register_handlers(void)
{
	pthread_atfork(before, in_parent, in_child);
}

void vb_fork_prepare(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, register_handlers);
}
