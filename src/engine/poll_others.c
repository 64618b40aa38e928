/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Which other engine an idle poller looks at, and how often. */
#include "engine/poll_others.h"

#include "base/bias.h"
#include "engine/drive.h"
#include "engine/engine.h"

#define RECENT        8u /* engines that a thread polled last */
/*
 * Empty polls in a row before others are looked at: a thread that polls many in turn needs no help.
 */
#define PATIENCE      4u
#define RECENT_SELDOM 64u   /* empty polls between two looks at recent engines that bring nothing */
#define SCAN_FIRST    64u   /* empty polls between two looks at any thread's engines */
#define SCAN_SELDOM   4096u /* the same when those were polled by their threads */

struct recent {
	struct vb_engine *engine;
	uint32_t life;
};

static _Thread_local __attribute__((tls_model("initial-exec"))) struct {
	struct recent now; /* the engine that is polled at present */
	struct recent before[RECENT];
	uint32_t newest,
		/* Places in `before`: where the next one is put, and which is looked at next. */
		next;
	/*
	 * Empty polls of the present engine until a recent one is looked at, and between two such
	 * looks: they become rarer while they bring nothing.
	 */
	uint32_t recent_in, recent_every;
	/* The walk through all engines that are awake. */
	uint32_t scan_in, scan_every;
	uint32_t scan_index;
	struct recent seen;
	uint64_t seen_polls;
} own;

static struct recent remember(struct vb_engine *e)
{
	return (struct recent){e, __atomic_load_n(&e->life, __ATOMIC_RELAXED)};
}

/*
 * The thread polls another engine than before: the former goes into the list, the new one leaves
 * it.
 */
static void switched(struct vb_engine *e)
{
	uint32_t free_place = own.newest;

	for (uint32_t i = 0; i < RECENT; i++) {
		if (own.before[i].engine == e || own.before[i].engine == own.now.engine) {
			own.before[i].engine = NULL;
			free_place = i;
		}
	}
	if (own.now.engine)
		own.before[free_place] = own.now;
	if (free_place == own.newest)
		own.newest = (own.newest + 1) % RECENT;
	own.now = remember(e);
	own.recent_in = PATIENCE;
	own.recent_every = 1;
	own.scan_every = own.scan_in = SCAN_FIRST;
}

/*
 * Looks at one of the engines that this thread polled before, unless another thread has polled it
 * since. Its lease goes on, because it is polled in this way. True if it brought something.
 */
static bool look_at_recent(void)
{
	struct recent *r;
	struct vb_engine *e = NULL;

	for (uint32_t i = 0; i < RECENT && !e; i++) {
		r = &own.before[own.next++ % RECENT];
		e = r->engine;
	}

	if (!e || !vb_lock_try(&e->lock))
		return false;
	bool mine = e->life == r->life && e->life % 2 &&
		    atomic_load_explicit(&e->poller, memory_order_relaxed) == vb_bias_self();

	if (mine)
		vb_engine_uses_keys(e);
	bool worked = mine && vb_engine_polled(e, e->for_events);

	vb_lock_release(&e->lock);
	if (!mine)
		r->engine = NULL;
	return worked;
}

/* Looks at one of all engines that are awake; twice in a row, to see whether it is polled. */
static void scan(void)
{
	struct vb_engine *e = vb_engines_awake(&own.scan_index);
	bool polled;

	if (!e || e == own.now.engine) {
		own.scan_index++;
		return;
	}
	uint64_t polls = atomic_load_explicit(&e->polls, memory_order_relaxed);

	if (own.seen.engine != e) {
		own.seen = remember(e);
		own.seen_polls = polls;
		return;
	}
	own.seen.engine = NULL;
	own.scan_index++;
	polled = polls != own.seen_polls;
	if (!polled && vb_lock_try(&e->lock)) {
		if (e->life == own.seen.life && e->life % 2) {
			vb_engine_uses_keys(e);
			vb_engine_drive(e);
		}
		vb_lock_release(&e->lock);
	}
	if (polled && own.scan_every < SCAN_SELDOM)
		own.scan_every *= 2;
}

/* Inexact where threads meet. */
static void count(_Atomic uint32_t *looks)
{
	uint32_t now = atomic_load_explicit(looks, memory_order_relaxed);

	atomic_store_explicit(looks, now + 1, memory_order_relaxed);
}

void vb_poll_others_found(struct vb_engine *e)
{
	if (own.now.engine == e || e->lock.bias)
		return;
	switched(e);
	/* A poll that finds entries drives nothing, and so does not say whose engine this is. */
	atomic_store_explicit(&e->poller, vb_bias_self(), memory_order_relaxed);
}

void vb_poll_others_of(struct vb_engine *e)
{
	if (own.now.engine != e) {
		if (!e->lock.bias)
			switched(e);
		return;
	}
	if (--own.recent_in == 0) {
		count(&e->looks_recent);
		if (look_at_recent())
			own.recent_every = 1;
		else if (own.recent_every < RECENT_SELDOM)
			own.recent_every *= 2;
		own.recent_in = own.recent_every;
	}
	if (--own.scan_in == 0) {
		own.scan_in = own.scan_every;
		count(&e->looks_any);
		scan();
	}
}
