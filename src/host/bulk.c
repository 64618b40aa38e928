/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Transfers by number (process_vm_readv(2)). Long ones are twice as fast as by descriptor from 16 KiB on,
 * because no page is copied twice; and many short ones to different places are one call.
 *
 * The number of a process is not bound to an address space as the descriptor is: another program
 * that it executes has the same number. Hence the number is that of its progress thread. execve(2)
 * ends all threads but the caller before it replaces the memory, and a caller that is not the first
 * thread loses its number to the first one's; this thread never calls it. So the number stands for
 * this memory or for nothing, until the system has handed out all others and gives it to a
 * stranger. A probe tells that it means the same here, and a call is guarded by the word that the
 * thread holds while it lives (liveness.c): between that look and the kernel's search for the
 * number lie some hundred instructions.
 */
#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/log.h"
#include "host/guard.h"
#include "host/private.h"

#define BULK_BYTES 16384u

/* The whole word of the lock and its neighbour, neither of which changes while the thread lives. */
static const uint64_t *alive_word(const struct vb_peer *peer)
{
	return (const uint64_t *)(const void *)&peer->page->header.alive;
}

void vb_bulk_probe(struct vb_peer *peer, uint64_t nonce_address)
{
	uint64_t nonce = 0;
	uint64_t word = __atomic_load_n(alive_word(peer), __ATOMIC_ACQUIRE);
	pid_t thread = (pid_t)((uint32_t)word & VB_ALIVE_TID);
	struct iovec local = {&nonce, sizeof(nonce)};
	struct iovec remote = {(void *)(uintptr_t)nonce_address, sizeof(nonce)};

	if (peer->seen_pid <= 0 || !nonce_address || !vb_guard_possible())
		return;
	ssize_t n = process_vm_readv(thread, &local, 1, &remote, 1, 0);
	bool found = n == sizeof(nonce) && nonce == peer->nonce && vb_peer_alive(peer);

	peer->thread_word = word;
	atomic_store(&peer->thread, found ? thread : 0);
	vb_log(VB_LOG_INFO, "process %u: long transfers by %s", vb_peer_pid(peer),
	       found ? "number" : "descriptor");
}

bool vb_bulk_suits(const struct vb_peer *peer, size_t length)
{
	return length >= BULK_BYTES && atomic_load_explicit(&peer->thread, memory_order_acquire);
}

static size_t by_number(struct vb_peer *peer, const struct iovec *local, int locals,
			const struct iovec *remote, int remotes, bool write,
			const struct vb_guard *guard)
{
	const long argument[6] = {
		atomic_load(&peer->thread),
		(long)(uintptr_t)local,
		locals,
		(long)(uintptr_t)remote,
		remotes,
	};
	struct vb_guard with_life;

	vb_guard_copy(&with_life, guard);
	with_life.third = alive_word(peer);
	with_life.third_is = peer->thread_word;
	ssize_t n = vb_guard_call(&with_life, write ? SYS_process_vm_writev : SYS_process_vm_readv,
				  argument);

	if (n < 0 && n != -EFAULT && n != -ESTALE)
		atomic_store(&peer->thread, 0);
	/* What a stranger's memory held is not handed on. */
	return n < 0 || !vb_peer_alive(peer) ? 0 : (size_t)n;
}

size_t vb_bulk_move(struct vb_peer *peer, uint64_t addr, const struct iovec *iov, int count,
		    size_t length, bool write, const struct vb_guard *guard)
{
	struct iovec remote = {(void *)(uintptr_t)addr, length};

	return by_number(peer, iov, count, &remote, 1, write, guard);
}

bool vb_peer_moves_lists(const struct vb_peer *peer)
{
	return atomic_load_explicit(&peer->thread, memory_order_acquire) != 0;
}

/* The elements of a list of moves. The kernel takes both sides in order. */
struct elements {
	struct iovec local[2 * VB_PEER_MOVES], remote[VB_PEER_MOVES];
	int locals, remotes;
};

/* The local side is split before the tail, which the kernel then stores by a copy of its own. */
static void element_local(struct elements *e, const struct vb_move *m, bool write)
{
	size_t head = write ? vb_memory_before_tail(m->addr, m->length) : 0;

	if (head)
		e->local[e->locals++] = (struct iovec){m->local, head};
	e->local[e->locals++] = (struct iovec){(char *)m->local + head, m->length - head};
}

/* Neighbours become one element: each costs the kernel a search of the peer's memory. */
static void element_remote(struct elements *e, const struct vb_move *m)
{
	struct iovec *last = e->remotes ? &e->remote[e->remotes - 1] : NULL;

	if (last && (uintptr_t)last->iov_base + last->iov_len == m->addr)
		last->iov_len += m->length;
	else
		e->remote[e->remotes++] = (struct iovec){(void *)(uintptr_t)m->addr, m->length};
}

uint32_t vb_peer_move_list(struct vb_peer *peer, const struct vb_move *moves, uint32_t count,
			   bool write, const struct vb_guard *guard)
{
	struct elements e;
	uint32_t whole = 0;
	size_t done;

	if (count > VB_PEER_MOVES || !vb_peer_moves_lists(peer))
		return 0;
	e.locals = e.remotes = 0;
	for (uint32_t i = 0; i < count; i++) {
		element_local(&e, &moves[i], write);
		element_remote(&e, &moves[i]);
	}
	done = by_number(peer, e.local, e.locals, e.remote, e.remotes, write, guard);
	while (whole < count && done >= moves[whole].length)
		done -= moves[whole++].length;
	return whole;
}
