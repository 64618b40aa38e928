/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Fork. The parent goes on undisturbed. In the child every inherited context refuses (its engines, rings and progress thread
 * are the parent's), while devices can be listed and opened anew. The locks of the lists are held across the fork, so that
 * the child finds them whole.
 */
#include "device/fork.h"

#include <pthread.h>

#include "device/context.h"
#include "device/cq.h"
#include "device/device.h"
#include "device/flow.h"
#include "device/monitor.h"
#include "device/ops.h"
#include "device/process.h"
#include "device/raw_qp.h"

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
	vb_context_forked(&vb_forked_ops);
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
