/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Queue pairs that wait for contact: the lists, and who tells them of news. */
#include "engine/await.h"

#include <stdatomic.h>

#include "base/clock.h"
#include "base/fork.h"
#include "base/list.h"
#include "engine/engines.h"
#include "host/bell.h"
#include "host/channel.h"
#include "process/process.h"

#define FIRST_NS   2000000ull   /* the first pause between two times that all ask, */
#define LONGEST_NS 512000000ull /* doubled up to this */

static struct {
	_Atomic uint64_t
		engine[VB_MAX_ENGINES / VB_ENGINES_WORD]; /* those with waiting queue pairs */
	_Atomic uint32_t engines;                         /* how many */
	_Atomic uint64_t news, calls;
	/* The progress thread's. */
	uint64_t at, pause;
} await;

static void engine_waits(const struct vb_engine *e)
{
	atomic_fetch_or(&await.engine[e->index / VB_ENGINES_WORD],
			1ull << e->index % VB_ENGINES_WORD);
	if (atomic_fetch_add(&await.engines, 1) == 0)
		vb_progress_expect(vb_clock_ns() + FIRST_NS);
}

static void engine_waits_not(const struct vb_engine *e)
{
	atomic_fetch_and(&await.engine[e->index / VB_ENGINES_WORD],
			 ~(1ull << e->index % VB_ENGINES_WORD));
	atomic_fetch_sub(&await.engines, 1);
}

void vb_await_begin(struct vb_engine *e, struct vb_qp *qp, enum vb_awaits what)
{
	unsigned int list = what - 1;

	vb_lock_assert_held(&e->lock);
	vb_await_end(e, qp);
	if (what == VB_AWAITS_CONTACT && !e->awaiting[list]) {
		e->contact_seen = atomic_load(&await.news);
		e->calls_seen = atomic_load(&await.calls);
		engine_waits(e);
	}
	qp->awaits = (uint8_t)what;
	VB_LIST_APPEND(e->awaiting[list], e->awaiting_last[list], qp, await_next, await_prev);
}

void vb_await_end(struct vb_engine *e, struct vb_qp *qp)
{
	vb_lock_assert_held(&e->lock);
	if (!qp->awaits)
		return;
	unsigned int list = qp->awaits - 1u;

	VB_LIST_REMOVE_FROM(e->awaiting[list], e->awaiting_last[list], qp, await_next, await_prev);
	if (qp->awaits == VB_AWAITS_CONTACT && !e->awaiting[list])
		engine_waits_not(e);
	qp->awaits = VB_AWAITS_NOTHING;
}

enum vb_await_news vb_await_heard_slow(struct vb_engine *e)
{
	uint64_t news = atomic_load_explicit(&await.news, memory_order_acquire);
	uint64_t calls = atomic_load_explicit(&await.calls, memory_order_relaxed);

	if (news == e->contact_seen)
		return VB_AWAIT_SILENCE;
	e->contact_seen = news;
	if (calls == e->calls_seen)
		return VB_AWAIT_NEWS;
	e->calls_seen = calls;
	return VB_AWAIT_CALL;
}

bool vb_await_is_told(const struct vb_engine *e, const struct vb_qp *qp)
{
	return vb_channel_news(e->node, qp->await_qpn) != qp->await_seen;
}

void vb_await_news(struct vb_node *node)
{
	uint32_t words = (vb_engines_top() + VB_ENGINES_WORD - 1) / VB_ENGINES_WORD;

	atomic_fetch_add(&await.news, 1);
	if (!atomic_load(&await.engines))
		return;
	for (uint32_t word = 0; word < words; word++) {
		uint64_t bits = atomic_load_explicit(&await.engine[word], memory_order_relaxed);

		for (; bits; bits &= bits - 1)
			vb_bell_call(node,
				     word * VB_ENGINES_WORD + (uint32_t)__builtin_ctzll(bits));
	}
	vb_progress_expect(1);
}

uint64_t vb_await_serve(struct vb_node *node, uint64_t now)
{
	if (!atomic_load_explicit(&await.engines, memory_order_relaxed)) {
		await.at = 0;
		return 0;
	}
	if (!await.at) {
		await.pause = FIRST_NS;
		await.at = now + await.pause;
	}
	if (now >= await.at) {
		atomic_fetch_add(&await.calls, 1);
		vb_await_news(node);
		await.pause = await.pause * 2 < LONGEST_NS ? await.pause * 2 : LONGEST_NS;
		await.at = now + await.pause;
	}
	return await.at;
}

/* The engines of the parent are not the child's. */
static void forked(void)
{
	for (uint32_t word = 0; word < VB_MAX_ENGINES / VB_ENGINES_WORD; word++)
		atomic_store(&await.engine[word], 0);
	atomic_store(&await.engines, 0);
	await.at = 0;
}

VB_FORK_HOOK(.phase = VB_FORK_ROOMS, .child = forked);
