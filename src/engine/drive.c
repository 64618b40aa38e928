/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Driving an engine: one turn through its links, queue pairs, timers and hooks; what a poll does
 * before and after it; going to sleep. The links take what arrives.
 */
#include "engine/drive.h"

#include "base/bias.h"
#include "base/clock.h"
#include "engine/await.h"
#include "engine/engine_channel.h"
#include "engine/engines.h"
#include "engine/hook.h"
#include "engine/progress.h"
#include "engine/schedule.h"
#include "engine/settle.h"
#include "host/bell.h"
#include "process/process.h"

#define CLOCK_EVERY_POLLS 32u /* how often a poller reads the clock while a timer is armed */
#define IN_VAIN_MOST \
	16u /* queue pairs that look for a channel in vain, beside one for each channel */
#define NO_ROOM_MOST   64u  /* queue pairs in a drive that have work left */
#define NOBODY_MOST    256u /* the same of those that had found nobody */
#define STREAK_TO_WAKE 24u  /* so many polls in a row mean that a thread polls steadily */

/* To be called before the protocol runs. */
static inline void run_begins(struct vb_engine *e, struct vb_qp *qp)
{
	qp->contact_pending = false;
	if (qp->awaits)
		vb_await_end(e, qp);
}

/* To be called when the protocol has run. */
static void ran(struct vb_engine *e, struct vb_qp *qp, bool more)
{
	vb_qp_settle(qp);
	more |= qp->seeking && qp->link->seek(qp);
	if (qp->contact_pending)
		vb_await_begin(e, qp, VB_AWAITS_CONTACT);
	else if (qp->seeking)
		vb_await_begin(e, qp, VB_AWAITS_CHANNEL);
	if (qp->kind->ran)
		more |= qp->kind->ran(qp);
	if (!more)
		return;
	vb_engine_make_runnable(e, qp);
	/* No thread polls: the progress thread does the rest. */
	if (__atomic_load_n(&e->pub->asleep, __ATOMIC_RELAXED))
		vb_progress_wait_for_room();
}

void vb_engine_run_qp(struct vb_engine *e, struct vb_qp *qp)
{
	bool waits = qp->kind->pump && qp->kind->pump(qp);

	vb_lock_assert_held(&e->lock);
	run_begins(e, qp);
	/* What waits for contact is not looked at in each drive (engine/await.h). */
	ran(e, qp, (vb_tqp_run(&qp->t) && !qp->contact_pending) || waits);
}

void vb_engine_posted(struct vb_engine *e, struct vb_qp *qp)
{
	bool more;

	vb_lock_assert_held(&e->lock);
	run_begins(e, qp);
	if (qp->heard && qp->link->posted(qp, &more))
		ran(e, qp, more);
	else
		vb_engine_run_qp(e, qp);
}

/* Fires timers that are due and finds the next deadline. */
static void timers_fire(struct vb_engine *e)
{
	uint64_t now = vb_clock_ns();
	uint64_t next = 0;

	if (now < atomic_load_explicit(&e->deadline, memory_order_relaxed))
		return;
	for (struct vb_qp *qp = e->timed, *following; qp; qp = following) {
		following = qp->timer_next;
		if (qp->timer_at > now)
			continue;
		vb_engine_timer(e, qp, 0);
		vb_tqp_timer(&qp->t);
		vb_qp_touched(qp);
	}
	for (struct vb_qp *qp = e->timed; qp; qp = qp->timer_next) {
		if (!next || qp->timer_at < next)
			next = qp->timer_at;
	}
	atomic_store_explicit(&e->deadline, next, memory_order_relaxed);
	if (next)
		vb_progress_expect(next);
}

/* The rest of the list, whose last one this is, had no turn: its turn is before the others'. */
static void runnable_keep(struct vb_engine *e, struct vb_qp *rest, struct vb_qp *last)
{
	last->run_next = e->runnable;
	if (!e->runnable)
		e->runnable_last = last;
	e->runnable = rest;
	atomic_store_explicit(&e->waiting, true, memory_order_relaxed);
}

/*
 * Runs each runnable queue pair once. Those with work left stay in the list, and so do those that
 * wait for a reply to be sent first. Thousands may wait for room in one ring: when some have asked
 * in vain, the others ask in later drives.
 */
