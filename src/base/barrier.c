/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Barriers that other threads pass: membarrier(2). */
#include "base/barrier.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/sys.h"

/* Far longer than a store takes to become visible to other processors. */
#define DRAIN_NS 1000000

static const struct {
	int allow, pass;
} commands[] = {
	[VB_BARRIER_PRIVATE] = {MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED,
				MEMBARRIER_CMD_PRIVATE_EXPEDITED},
	[VB_BARRIER_GLOBAL] = {MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED,
			       MEMBARRIER_CMD_GLOBAL_EXPEDITED},
};

static int membarrier(int command)
{
	return (int)syscall(SYS_membarrier, command, 0, 0);
}

bool vb_barrier_allow(enum vb_barrier kind)
{
	return !membarrier(commands[kind].allow) && !membarrier(commands[kind].pass);
}

void vb_barrier_pass(enum vb_barrier kind)
{
	const struct timespec drain = {0, DRAIN_NS};

	/* The child of a fork may have to allow it again. */
	if (!membarrier(commands[kind].pass) || vb_barrier_allow(kind))
		return;
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	vb_sys_nanosleep(&drain);
}
