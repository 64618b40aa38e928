/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * When the event of an armed queue is raised: at once, or moderated (ibv_modify_cq(3)): after
 * cq_count entries, or cq_period microseconds after the first of them, whichever comes first. A
 * count of 0 or a period of 0 is no bound. Entries are never held back; only the event is.
 *
 * Queues whose period runs are in one list. The progress thread goes through it when the earliest
 * period ends. A queue's lock is taken before the list's; the progress thread, which has the list's
 * lock first, only tries.
 */
#include "engine/cq.h"
#include "base/clock.h"
#include "base/fork.h"
#include "process/process.h"
#include "engine/progress.h"

#define RETRY_NS 20000ull /* the queue was busy when its period ended */

static struct vb_lock list_lock = VB_LOCK_AT(VB_ORDER_MODERATED);
static struct vb_cq *list;
static _Atomic uint32_t listed; /* length of the list, for readers without the lock */

/* Entries that were not polled, that caused no event, and that the queue is armed for. */
uint32_t vb_cq_untold(const struct vb_cq *cq)
{
	uint8_t armed = atomic_load(&cq->armed);
	uint32_t from = atomic_load_explicit(&cq->tail, memory_order_relaxed);
	uint32_t count = 0;

	vb_lock_assert_held(&cq->lock);
	if (cq->iterating && (int32_t)(cq->iter_tail - from) > 0)
		from = cq->iter_tail;
	if ((int32_t)(cq->told - from) > 0)
		from = cq->told;
	if (armed == VB_CQ_ANY)
		return cq->head - from;
	for (uint32_t i = from; i != cq->head; i++)
		count += cq->ring[i & cq->mask].solicited;
	return count;
}

static void period_start(struct vb_cq *cq)
{
	cq->mod_at = vb_clock_ns() + cq->mod_period * 1000ull;
	vb_lock_take(&list_lock);
	if (!cq->mod_listed) {
		cq->mod_listed = true;
		cq->mod_next = list;
		list = cq;
		atomic_fetch_add(&listed, 1);
	}
	vb_lock_release(&list_lock);
	vb_progress_expect(cq->mod_at);
}

void vb_cq_tell_of(struct vb_cq *cq, uint32_t entries)
{
	vb_lock_assert_held(&cq->lock);
	cq->mod_pending = entries;
	if (!entries)
		return;
	bool enough = cq->mod_count ? entries >= cq->mod_count : !cq->mod_period;

	if (enough)
		vb_cq_fire(cq);
	else if (cq->mod_period && !cq->mod_at)
		period_start(cq);
	else if (!cq->mod_period)
		cq->mod_at = 0;
}

/*
 * Arming is for entries that come from now on (IBA 11.4.2.2); programs arm and then poll. Some
 * programs do not expect an event about an entry that this poll finds: perftest takes it for
 * another entry, ibv_rc_pingpong -t for an error. Others (UCX) poll to the end of the queue, arm,
 * and wait. They do not know of entries that came in between, and adapters raise an event for
 * these. So an entry that came after a poll which found the end of the queue, and before any event,
 * counts as one that came after the call.
 */
void vb_cq_arm(struct vb_cq *cq, uint8_t want)
{
	vb_lock_take(&cq->lock);
	uint8_t before = atomic_load(&cq->armed);

	if (want > before) {
		atomic_store(&cq->armed, want);
		/* A moderated event may be due. */
		if (!cq->seen_empty && !cq->mod_pending)
			cq->told = cq->head;
		vb_cq_tell_of(cq, vb_cq_untold(cq));
	}
	vb_lock_release(&cq->lock);
}

void vb_cq_tell(struct vb_cq *cq)
{
	vb_lock_assert_held(&cq->lock);
	if (!cq->mod_count && !cq->mod_period)
		vb_cq_fire(cq);
	else
		vb_cq_tell_of(cq, cq->mod_pending + 1);
}

/* Under both locks. The period is over: raises the event for entries that were not polled. */
static void period_end(struct vb_cq *cq)
{
	cq->mod_at = 0;
	cq->mod_pending = 0;
	if (atomic_load(&cq->armed) != VB_CQ_IDLE && vb_cq_untold(cq))
		vb_cq_fire(cq);
}

/*
 * Looks at one queue of the list. Returns when to look again, 0: the queue is not in the list any
 * more.
 */
static uint64_t look_at(struct vb_cq *cq, uint64_t now)
{
	uint64_t at;

	if (!vb_lock_try(&cq->lock))
		return now + RETRY_NS;
	if (cq->mod_at && cq->mod_at <= now)
		period_end(cq);
	at = cq->mod_at;
	cq->mod_listed = at != 0;
	vb_lock_release(&cq->lock);
	return at;
}

/* Raises the events that are due. */
static uint64_t serve(void)
{
	uint64_t earliest = 0;
	uint64_t now;

	if (!atomic_load_explicit(&listed, memory_order_relaxed))
		return 0;
	now = vb_clock_ns();
	vb_lock_take(&list_lock);
	for (struct vb_cq **at = &list; *at;) {
		uint64_t next = look_at(*at, now);

		if (!next) {
			*at = (*at)->mod_next;
			atomic_fetch_sub(&listed, 1);
			continue;
		}
		if (!earliest || next < earliest)
			earliest = next;
		at = &(*at)->mod_next;
	}
	vb_lock_release(&list_lock);
	return earliest;
}

void vb_cq_moderate_end(struct vb_cq *cq)
{
	vb_lock_take(&list_lock);
	for (struct vb_cq **at = &list; *at; at = &(*at)->mod_next) {
		if (*at == cq) {
			*at = cq->mod_next;
			atomic_fetch_sub(&listed, 1);
			break;
		}
	}
	cq->mod_listed = false;
	vb_lock_release(&list_lock);
}

/* In the child the queues are the parent's. */
static void forked(void)
{
	list_lock = (struct vb_lock)VB_LOCK_AT(VB_ORDER_MODERATED);
	list = NULL;
	atomic_store(&listed, 0);
}

VB_PROGRESS_HOOK(.serve = serve);

VB_FORK_HOOK(.phase = VB_FORK_ROOMS, .child = forked);
