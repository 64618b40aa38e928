/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Who is alive. The truth is the futex word that the progress thread of each process holds from start to death: the
 * kernel's robust list marks it (futex(2), get_robust_list(2)) on exit, kill and exec alike, and no forked child can keep it. Hung-up sockets only
 * say when to look. A child of fork(2) closes its copies (forked.c); where another one keeps them (a raw clone(2)), the end is noticed within
 * 200 ms. A pidfd would be one more descriptor for each peer.
 */
#include <errno.h>
#include <pthread.h>

#include "host/private.h"

#define FUTEX_WORD_OWNER_DIED 0x40000000u

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
	return -err;
}

void vb_node_hold_alive(struct vb_node *node)
{
	if (atomic_load(&node->held))
		return;
	int err = pthread_mutex_lock(&node->page->header.alive);

	/* The thread that held it before has ended without its process. */
	if (err == EOWNERDEAD)
		pthread_mutex_consistent(&node->page->header.alive);
	node->thread = pthread_self();
	atomic_store(&node->held, true);
}

/* The mutex begins with its futex word; what the kernel writes there is ABI, the rest of the mutex is nobody's business. */
bool vb_alive_word_held(const struct vb_page *page)
{
	uint32_t word = __atomic_load_n((const uint32_t *)&page->header.alive, __ATOMIC_ACQUIRE);

	return (word & VB_ALIVE_TID) != 0 && !(word & FUTEX_WORD_OWNER_DIED);
}
