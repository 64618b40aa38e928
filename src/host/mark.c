/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Marks: which memory an engine is touching. An initiator publishes its target, fences, looks
 * whether the target is still valid, touches, clears. A process that makes something invalid stores
 * that, fences, and waits for the marks that name it. One of the two sees the other.
 *
 * Both sides fence. The owner could make the initiators pass a barrier instead (base/barrier.h): WRITEs
 * of 8 bytes into mapped memory are a fifth faster then, but each revocation interrupts the processors
 * on which the peers run, which took 10 us in a virtual machine.
 *
 * The wait is for copies that the kernel or a processor is making now. The mark of a process that
 * stands still is no such copy: when the process goes on, its guard (guard.h) finds the change
 * before it touches another byte.
 */
#include <sched.h>
#include <stdlib.h>
#include <time.h>

#include "base/lock.h"
#include "base/sys.h"
#include "base/reason.h"
#include "host/private.h"
#include "host/standstill.h"

#define SPINS      200
#define SLEEP_NS   100000
#define LOOK_EVERY 20 /* sleeps between two looks at whether the peer stands still: 2 ms */

static void marking_begin(uint64_t *word, uint64_t bit)
{
	if (!(__atomic_load_n(word, __ATOMIC_RELAXED) & bit))
		__atomic_fetch_or(word, bit, __ATOMIC_SEQ_CST);
}

