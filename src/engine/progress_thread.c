/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The progress thread: drives engines that no thread polls.
 *
 * While a thread polls an engine, the engine's poll count grows: that is the lease. The progress
 * thread looks every VB_LEASE_NS, and only while an engine is awake or has work. When a count has
 * not grown, it takes over, drains, and puts the engine to sleep, the only state in which senders
 * ring the doorbell. With every engine asleep and no timer armed it waits for ever: an idle process
 * uses no CPU.
 */
#include "engine/progress_thread.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "engine/await.h"
#include "engine/drive.h"
#include "engine/engine.h"
#include "engine/engines.h"
#include "engine/progress.h"
#include "process/process.h"
#include "host/bell.h"
#include "host/node.h"
#include "host/peer.h"

#define LINGER_NS        40000ull /* after work it looks on for so long before it sleeps */
/*
 * A packet came while an engine was polled: so soon the thread looks whether the engine still is.
 */
#define PROBE_NS         30000ll
/* It is: the thread does not ask for so long, doubled up to the lease. */
#define TRUST_FIRST_NS   60000ll
/*
 * A walk over the watched engines that found nothing is followed by a pause of so many times its
 * length: with thousands of engines the thread would else do nothing but walk, while its peers wait
 * for answers.
 */
#define WALK_PAUSE       4u
#define WALK_IS_SHORT_NS 20000ull
/* Work waits for room in a ring or for contact: the first look, doubled up to the lease. */
#define ROOM_FIRST_NS    20000ll

struct pass {
	bool doorbell; /* every engine may have news */
	bool packets;  /* a socket has packets: one engine that reads them is enough */
	bool called;   /* the engine looked at may have news */
	bool walks;    /* looks at all engines that are watched, not at the called ones alone */
	bool worked;
	bool awake;        /* the lease of an engine runs */
	bool waiting;      /* a queue pair waits for room or contact */
	bool missed;       /* an engine was busy: what the doorbell rang for may still be there */
	bool read_awake;   /* an engine with links that must be read is polled */
	bool read_asleep;  /* such an engine is not polled */
	uint64_t deadline; /* earliest timer, 0: none */
};

/*
 * Here a request is noticed that waits for a peer which died without a hang-up (exec with a forked
 * child alive).
 */
static void note_deadline(struct pass *pass, uint64_t deadline)
{
	if (deadline && (!pass->deadline || deadline < pass->deadline))
		pass->deadline = deadline;
}

static void drive_unpolled(struct vb_engine *e, struct pass *pass)
{
	bool worked;

	if (!vb_engine_try(e)) {
		pass->missed = true; /* another thread is in the engine, but perhaps only posts */
		vb_bell_call(e->node, e->index);
		return;
	}
	e->clock_skip = 0;
	worked = vb_engine_drive(e);
	if (worked) {
		pass->worked = true;
		vb_bell_call(e->node, e->index); /* there may be more */
	} else if (!__atomic_load_n(&e->pub->asleep, __ATOMIC_RELAXED)) {
		vb_engine_sleep(e);
	}
	vb_lock_release(&e->lock);
}

/* The engine sleeps: processes that revoke memory need not look at its mark any more. */
static void rest(struct vb_engine *e)
{
	if (!vb_lock_try(&e->lock))
		return;
	if (__atomic_load_n(&e->pub->asleep, __ATOMIC_RELAXED))
		vb_mark_rest(e->node, e->index);
	vb_lock_release(&e->lock);
}

static bool timer_due(const struct vb_engine *e)
{
	uint64_t deadline = atomic_load_explicit(&e->deadline, memory_order_relaxed);

	return deadline && deadline <= vb_clock_ns();
}

static bool waits(const struct vb_engine *e)
{
	return atomic_load_explicit(&e->waiting, memory_order_relaxed) ||
	       atomic_load_explicit(&e->keeps, memory_order_relaxed);
}

