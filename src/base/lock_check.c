/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Watches which locks a thread holds and waits for. Empty in a release build. */
#include "base/lock_order.h"

#ifdef VB_CHECK_LOCKS

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/sys.h"

#define MOST_HELD 64u

static const char *const names[] = {
#define NAME(name, what) #name " (" what ")",
	VB_LOCK_ORDERS(NAME)
#undef NAME
};

struct held {
	const void *lock;
	enum vb_lock_order order;
};

static _Thread_local struct held held[MOST_HELD];
static _Thread_local unsigned int num_held;

static _Noreturn void fail(const char *what, const char *a, const char *b)
{
	char text[512];
	int n = snprintf(text, sizeof(text), "verbatim: locks: %s: %s, %s\n", what, a, b);

	if (n > 0 && vb_sys_write(STDERR_FILENO, text, (size_t)n) < 0)
		abort();
	abort();
}

void vb_lock_check_wait(const void *lock, enum vb_lock_order order)
{
	for (unsigned int i = 0; i < num_held; i++) {
		if (held[i].lock == lock)
			fail("waits for what it holds", names[held[i].order], names[order]);
		if (order && held[i].order > VB_ORDER_POST && held[i].order >= order)
			fail("held, and waited for", names[held[i].order], names[order]);
	}
}

void vb_lock_check_taken(const void *lock, enum vb_lock_order order)
{
	if (num_held < MOST_HELD)
		held[num_held] = (struct held){lock, order};
	num_held++;
}

void vb_lock_check_released(const void *lock)
{
	for (unsigned int i = num_held < MOST_HELD ? num_held : MOST_HELD; i-- > 0;) {
		if (held[i].lock != lock)
			continue;
		for (num_held--; i < num_held && i + 1 < MOST_HELD; i++)
			held[i] = held[i + 1];
		return;
	}
}

void vb_lock_check_held(const void *lock, const char *function)
{
	for (unsigned int i = 0; i < num_held && i < MOST_HELD; i++) {
		if (held[i].lock == lock)
			return;
	}
	fail("not held", "the lock that a function runs under", function);
}

#else
typedef int vb_lock_check_nothing; /* a file has to declare something */
#endif