static void mark_set(struct vb_node *node, uint32_t engine, uint64_t nonce, uint32_t qpn,
		     uint32_t key)
{
	struct vb_page_engine *e = &node->page->engine[engine];

	/*
	 * Before the mark: a process that sees the bit missing has looked before the fence below, and
	 * the check behind that fence sees what it has revoked.
	 */
	marking_begin(&node->page->marking[engine / 64], 1ull << engine % 64);
	/*
	 * Release: a process that sees the new numbers also sees that the access of the mark before
	 * is finished.
	 */
	__atomic_store_n(&e->mark_qpn, qpn, __ATOMIC_RELEASE);
	__atomic_store_n(&e->mark_slot, vb_key_slot(key), __ATOMIC_RELEASE);
	__atomic_store_n(&e->mark_nonce, nonce, __ATOMIC_RELEASE);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

void vb_mark_set(struct vb_node *node, uint32_t engine, const struct vb_peer *peer, uint32_t qpn,
		 uint32_t key)
{
	mark_set(node, engine, peer->nonce, qpn, key);
}

void vb_mark_set_own(struct vb_node *node, uint32_t engine, uint32_t key)
{
	mark_set(node, engine, node->nonce, 0, key);
}

void vb_mark_clear(struct vb_node *node, uint32_t engine)
{
	__atomic_store_n(&node->page->engine[engine].mark_nonce, 0, __ATOMIC_RELEASE);
}

void vb_mark_rest(struct vb_node *node, uint32_t engine)
{
	uint64_t *word = &node->page->marking[engine / 64];
	uint64_t bit = 1ull << engine % 64;

	if (__atomic_load_n(word, __ATOMIC_RELAXED) & bit)
		__atomic_fetch_and(word, ~bit, __ATOMIC_SEQ_CST);
}

bool vb_mark_is_listed(const struct vb_node *node, uint32_t engine)
{
	return __atomic_load_n(&node->page->marking[engine / 64], __ATOMIC_RELAXED) >> engine % 64 &
	       1;
}

static bool names(const struct vb_page_engine *e, uint64_t nonce, uint32_t qpn, uint32_t key)
{
	if (__atomic_load_n(&e->mark_nonce, __ATOMIC_ACQUIRE) != nonce)
		return false;
	return key ? __atomic_load_n(&e->mark_slot, __ATOMIC_ACQUIRE) == vb_key_slot(key)
		   : __atomic_load_n(&e->mark_qpn, __ATOMIC_ACQUIRE) == qpn;
}

static void pause_for(int *turn)
{
	struct timespec t = {0, SLEEP_NS};

	if ((*turn)++ < SPINS)
		sched_yield();
	else
		vb_sys_nanosleep(&t);
}

/*
 * The next engine from *engine on that may have a mark. What the peer says of how many there are is
 * bounded by the table.
 */
static bool next_marking(const struct vb_peer *peer, uint32_t *engine)
{
	uint32_t n = __atomic_load_n(&peer->page->header.num_engines, __ATOMIC_SEQ_CST);

	n = n < VB_MAX_ENGINES ? n : VB_MAX_ENGINES;
	while (*engine < n) {
		uint64_t bits =
			__atomic_load_n(&peer->page->marking[*engine / 64], __ATOMIC_SEQ_CST) >>
			*engine % 64;

		if (bits) {
			*engine += (uint32_t)__builtin_ctzll(bits);
			return *engine < n;
		}
		*engine = (*engine / 64 + 1) * 64;
	}
	return false;
}

/* One look is enough: a mark that is set after the fence finds the entry invalid. */
static bool any_named(const struct vb_node *node, uint32_t qpn, uint32_t key)
{
	for (const struct vb_peer *p = node->peers; p; p = p->next) {
		for (uint32_t i = 0; next_marking(p, &i); i++) {
			if (names(&p->page->engine[i], node->nonce, qpn, key))
				return true;
		}
	}
	return false;
}

/*
 * Waits for the marks of all peers together. A process waits for its own threads as long as they
 * take.
 */
struct patience {
	int64_t until;
	int turn;
};

static bool worth_waiting(const struct vb_peer *peer, struct patience *p)
{
	if (peer->self)
		return true;
	if (!vb_peer_alive(peer))
		return false;
	if (p->turn < SPINS || p->turn % LOOK_EVERY)
		return true;
	if (vb_stands_still(peer->seen_pid))
		return false;
	if (vb_node_clock() < p->until)
		return true;
	vb_note(VB_REASON_PEER_STILL,
		"process %u has been about to touch memory for longer than %lld ms: it is not waited for",
		vb_peer_pid(peer), VB_STANDSTILL_NS / VB_MSEC);
	return false;
}

static void await_peer(const struct vb_peer *peer, uint64_t nonce, uint32_t qpn, uint32_t key,
		       struct patience *p)
{
	p->turn = 0;
	for (uint32_t i = 0; next_marking(peer, &i); i++) {
		while (names(&peer->page->engine[i], nonce, qpn, key)) {
			if (!worth_waiting(peer, p))
				return;
			pause_for(&p->turn);
		}
	}
}

bool vb_peer_stands_still(const struct vb_peer *peer)
{
	return vb_stands_still(peer->seen_pid);
}

/* All peers, with a reference each, so that none is unmapped while it is waited for. */
static struct vb_peer **peers_hold(struct vb_node *node, size_t *count)
{
	size_t n = 0;

	for (struct vb_peer *p = node->peers; p; p = p->next)
		n++;
	struct vb_peer **list = n ? malloc(n * sizeof(struct vb_peer *)) : NULL;

	*count = 0;
	for (struct vb_peer *p = node->peers; p && list; p = p->next) {
		vb_peer_ref(p);
		list[(*count)++] = p;
	}
	return list;
}

/*
 * Without memory for a list the lock is held while waiting. Slower for other threads, never wrong.
 */
static void await_locked(struct vb_node *node, uint32_t qpn, uint32_t key,
			 struct patience *patience)
{
	vb_mutex_take(&node->lock, VB_ORDER_NODE);
	for (struct vb_peer *p = node->peers; p; p = p->next)
		await_peer(p, node->nonce, qpn, key, patience);
	vb_mutex_release(&node->lock);
}

void vb_mark_await(struct vb_node *node, uint32_t qpn, uint32_t key)
{
	struct patience patience = {0, 0};
	size_t n = 0;

	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	await_peer(node->self, node->nonce, qpn, key, &patience);
	vb_mutex_take(&node->lock, VB_ORDER_NODE);
	if (!any_named(node, qpn, key)) {
		vb_mutex_release(&node->lock);
		return;
	}
	patience.until = vb_node_clock() + VB_STANDSTILL_NS;
	struct vb_peer **list = peers_hold(node, &n);

	vb_mutex_release(&node->lock);
	if (!list) {
		await_locked(node, qpn, key, &patience);
		return;
	}
	for (size_t i = 0; i < n; i++)
		await_peer(list[i], node->nonce, qpn, key, &patience);
	vb_mutex_take(&node->lock, VB_ORDER_NODE);
	for (size_t i = 0; i < n; i++)
		vb_peer_unref(list[i]);
	vb_mutex_release(&node->lock);
	free(list);
}