/* Whether the engine is to be looked at before it is called. */
static bool interesting(const struct vb_engine *e)
{
	return !__atomic_load_n(&e->pub->asleep, __ATOMIC_RELAXED) ||
	       __atomic_load_n(&e->reads, __ATOMIC_RELAXED) ||
	       atomic_load_explicit(&e->deadline, memory_order_relaxed) || waits(e) ||
	       atomic_load_explicit(&e->inbox_news, memory_order_relaxed) ||
	       vb_mark_is_listed(e->node, e->index);
}

static bool has_news(const struct vb_engine *e, const struct pass *pass)
{
	return pass->doorbell || pass->called ||
	       (pass->packets && __atomic_load_n(&e->reads, __ATOMIC_RELAXED)) || timer_due(e) ||
	       waits(e) || atomic_load_explicit(&e->inbox_news, memory_order_relaxed);
}

static void look_at(struct vb_engine *e, struct pass *pass)
{
	uint64_t polls = atomic_load_explicit(&e->polls, memory_order_relaxed);
	bool asleep = __atomic_load_n(&e->pub->asleep, __ATOMIC_RELAXED);

	if (!asleep && polls != e->polls_seen) {
		e->polls_seen = polls;
		pass->awake = true;
	} else if (!asleep || has_news(e, pass)) {
		drive_unpolled(e, pass);
	} else if (vb_mark_is_listed(e->node, e->index)) {
		rest(e);
	}
	if (__atomic_load_n(&e->reads, __ATOMIC_RELAXED)) {
		asleep = __atomic_load_n(&e->pub->asleep, __ATOMIC_RELAXED);
		pass->read_asleep |= asleep;
		pass->read_awake |= !asleep;
	}
	pass->waiting |= waits(e);
	note_deadline(pass, atomic_load_explicit(&e->deadline, memory_order_relaxed));
	if (interesting(e)) {
		vb_engines_watch(e);
		return;
	}
	vb_engines_unwatch(e->index);
	if (interesting(e))
		vb_engines_watch(e);
}

static void look_at_word(struct vb_node *node, uint32_t word, struct pass *pass)
{
	uint64_t called = vb_bell_take(node, word);
	uint64_t bits = called | (pass->doorbell ? UINT64_MAX : 0);

	if (pass->walks)
		bits |= vb_engines_watched(word);

	for (; bits; bits &= bits - 1) {
		uint32_t index = word * VB_ENGINES_WORD + (uint32_t)__builtin_ctzll(bits);
		struct vb_engine *e = vb_engines_hold(index);

		if (!e)
			continue;
		pass->called = called >> index % VB_ENGINES_WORD & 1;
		look_at(e, pass);
		vb_engines_release(e);
	}
}

/*
 * Looks at the engines of the process that were called, that are polled, or that wait for
 * something. The others need nothing.
 */
static void look_at_all(struct vb_node *node, struct pass *pass)
{
	uint32_t words = (vb_engines_top() + VB_ENGINES_WORD - 1) / VB_ENGINES_WORD;

	for (uint32_t word = 0; word < words; word++)
		look_at_word(node, word, pass);
}

/* What walks found, and when the next one is due. */
struct walks {
	bool awake, read_awake, read_asleep; /* of the last one */
	uint64_t next;
};

static void look(struct vb_node *node, struct walks *w, struct pass *pass)
{
	uint64_t begun = vb_clock_ns();

	pass->walks = pass->doorbell || pass->packets || begun >= w->next;
	look_at_all(node, pass);
	if (!pass->walks) {
		pass->awake |= w->awake;
		pass->read_awake |= w->read_awake;
		pass->read_asleep |= w->read_asleep;
		note_deadline(pass, w->next);
		return;
	}
	uint64_t took = vb_clock_ns() - begun;

	w->next = pass->worked || took < WALK_IS_SHORT_NS ? 0 : begun + took * (1 + WALK_PAUSE);
	w->awake = pass->awake;
	w->read_awake = pass->read_awake;
	w->read_asleep = pass->read_asleep;
}

