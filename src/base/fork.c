/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The registry of what is to be done at a fork. */
#include "base/fork.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

static struct vb_fork_hook *hooks[VB_FORK_PHASES];
static _Atomic uint32_t generation;

void vb_fork_register(struct vb_fork_hook *hook)
{
	hook->next = hooks[hook->phase];
	hooks[hook->phase] = hook;
}

uint32_t vb_fork_generation(void)
{
	return atomic_load_explicit(&generation, memory_order_relaxed);
}

static void before(void)
{
	for (int phase = VB_FORK_PHASES - 1; phase >= 0; phase--) {
		for (const struct vb_fork_hook *h = hooks[phase]; h; h = h->next) {
			if (h->before)
				h->before();
		}
	}
}

static void in_parent(void)
{
	for (int phase = 0; phase < VB_FORK_PHASES; phase++) {
		for (const struct vb_fork_hook *h = hooks[phase]; h; h = h->next) {
			if (h->parent)
				h->parent();
		}
	}
}

static void in_child(void)
{
	atomic_fetch_add(&generation, 1);
	for (int phase = 0; phase < VB_FORK_PHASES; phase++) {
		for (const struct vb_fork_hook *h = hooks[phase]; h; h = h->next) {
			if (h->child)
				h->child();
		}
	}
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
