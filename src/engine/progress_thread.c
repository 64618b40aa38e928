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
#include "engine/attend.h"
#include "engine/await.h"
#include "engine/doze.h"
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
 * A look that was put off for so long by sched_yield(2) means that others want the processor. The
 * thread does not linger then for a while, which is doubled each time.
 */
#define CROWDED_NS       200000ull
#define ALONE_FIRST      50000000ull
#define ALONE_LONGEST    1000000000ull
/* Turns in a row with work, in which nothing but the engines is looked at. */
#define TURNS_BUSY       8u
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
	uint64_t now;
	bool doorbell; /* every engine may have news */
	bool packets;  /* sockets may have packets: one engine that reads them is enough */
	bool beside;   /* of engines that are polled, too: their pollers leave packets there */
	bool last;     /* nobody looks again soon: what waits for a reply is sent */
	bool called;   /* the engine looked at may have news */
	bool walks;    /* looks at all engines that are watched, not at the called ones alone */
	bool worked;
	uint64_t lease_end; /* the first lease to run out, 0: none runs */
	bool deferred;      /* an acknowledgement waits for a reply */
	bool waiting;       /* a queue pair waits for room or contact */
	bool missed;        /* an engine was busy: what the doorbell rang for may still be there */
	bool served;        /* packets were found beside a poller */
	bool at_it;         /* a poller was in the engine instead */
	bool read_awake;    /* an engine with links that must be read is polled */
	bool read_asleep;   /* such an engine is not polled */
	uint64_t deadline;  /* earliest timer, 0: none */
	struct vb_doze *doze;
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

	if (vb_doze_is_full(pass->doze))
		pass->missed |= !vb_doze_end(pass->doze, e->node);
	if (!vb_engine_try(e)) {
		pass->missed = true; /* another thread is in the engine, but perhaps only posts */
		vb_bell_call(e->node, e->index);
		return;
	}
	e->clock_skip = 0;
	worked = vb_engine_drive(e);
	pass->packets &= worked || !e->reads;
	if (worked) {
		pass->worked = true;
		vb_bell_call(e->node, e->index); /* there may be more */
	} else if (!__atomic_load_n(&e->pub->asleep, __ATOMIC_RELAXED)) {
		vb_doze_add(pass->doze, e);
	}
	vb_lock_release(&e->lock);
}

/*
 * The engine is polled, but its poller leaves what is there. A program that replies soon takes the
 * acknowledgement along (reply.h); after the last look it leaves by itself.
 */
