/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The engines of the process: table, holds, walks, and the bits of those that are watched and those
 * that are awake.
 */
#include "engine/engines.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/fork.h"
#include "base/lock.h"
#include "engine/engine.h"

#define WORDS (VB_MAX_ENGINES / VB_ENGINES_WORD)
#define FEW   64u
#define BLOCK 8u /* engines that are allocated together: each alone loses space to its alignment */

static struct {
	pthread_mutex_t lock; /* a leaf: nothing is taken under it but by trying */
	_Atomic(struct vb_engine *) table[VB_MAX_ENGINES];
	_Atomic uint32_t top, count;
	_Atomic uint64_t watched[WORDS];
	_Atomic uint64_t awake[WORDS];
	_Atomic uint64_t used[WORDS]; /* those that revocation looks at */
	struct vb_engine *spare;
} engines = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
};

static struct vb_engine *fresh(uint32_t count)
{
	struct vb_engine *e;

	if (posix_memalign((void **)&e, 64, count * sizeof(*e)))
		return NULL;
	memset(e, 0, count * sizeof(*e));
	for (uint32_t i = 0; i < count; i++)
		vb_lock_place(&e[i].lock, VB_ORDER_ENGINE);
	return e;
}

/* One engine; the others of its block are spare. */
static struct vb_engine *of_block(void)
{
	struct vb_engine *e = fresh(BLOCK);

	if (!e)
		return NULL;
	vb_mutex_take(&engines.lock, VB_ORDER_ENGINES);
	for (uint32_t i = 1; i < BLOCK; i++) {
		e[i].next_spare = engines.spare;
		engines.spare = &e[i];
	}
	vb_mutex_release(&engines.lock);
	return e;
}

struct vb_engine *vb_engines_new(bool leans)
{
	struct vb_engine *e;

	if (leans)
		return fresh(1);
	vb_mutex_take(&engines.lock, VB_ORDER_ENGINES);
	e = engines.spare;
	if (e)
		engines.spare = e->next_spare;
	vb_mutex_release(&engines.lock);
	if (!e)
		return of_block();
	memset(&e->paths, 0, sizeof(*e) - offsetof(struct vb_engine, paths));
	return e;
}

void vb_engines_give_back(struct vb_engine *e)
{
	if (e->lock.bias) {
		vb_bias_forget(&e->lock);
		free(e);
		return;
	}
	vb_mutex_take(&engines.lock, VB_ORDER_ENGINES);
	e->next_spare = engines.spare;
	engines.spare = e;
	vb_mutex_release(&engines.lock);
}

static _Atomic(struct vb_engine *) *place(uint32_t index)
{
	return &engines.table[index];
}

void vb_engines_add(struct vb_engine *e)
{
	vb_mutex_take(&engines.lock, VB_ORDER_ENGINES);
	atomic_store(place(e->index), e);
	if (e->index >= atomic_load(&engines.top))
		atomic_store(&engines.top, e->index + 1);
	atomic_fetch_add(&engines.count, 1);
	vb_mutex_release(&engines.lock);
}

static void bit_clear(_Atomic uint64_t *bits, uint32_t index)
{
	atomic_fetch_and(&bits[index / VB_ENGINES_WORD], ~(1ull << index % VB_ENGINES_WORD));
}

void vb_engines_remove(struct vb_engine *e)
{
	vb_mutex_take(&engines.lock, VB_ORDER_ENGINES);
	atomic_store(place(e->index), NULL);
	atomic_fetch_sub(&engines.count, 1);
	for (int turn = 0; e->held; turn++) {
		vb_mutex_release(&engines.lock);
		vb_lock_relax(turn);
		vb_mutex_take(&engines.lock, VB_ORDER_ENGINES);
	}
	bit_clear(engines.watched, e->index);
	bit_clear(engines.awake, e->index);
	bit_clear(engines.used, e->index);
	vb_mutex_release(&engines.lock);
}

uint32_t vb_engines_count(void)
{
	return atomic_load_explicit(&engines.count, memory_order_relaxed);
}

uint32_t vb_engines_top(void)
{
	return atomic_load_explicit(&engines.top, memory_order_acquire);
}

struct vb_engine *vb_engines_hold(uint32_t index)
{
	struct vb_engine *e = NULL;

