/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Notes of which engine was rung for: writing this process's notes, reading those of peers, and the
 * engines that were called.
 *
 * A progress thread that is at work need not be rung for: it reads the notes of all peers before it
 * sleeps. With hundreds of peers that costs more than rings do. A process with more than FEW peers
 * therefore never says that it is at work. It reads the notes of those peers whose messages it has
 * read, and then begins another sleep: who has rung in the sleep before rings again.
 */
#include "host/bell.h"

#include "base/barrier.h"
#include "base/lock.h"
#include "host/private.h"

#define FEW 16u

/* An entry names its engine without disclosing the nonce: 32 bits of a product, then the engine. */
static uint64_t entry_for(uint64_t nonce, uint32_t engine)
{
	return (nonce * 0x9e3779b97f4a7c15ull & ~0xffffffffull) | engine;
}

void vb_bell_call(struct vb_node *node, uint32_t engine)
{
	uint64_t bit = 1ull << engine % 64;
	_Atomic uint64_t *word = &node->called[engine / 64];

	/*
	 * A call that is there already is taken after the caller's news: taking is an exchange, and
	 * news are read after it.
	 */
	atomic_thread_fence(memory_order_seq_cst);
	if (!(atomic_load_explicit(word, memory_order_relaxed) & bit))
		atomic_fetch_or(word, bit);
}

uint64_t vb_bell_take(struct vb_node *node, uint32_t word)
{
	if (!atomic_load_explicit(&node->called[word], memory_order_relaxed))
		return 0;
	return atomic_exchange(&node->called[word], 0);
}