static void runnable_run(struct vb_engine *e, enum vb_turn turn)
{
	struct vb_qp *list = e->runnable, *last = e->runnable_last;
	uint32_t vain = 0;

	/* One alone, as the partner of a program that replies at once is: it stays where it is. */
	if (list && list == last && list->heard && list->link->defer(list, turn)) {
		atomic_store_explicit(&e->waiting, false, memory_order_relaxed);
		__atomic_store_n(&e->deferred, true, __ATOMIC_RELAXED);
		return;
	}
	e->runnable = NULL;
	__atomic_store_n(&e->deferred, false, __ATOMIC_RELAXED);
	atomic_store_explicit(&e->waiting, false, memory_order_relaxed);
	while (list && vain < NO_ROOM_MOST) {
		struct vb_qp *qp = list;

		list = qp->run_next;
		qp->run_next = NULL;
		qp->runnable = false;
		if (qp->heard && qp->link->defer(qp, turn)) {
			/*
			 * `waiting` is not set: the poller drives again, and the progress thread
			 * takes over when no thread polls.
			 */
			vb_engine_put_runnable(e, qp);
			__atomic_store_n(&e->deferred, true, __ATOMIC_RELAXED);
			continue;
		}
		vb_engine_run_qp(e, qp);
		vain += qp->runnable;
	}
	if (list)
		runnable_keep(e, list, last);
}

/*
 * Runs those that wait, from the one that began first on, until `most` of them wait on. told: only
 * those that there is news for.
 */
static void waiting_run(struct vb_engine *e, enum vb_awaits what, bool told, uint64_t most)
{
	struct vb_qp *last = e->awaiting_last[what - 1], *next;

	for (struct vb_qp *qp = e->awaiting[what - 1]; qp && most; qp = next) {
		next = qp == last ? NULL : qp->await_next; /* behind it are those that wait again */
		if (told && !vb_await_is_told(e, qp))
			continue;
		vb_engine_run_qp(e, qp);
		if (qp->awaits)
			most--;
	}
}

void vb_engine_channels_came(struct vb_engine *e, uint32_t channels)
{
	waiting_run(e, VB_AWAITS_CONTACT, true, (uint64_t)channels + IN_VAIN_MOST);
	/* Those that found nobody may find this process. */
	waiting_run(e, VB_AWAITS_CHANNEL, false, (uint64_t)channels + NOBODY_MOST);
}

enum driver {
	POLLS,  /* a program that polls again soon, and may reply to what has arrived */
	BESIDE, /* a thread beside such a program, */
	LEAVES, /* which does not come again soon */
	ALONE,  /* nobody polls */
};

static void deferred_run(struct vb_engine *e, enum driver who)
{
	if (who != BESIDE)
		runnable_run(e, who == POLLS ? VB_TURN_AGAIN : VB_TURN_LAST);
}

/* A drive in so many reads the clock, while a timer is armed. */
static inline bool clock_is_due(struct vb_engine *e)
{
	if (!atomic_load_explicit(&e->deadline, memory_order_relaxed) || e->clock_skip-- != 0)
		return false;
	e->clock_skip = CLOCK_EVERY_POLLS;
	return true;
}

/* What few drives have to do before they look at the links. True if anything arrived. */
static __attribute__((noinline)) bool before_links(struct vb_engine *e, enum driver who,
						   bool clock_due)
{
	bool worked = false;

	if (e->deferred)
		deferred_run(e, who);
	if (atomic_load_explicit(&e->inbox_news, memory_order_relaxed)) {
		vb_engine_channels_came(e, vb_engine_take_channels(e));
		worked = true;
	}
	if (clock_due)
		timers_fire(e);
	return worked;
}

/* And behind them. */
static __attribute__((noinline)) bool behind_links(struct vb_engine *e)
{
	bool worked = false;

	for (struct vb_engine_hook *h = e->hooks; h; h = h->next)
		worked |= h->drain && h->drain(h);
	enum vb_await_news news = vb_await_heard(e);

	if (news)
		waiting_run(e, VB_AWAITS_CONTACT, news == VB_AWAIT_NEWS, UINT64_MAX);
	return worked;
}

static inline bool drive(struct vb_engine *e, enum driver who)
{
	bool clock_due = clock_is_due(e), worked = false;

	if (VB_SELDOM(e->deferred || clock_due ||
		      atomic_load_explicit(&e->inbox_news, memory_order_relaxed)))
		worked = before_links(e, who, clock_due);
	for (uint32_t i = 0; i < e->num_links; i++)
		worked |= e->link[i]->drain(e, who == POLLS);
	if (VB_SELDOM(e->hooks || e->awaiting[VB_AWAITS_CONTACT - 1]))
		worked |= behind_links(e);
	if (e->runnable && (worked || !e->deferred))
		runnable_run(e, who == ALONE ? VB_TURN_LAST : VB_TURN_ARRIVED);
	if (e->pushed)
		vb_engine_flush(e);
	return worked;
}