	vb_mutex_take(&engines.lock, VB_ORDER_ENGINES);
	if (index < VB_MAX_ENGINES)
		e = atomic_load(place(index));
	if (e)
		e->held++;
	vb_mutex_release(&engines.lock);
	return e;
}

void vb_engines_release(struct vb_engine *e)
{
	vb_mutex_take(&engines.lock, VB_ORDER_ENGINES);
	e->held--;
	vb_mutex_release(&engines.lock);
}

void vb_process_each_engine(void (*fn)(struct vb_engine *engine, void *arg), void *arg)
{
	uint32_t top = vb_engines_top();

	for (uint32_t i = 0; i < top; i++) {
		struct vb_engine *e = vb_engines_hold(i);

		if (!e)
			continue;
		fn(e, arg);
		vb_engines_release(e);
	}
}

void vb_process_with_engine(uint32_t index, void (*fn)(struct vb_engine *engine, void *arg),
			    void *arg)
{
	struct vb_engine *e;

	vb_mutex_take(&engines.lock, VB_ORDER_ENGINES);
	e = index < VB_MAX_ENGINES ? atomic_load(place(index)) : NULL;
	if (e)
		fn(e, arg);
	vb_mutex_release(&engines.lock);
}

/* Under the table's lock. */
static void inbox_add(struct vb_engine *e, struct vb_channel *channel)
{
	channel->next = e->inbox;
	e->inbox = channel;
	atomic_store_explicit(&e->inbox_news, true, memory_order_release);
}

bool vb_engines_adopt(uint32_t index, struct vb_channel *channel)
{
	bool found;

	vb_mutex_take(&engines.lock, VB_ORDER_ENGINES);
	struct vb_engine *e = index < VB_MAX_ENGINES ? atomic_load(place(index)) : NULL;

	found = e != NULL;
	if (found)
		inbox_add(e, channel);
	vb_mutex_release(&engines.lock);
	return found;
}

struct vb_channel *vb_process_take_inbox(struct vb_engine *engine)
{
	struct vb_channel *list;

	vb_mutex_take(&engines.lock, VB_ORDER_ENGINES);
	list = engine->inbox;
	engine->inbox = NULL;
	atomic_store_explicit(&engine->inbox_news, false, memory_order_relaxed);
	vb_mutex_release(&engines.lock);
	return list;
}

/*
 * Whether no thread holds the lock in which this process might have read what the caller has
 * changed before the fence that it made. On x86 the exchange that takes a lock is a fence, so a
 * look suffices: a thread that takes the lock later sees the change. With thousands of engines
 * that is several times cheaper than taking each lock.
 */
static bool lock_is_passed(struct vb_lock *lock)
{
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
	if (!lock->bias)
		return !__atomic_load_n(&lock->held, __ATOMIC_ACQUIRE);
#endif
	if (!vb_lock_try(lock))
		return false;
	vb_lock_release(lock);
	return true;
}

static void bit_set(_Atomic uint64_t *bits, uint32_t index)
{
	uint64_t bit = 1ull << index % VB_ENGINES_WORD;

	if (!(atomic_load(&bits[index / VB_ENGINES_WORD]) & bit))
		atomic_fetch_or(&bits[index / VB_ENGINES_WORD], bit);
}

void vb_engines_use(struct vb_engine *e)
{
	e->used = true;
	atomic_fetch_or(&engines.used[e->index / VB_ENGINES_WORD],
			1ull << e->index % VB_ENGINES_WORD);
	/* Keys are read after this: either they are found invalid, or the bit is found set. */
	atomic_thread_fence(memory_order_seq_cst);
}

/*
 * Under the table's lock: nobody is in the engine. Whoever takes its lock from here on sets the bit
 * again. With few engines that would cost them more than it saves here.
 */
static void leave_out(struct vb_engine *e)
{
	if (vb_engines_count() <= FEW || e->lock.bias || !vb_lock_try(&e->lock))
		return;
	bit_clear(engines.used, e->index);
	e->used = false;
	vb_lock_release(&e->lock);
}

/*
 * Under the table's lock. Passes engines of these bits whose lock is free. Returns the bits from the
 * first other engine on, which is then held; 0: all are passed.
 */