static void drive_beside(struct vb_engine *e, struct pass *pass)
{
	bool worked;

	if (!vb_engine_try(e)) {
		pass->at_it |= pass->beside;
		return;
	}
	e->clock_skip = 0;
	worked = vb_engine_drive_beside(e, pass->last);
	vb_lock_release(&e->lock);
	pass->worked |= worked;
	pass->served |= worked && pass->beside;
	pass->beside &= worked;
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

/* Whether the engine is polled: the poll before was not longer ago than a lease. */
static bool leased(struct vb_engine *e, struct pass *pass, bool *polled)
{
	uint64_t polls = atomic_load_explicit(&e->polls, memory_order_relaxed);

	*polled = polls != e->polls_seen;
	if (__atomic_load_n(&e->pub->asleep, __ATOMIC_RELAXED))
		return false;
	if (*polled) {
		e->polls_seen = polls;
		e->polled_at = pass->now;
	}
	uint64_t end = e->polled_at + VB_LEASE_NS;

	if (pass->now >= end)
		return false;
	if (!pass->lease_end || end < pass->lease_end)
		pass->lease_end = end;
	return true;
}

/*
 * An acknowledgement waits for the program's reply, as it did at the look before, and the program
 * has not polled since.
 */
static bool left_waiting(struct vb_engine *e, const struct pass *pass)
{
	uint64_t before = e->deferred_seen;
	bool waits_now = __atomic_load_n(&e->deferred, __ATOMIC_RELAXED);

	e->deferred_seen = waits_now ? e->polls_seen : 0;
	return waits_now && pass->last && before == e->polls_seen;
}

/*
 * A timer that is still due was left to the engine's poller, or another thread is in the engine. It is
 * looked at again soon, but not without a pause: the program may be in a long copy.
 */
static void timer_note(const struct vb_engine *e, struct pass *pass)
{
	uint64_t deadline = atomic_load_explicit(&e->deadline, memory_order_relaxed);

	if (deadline && deadline <= pass->now)
		pass->waiting = true;
	else
		note_deadline(pass, deadline);
}

static void look_at(struct vb_engine *e, struct pass *pass)
{
	bool asleep, polled;

	if (leased(e, pass, &polled)) {
		if ((pass->beside && __atomic_load_n(&e->reads, __ATOMIC_RELAXED)) ||
		    (!polled && timer_due(e)) || left_waiting(e, pass)) {
			drive_beside(e, pass);
			(void)left_waiting(e, pass);
			polled = false;
		}
		/* Of a program that polls, its next poll decides. */
		pass->deferred |= e->deferred_seen && !polled;
	} else if (!__atomic_load_n(&e->pub->asleep, __ATOMIC_RELAXED) || has_news(e, pass)) {
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
	timer_note(e, pass);
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
	if (pass->doze->count)
		pass->missed |= !vb_doze_end(pass->doze, node);
}

/* What walks found, and when the next one is due. */
struct walks {
	bool read_awake, read_asleep; /* of the last one */
	uint64_t next;
};

static void look(struct vb_node *node, struct walks *w, struct pass *pass)
{
	pass->walks = pass->doorbell || pass->packets || pass->now >= w->next;
	look_at_all(node, pass);
	if (!pass->walks) {
		pass->read_awake |= w->read_awake;
		pass->read_asleep |= w->read_asleep;
		note_deadline(pass, w->next);
		return;
	}
	uint64_t took = vb_clock_ns() - pass->now;

	w->next = pass->worked || took < WALK_IS_SHORT_NS ? 0 : pass->now + took * (1 + WALK_PAUSE);
	w->read_awake = pass->read_awake;
	w->read_asleep = pass->read_asleep;
}

static int64_t wait_for(struct pass *pass, uint64_t now, int64_t room_ns)
{
	int64_t wait = -1;

	note_deadline(pass, pass->lease_end);
	if (pass->waiting || pass->missed)
		wait = room_ns;
	if (pass->deadline) {
		int64_t left = pass->deadline > now ? (int64_t)(pass->deadline - now) : 0;

		if (wait < 0 || left < wait)
			wait = left;
	}
	return wait;
}

/* What the thread remembers from one turn to the next. */
struct turns {
	struct vb_attend attend;
	struct walks walks;
	bool packets, beside; /* of the next pass */
	uint64_t linger_until;
	uint32_t busy;        /* turns in a row with work */
	uint64_t alone_until; /* others want the processor: it does not linger until then */
	uint64_t alone_ns;
	int64_t room_ns;
	struct vb_doze doze;
};

/*
 * The processor is given to others only when there is no work: on a crowded machine a turn comes
 * every 20 ms, and a peer that sends faster than a batch in a turn gives up. Whoever spins on the
 * same processor gets it for milliseconds; then the thread is better woken by the next packet.
 */
static void give_way(struct turns *t, uint64_t now)
{
	sched_yield();
	uint64_t then = vb_clock_ns();

	if (then - now < CROWDED_NS)
		return;
	t->alone_ns = t->alone_ns * 2 < ALONE_LONGEST ? t->alone_ns * 2 : ALONE_LONGEST;
	t->alone_until = then + t->alone_ns;
}

/* More work is likely to follow at once: looks on without a wait. False: it is time to wait. */
static bool linger(struct turns *t, struct vb_node *node, const struct pass *pass, uint64_t now)
{
	if (pass->worked)
		t->linger_until = now + LINGER_NS;
	t->busy = pass->worked ? t->busy + 1 : 0;
	if (now >= t->linger_until || (!pass->worked && pass->read_awake && now < t->alone_until))
		return false;
	if (!pass->worked)
		give_way(t, now);
	if (!pass->worked || t->busy % TURNS_BUSY == 0)
		(void)vb_node_wait(node, 0);
	(void)vb_progress_rang();
	t->beside = pass->read_awake && vb_attend_serves(&t->attend);
	t->packets = (!pass->read_awake || t->beside) && now >= t->walks.next;
	return true;
}

static int64_t sooner(int64_t wait, int64_t most)
{
	return most >= 0 && (wait < 0 || wait > most) ? most : wait;
}

static void rest_until_news(struct turns *t, struct vb_node *node, struct pass *pass, uint64_t now)
{
	bool arm;

	t->room_ns = pass->worked || !(pass->waiting || pass->missed) ? (int64_t)ROOM_FIRST_NS
								      : t->room_ns * 2;
	if (t->room_ns > (int64_t)VB_LEASE_NS)
		t->room_ns = (int64_t)VB_LEASE_NS;
	int64_t wait = wait_for(pass, now, t->room_ns);

	wait = sooner(wait, vb_attend_before(&t->attend, pass->read_awake, &arm));
	if (pass->deferred)
		wait = sooner(wait,
			      (int64_t)(now < t->linger_until ? t->linger_until - now : LINGER_NS));
	if (arm && (pass->read_asleep || pass->read_awake))
		vb_progress_arm();
	if (wait && !vb_progress_plan(wait > 0 ? now + (uint64_t)wait : UINT64_MAX))
		wait = 0;
	(void)vb_node_wait(node, wait);
	t->packets = vb_progress_rang();
	t->beside = vb_attend_after(&t->attend, t->packets && pass->read_awake,
				    vb_progress_taken_by_pollers());
	t->packets |= t->beside;
}

void vb_progress_main(struct vb_node *node)
{
	struct turns t = {.packets = true, .room_ns = ROOM_FIRST_NS, .alone_ns = ALONE_FIRST};

	vb_attend_begin(&t.attend);
	vb_progress_enter();
	for (;;) {
		struct pass pass = {
			.now = vb_clock_ns(),
			.packets = t.packets,
			.beside = t.beside,
			.doorbell = vb_bell_lost(node),
			.doze = &t.doze,
		};

		pass.last = pass.now >= t.linger_until;
		vb_progress_look();
		look(node, &t.walks, &pass);
		if (pass.at_it)
			vb_attend_found_poller(&t.attend);
		else if (pass.served)
			vb_attend_served(&t.attend);
		note_deadline(&pass, vb_progress_serve());
		pass.waiting |= vb_progress_room_wanted();
		uint64_t now = vb_clock_ns();

		note_deadline(&pass, vb_await_serve(node, now));
		if (!linger(&t, node, &pass, now))
			rest_until_news(&t, node, &pass, now);
	}
}
