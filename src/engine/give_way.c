/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* When a thread that polls in vain gives its processor away (give_way.h). */
#include "engine/give_way.h"

#include <sched.h>

#include "base/clock.h"

/* Empty polls, of some 20 ns each. */
#define FIRST     1024
#define SHARED    16    /* of a thread whose processor another such thread has, too */
#define MOST      32768 /* of a thread that is alone, or whose processor is in demand */

/* A call that was shorter found no other thread. */
#define ALONE_NS  1500u
/*
 * A call that was longer gave the processor to a thread that uses its whole time. Only giving way
 * seldom keeps a share of the processor.
 */
#define HOGGED_NS 200000u

_Thread_local
	__attribute__((tls_model("initial-exec"))) struct vb_give_way vb_give_way = {FIRST, FIRST};

static int32_t longer(int32_t after, int32_t times)
{
	return after < MOST / times ? after * times : MOST;
}

int32_t vb_give_way_next(int32_t after, uint64_t took_ns)
{
	if (took_ns < ALONE_NS)
		return longer(after, 2);
	return took_ns < HOGGED_NS ? SHARED : longer(after, 8);
}

void vb_give_way_now(void)
{
	struct vb_give_way *w = &vb_give_way;
	uint64_t begin = vb_clock_ns();

	sched_yield();
	w->after = vb_give_way_next(w->after, vb_clock_ns() - begin);
	w->left = w->after;
}