bool vb_engine_drive(struct vb_engine *e)
{
	vb_lock_assert_held(&e->lock);
	return drive(e, ALONE);
}

bool vb_engine_drive_beside(struct vb_engine *e, bool last)
{
	vb_lock_assert_held(&e->lock);
	return drive(e, last ? LEAVES : BESIDE);
}

/*
 * A thread polls steadily: senders need not ring any more, and the progress thread watches the
 * lease instead.
 */
static void engine_wake(struct vb_engine *e)
{
	e->streak = 0;
	__atomic_store_n(&e->pub->asleep, 0, __ATOMIC_RELEASE);
	vb_engines_set_awake(e, true);
	vb_engines_watch(e);
	vb_progress_expect(vb_clock_ns() + VB_LEASE_NS);
}

/*
 * While a thread polls steadily, a poll that meets another thread in the engine returns, because it
 * will look again soon. An engine that sleeps serves programs that wait for events. After an event,
 * the poll must find everything that the engine has taken in: some programs look only once, and at
 * another queue than the one that the event was for. So it waits.
 */
static bool poll_enter(struct vb_engine *e)
{
	if (vb_engine_try(e))
		return true;
	if (!__atomic_load_n(&e->pub->asleep, __ATOMIC_RELAXED))
		return false;
	vb_engine_take(e);
	return true;
}

static inline bool polled(struct vb_engine *e, bool armed)
{
	bool asleep = __atomic_load_n(&e->pub->asleep, __ATOMIC_RELAXED);

	vb_engine_count_poll(e);
	if (asleep && !armed && ++e->streak >= STREAK_TO_WAKE) {
		engine_wake(e);
		asleep = false;
	}
	return drive(e, asleep ? ALONE : POLLS);
}

bool vb_engine_polled(struct vb_engine *e, bool armed)
{
	vb_lock_assert_held(&e->lock);
	return polled(e, armed);
}

void vb_engine_poll(struct vb_engine *e, bool armed, _Atomic(struct vb_engine *) *sole)
{
	if (!poll_enter(e))
		return;
	if (sole && atomic_load_explicit(sole, memory_order_relaxed) != e) {
		vb_lock_release(&e->lock);
		return;
	}
	atomic_store_explicit(&e->poller, vb_bias_self(), memory_order_relaxed);
	e->for_events = armed;
	polled(e, armed);
	vb_lock_release(&e->lock);
}

void vb_engine_reads_begin(struct vb_engine *e)
{
	bool first = !e->reads;

	__atomic_store_n(&e->reads, e->reads + 1, __ATOMIC_RELAXED);
	vb_engines_watch(e);
	if (first && __atomic_load_n(&e->pub->asleep, __ATOMIC_RELAXED))
		vb_progress_expect(1);
}

void vb_engine_reads_end(struct vb_engine *e)
{
	__atomic_store_n(&e->reads, e->reads - 1, __ATOMIC_RELAXED);
}

void vb_engine_at_exit(struct vb_engine *e)
{
	if (!vb_engine_try(e))
		return;
	if (e->deferred)
		runnable_run(e, VB_TURN_LAST);
	vb_lock_release(&e->lock);
}

bool vb_engine_sleep_begin(struct vb_engine *e)
{
	vb_lock_assert_held(&e->lock);
	e->streak = 0;
	if (!__atomic_load_n(&e->pub->asleep, __ATOMIC_RELAXED))
		vb_engines_set_awake(e, false);
	bool owes = vb_bell_engine_sleeps(e->node, e->index);

	if (e->reads)
		vb_progress_arm();
	return owes;
}

void vb_engine_sleep_end(struct vb_engine *e)
{
	vb_lock_assert_held(&e->lock);
	if (!vb_engine_drive(e))
		return;
	vb_bell_call(e->node, e->index);
	vb_progress_expect(1);
}

void vb_engine_sleep(struct vb_engine *e)
{
	if (vb_engine_sleep_begin(e))
		vb_bell_senders_pass();
	vb_engine_sleep_end(e);
}