static void note(struct vb_node *node, uint64_t nonce, uint32_t engine)
{
	struct vb_page_bells *bells = &node->page->bells;

	vb_lock_take(&node->bell_lock);
	uint64_t n = bells->count;

	/*
	 * The entry of the lap before is overwritten: its reader must see that the count has gone
	 * on.
	 */
	__atomic_store_n(&bells->begun, n + 1, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	__atomic_store_n(&bells->entry[n % VB_PAGE_BELLS], entry_for(nonce, engine),
			 __ATOMIC_RELAXED);
	__atomic_store_n(&bells->count, n + 1, __ATOMIC_RELEASE);
	vb_lock_release(&node->bell_lock);
}

void vb_bell_ring(struct vb_peer *peer, uint32_t engine)
{
	note(peer->node, peer->nonce, engine);
	/*
	 * Pairs with the fence in vb_bell_sleep(): either this thread sees that the peer sleeps, or
	 * the peer sees the note.
	 */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (__atomic_load_n(&peer->page->bells.attentive, __ATOMIC_ACQUIRE))
		return;
	/*
	 * A thread that wakes reads the notes after it has stored that it is awake. A ring that was
	 * not heard yet therefore also covers this note.
	 */
	uint32_t sleep = __atomic_load_n(&peer->page->bells.sleep, __ATOMIC_RELAXED);

	if (atomic_load_explicit(&peer->rung, memory_order_relaxed) == sleep)
		return;
	if (vb_peer_ring(peer))
		atomic_store_explicit(&peer->rung, sleep, memory_order_relaxed);
}

bool vb_bell_engine_sleeps(struct vb_node *node, uint32_t engine)
{
	uint32_t *asleep = &node->page->engine[engine].asleep;
	bool was = __atomic_load_n(asleep, __ATOMIC_RELAXED);

	__atomic_store_n(asleep, 1, __ATOMIC_SEQ_CST);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return !was && !node->page->header.needs_fences;
}

void vb_bell_senders_pass(void)
{
	vb_barrier_pass(VB_BARRIER_GLOBAL);
}

void vb_channel_wake(struct vb_channel *ch)
{
	/* Pairs with vb_bell_senders_pass(). */
	vb_barrier_light(ch->peer->fences);
	if (!__atomic_load_n(ch->remote_asleep, __ATOMIC_RELAXED))
		return;
	struct vb_node *node = ch->peer->node;

	if (ch->loop) {
		vb_bell_call(node, ch->remote_engine);
		vb_node_kick(node);
	} else {
		vb_bell_ring(ch->peer, ch->remote_engine);
	}
}

/* The caller holds the lock. True if the peer has rung since the last time. */
static bool peer_listen(struct vb_node *node, struct vb_peer *peer)
{
	const struct vb_page_bells *bells = &peer->page->bells;
	uint64_t count = __atomic_load_n(&bells->count, __ATOMIC_ACQUIRE);
	uint64_t from = peer->bells_heard;

	if (count == from)
		return false;
	peer->bells_heard = count;
	for (uint64_t i = from; count - from <= VB_PAGE_BELLS && i != count; i++) {
		uint64_t entry =
			__atomic_load_n(&bells->entry[i % VB_PAGE_BELLS], __ATOMIC_RELAXED);
		uint32_t engine = (uint32_t)entry;

		if (engine < VB_MAX_ENGINES && entry == entry_for(node->nonce, engine))
			vb_bell_call(node, engine);
	}
	/* Whether entries were overwritten before they were read. */
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	if (__atomic_load_n(&bells->begun, __ATOMIC_RELAXED) - from > VB_PAGE_BELLS)
		node->bells_lost = true;
	return true;
}

static bool listen_all(struct vb_node *node)
{
	bool any = false;

	vb_mutex_take(&node->lock, VB_ORDER_NODE);
	for (struct vb_peer *p = node->peers; p; p = p->next)
		any |= peer_listen(node, p);
	vb_mutex_release(&node->lock);
	node->rang |= any;
	return any;
}

/* Those whose messages were read since the last time. */
static void listen_spoke(struct vb_node *node)
{
	vb_mutex_take(&node->lock, VB_ORDER_NODE);
	while (node->spoke) {
		struct vb_peer *p = node->spoke;

		node->spoke = p->spoke_next;
		p->spoke = false;
		node->rang |= peer_listen(node, p);
	}
	vb_mutex_release(&node->lock);
}

void vb_bell_spoke(struct vb_node *node, struct vb_peer *peer)
{
	if (!peer) {
		node->hear_all = true;
	} else if (!peer->spoke && peer->state != VB_PEER_DEAD) {
		peer->spoke = true;
		peer->spoke_next = node->spoke;
		node->spoke = peer;
	}
}

void vb_bell_unlist(struct vb_node *node, struct vb_peer *peer)
{
	for (struct vb_peer **p = &node->spoke; peer->spoke && *p; p = &(*p)->spoke_next) {
		if (*p == peer) {
			*p = peer->spoke_next;
			peer->spoke = false;
			return;
		}
	}
}

static void sleep_begin(struct vb_page_bells *bells)
{
	__atomic_store_n(&bells->sleep, bells->sleep + 1, __ATOMIC_RELAXED);
	__atomic_store_n(&bells->attentive, 0, __ATOMIC_RELEASE);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

bool vb_bell_sleep(struct vb_node *node)
{
	struct vb_page_bells *bells = &node->page->bells;

	/* The sleep began when this thread had waited last. */
	if (node->num_peers > FEW && !bells->attentive && !node->hear_all)
		return false;
	node->hear_all = false;
	sleep_begin(bells);
	return listen_all(node);
}

void vb_bell_wake(struct vb_node *node)
{
	struct vb_page_bells *bells = &node->page->bells;

	if (node->num_peers > FEW) {
		/*
		 * Whoever still counts on the sleep before has rung in it, and its message was read;
		 * or it is read in another turn.
		 */
		node->hear_all |= bells->attentive;
		sleep_begin(bells);
		if (!node->hear_all) {
			listen_spoke(node);
			return;
		}
		node->hear_all = false;
	} else {
		__atomic_store_n(&bells->attentive, 1, __ATOMIC_RELAXED);
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
	}
	listen_all(node);
}

bool vb_bell_lost(struct vb_node *node)
{
	bool lost = node->bells_lost;

	node->bells_lost = false;
	return lost;
}
