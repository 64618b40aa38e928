/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Which processes are alive. The progress thread of each process holds a futex word from start to
 * death, and that word decides: the kernel's robust list marks it (futex(2), get_robust_list(2)) on
 * exit, kill and exec alike, and no forked child can keep it. Sockets that hang up only say when to
 * look. A child of fork(2) closes its copies (forked.c). Where another child keeps them (a raw
 * clone(2)), the end is noticed within 200 ms. A pidfd would be one more descriptor for each peer.
 */
#include <errno.h>
#include <pthread.h>

#include "base/reason.h"
#include "host/private.h"

#define FUTEX_WORD_OWNER_DIED 0x40000000u

static uint32_t first_word(const struct vb_page *page)
{
	return __atomic_load_n((const uint32_t *)&page->header.alive, __ATOMIC_ACQUIRE);
}

/*
 * The place of the futex word in a mutex is the C library's own affair; peers read it at the
 * beginning. In a library that keeps something else there (musl: the type) every process would live
 * for ever, or none would. So the place is tried: the word is zero, names a thread while the mutex
 * is held, and is zero again.
 */
static bool word_comes_first(struct vb_page *page)
{
	bool free_before = !first_word(page);
	uint32_t held = 0;

	if (!pthread_mutex_lock(&page->header.alive)) {
		held = first_word(page);
		pthread_mutex_unlock(&page->header.alive);
	}
	return free_before && (held & VB_ALIVE_TID) && !first_word(page);
}

int vb_alive_init(struct vb_page *page)
{
	pthread_mutexattr_t attr;
	int err = pthread_mutexattr_init(&attr);

	if (err)
		return -err;
	pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	err = pthread_mutex_init(&page->header.alive, &attr);
	pthread_mutexattr_destroy(&attr);
	if (err || word_comes_first(page))
		return -err;
	vb_note(VB_REASON_SYSTEM,
		"this C library's mutex does not begin with its futex word: peers could not tell whether the process lives");
	return -ENOTSUP;
}

void vb_node_hold_alive(struct vb_node *node)
{
	if (atomic_load(&node->held))
		return;
	int err = pthread_mutex_lock(&node->page->header.alive);

	/* The thread that held it before has ended; its process lives. */
	if (err == EOWNERDEAD)
		pthread_mutex_consistent(&node->page->header.alive);
	node->thread = pthread_self();
	atomic_store(&node->held, true);
}

/* The content of the futex word is ABI of the kernel. The rest of the mutex is not read. */
bool vb_alive_word_held(const struct vb_page *page)
{
	uint32_t word = first_word(page);

	return (word & VB_ALIVE_TID) != 0 && !(word & FUTEX_WORD_OWNER_DIED);
}