static uint64_t pass_free(uint32_t word, uint64_t bits)
{
	for (; bits; bits &= bits - 1) {
		uint32_t i = word * VB_ENGINES_WORD + (uint32_t)__builtin_ctzll(bits);
		struct vb_engine *e = atomic_load_explicit(place(i), memory_order_relaxed);

		if (!e)
			continue;
		if (!lock_is_passed(&e->lock)) {
			e->held++;
			return bits;
		}
		leave_out(e);
	}
	return 0;
}

/* The same. The table's lock is given up while an engine is waited for. */
static void pass_word(uint32_t word)
{
	uint64_t bits = atomic_load(&engines.used[word]);

	while ((bits = pass_free(word, bits)) != 0) {
		uint32_t i = word * VB_ENGINES_WORD + (uint32_t)__builtin_ctzll(bits);
		struct vb_engine *e = atomic_load(place(i));

		vb_mutex_release(&engines.lock);
		vb_lock_take(&e->lock);
		vb_lock_release(&e->lock);
		vb_mutex_take(&engines.lock, VB_ORDER_ENGINES);
		e->held--;
		bits &= bits - 1;
	}
}

void vb_engines_pass_through(void)
{
	uint32_t words = (vb_engines_top() + VB_ENGINES_WORD - 1) / VB_ENGINES_WORD;

	vb_mutex_take(&engines.lock, VB_ORDER_ENGINES);
	for (uint32_t word = 0; word < words; word++)
		pass_word(word);
	vb_mutex_release(&engines.lock);
}

void vb_engines_watch(const struct vb_engine *e)
{
	/*
	 * What is to be watched was stored before. Either the caller of unwatch sees it, or this
	 * thread sees that the bit is gone.
	 */
	atomic_thread_fence(memory_order_seq_cst);
	bit_set(engines.watched, e->index);
}

uint64_t vb_engines_watched(uint32_t word)
{
	return atomic_load_explicit(&engines.watched[word], memory_order_relaxed);
}

void vb_engines_unwatch(uint32_t index)
{
	bit_clear(engines.watched, index);
	atomic_thread_fence(memory_order_seq_cst);
}

void vb_engines_set_awake(const struct vb_engine *e, bool awake)
{
	if (awake && !e->lock.bias)
		bit_set(engines.awake, e->index);
	else
		bit_clear(engines.awake, e->index);
}

struct vb_engine *vb_engines_awake(uint32_t *index)
{
	uint32_t top = vb_engines_top();
	uint32_t words = (top + VB_ENGINES_WORD - 1) / VB_ENGINES_WORD;
	uint32_t at = *index < top ? *index : 0;
	uint64_t bits;

	if (!words)
		return NULL;
	bits = atomic_load_explicit(&engines.awake[at / VB_ENGINES_WORD], memory_order_relaxed) &
	       ~0ull << at % VB_ENGINES_WORD;
	for (uint32_t n = 0, word = at / VB_ENGINES_WORD; n <= words; n++) {
		if (bits) {
			*index = word * VB_ENGINES_WORD + (uint32_t)__builtin_ctzll(bits);
			return atomic_load_explicit(place(*index), memory_order_acquire);
		}
		word = (word + 1) % words;
		bits = atomic_load_explicit(&engines.awake[word], memory_order_relaxed);
	}
	return NULL;
}

/*
 * exit(3) may be called by a signal handler that interrupted the holder of the lock, so the wait is
 * bounded.
 */
#define EXIT_PATIENCE_NS 10000000l

void vb_engines_each_at_exit(void (*fn)(struct vb_engine *engine))
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += EXIT_PATIENCE_NS;
	until.tv_sec += until.tv_nsec / 1000000000l;
	until.tv_nsec %= 1000000000l;
	if (pthread_mutex_timedlock(&engines.lock, &until))
		return;
	for (uint32_t i = 0; i < vb_engines_top(); i++) {
		struct vb_engine *e = atomic_load(place(i));

		if (e)
			fn(e);
	}
	vb_mutex_release(&engines.lock);
}

static void forked(void)
{
	/*
	 * Locks may be held by threads that do not exist in the child, so all are new. The parent's
	 * engines are left alone.
	 */
	memset(&engines, 0, sizeof(engines));
	pthread_mutex_init(&engines.lock, NULL);
}

VB_FORK_HOOK(.phase = VB_FORK_ROOMS, .child = forked);