static int64_t wait_for(const struct pass *pass, uint64_t now, int64_t room_ns)
{
	int64_t wait = -1;

	if (pass->awake)
		wait = (int64_t)VB_LEASE_NS;
	if (pass->waiting || pass->missed)
		wait = room_ns;
	if (pass->deadline) {
		int64_t left = pass->deadline > now ? (int64_t)(pass->deadline - now) : 0;

		if (wait < 0 || left < wait)
			wait = left;
	}
	return wait;
}

/*
 * A program that spins on its memory instead of polling (it expects a WRITE) would wait for the end
 * of the lease each time. So the sockets are armed while an engine is polled as well. The packet
 * that wakes the thread is left to the poller if the lease grows shortly afterwards; then the
 * sockets stay unarmed for a while.
 */
struct arming {
	enum { ARMING_ARMED, ARMING_PROBE, ARMING_TRUST } mode;
	int64_t trust_ns;
};

static int64_t arming_before(struct arming *v, const struct pass *pass, int64_t wait)
{
	int64_t most = -1;

	if (!pass->read_awake) {
		v->mode = ARMING_ARMED;
		v->trust_ns = TRUST_FIRST_NS;
	}
	if (v->mode == ARMING_PROBE)
		most = PROBE_NS;
	else if (v->mode == ARMING_TRUST)
		most = v->trust_ns;
	else if (pass->read_asleep || pass->read_awake)
		vb_progress_arm();
	return most >= 0 && (wait < 0 || wait > most) ? most : wait;
}

/* True if a packet has come that no thread has taken yet. */
static bool arming_after(struct arming *v, const struct pass *pass)
{
	bool packet = vb_progress_rang();

	switch (v->mode) {
	case ARMING_ARMED:
		if (packet && pass->read_awake)
			v->mode = ARMING_PROBE;
		break;
	case ARMING_PROBE:
		v->mode = ARMING_TRUST;
		break;
	case ARMING_TRUST:
		v->mode = ARMING_ARMED;
		v->trust_ns = v->trust_ns * 2 < (int64_t)VB_LEASE_NS ? v->trust_ns * 2
								     : (int64_t)VB_LEASE_NS;
		break;
	}
	return packet;
}

void vb_progress_main(struct vb_node *node)
{
	uint64_t linger_until = 0;
	int64_t room_ns = ROOM_FIRST_NS;
	bool packets = true;
	struct arming arming = {.trust_ns = TRUST_FIRST_NS};
	struct walks walks = {0};

	vb_progress_enter();
	for (;;) {
		struct pass pass = {.packets = packets, .doorbell = vb_bell_lost(node)};

		vb_progress_look();
		look(node, &walks, &pass);
		note_deadline(&pass, vb_progress_serve());
		pass.waiting |= vb_progress_room_wanted();
		uint64_t now = vb_clock_ns();

		note_deadline(&pass, vb_await_serve(node, now));
		if (pass.worked)
			linger_until = now + LINGER_NS;
		if (now < linger_until) {
			/*
			 * More work is likely to follow at once. The processor is given to others
			 * only when there is none: on a crowded machine a turn comes every 20 ms,
			 * and a peer that sends faster than a batch in a turn gives up.
			 */
			if (!pass.worked)
				sched_yield();
			(void)vb_node_wait(node, 0);
			packets |= pass.worked | vb_progress_rang();
			continue;
		}
		room_ns = pass.worked || pass.missed || !pass.waiting ? ROOM_FIRST_NS : room_ns * 2;
		if (room_ns > (int64_t)VB_LEASE_NS)
			room_ns = (int64_t)VB_LEASE_NS;
		int64_t wait = arming_before(&arming, &pass, wait_for(&pass, now, room_ns));

		if (wait && !vb_progress_plan(wait > 0 ? now + (uint64_t)wait : UINT64_MAX))
			wait = 0;
		(void)vb_node_wait(node, wait);
		packets = arming_after(&arming, &pass);
	}
}
