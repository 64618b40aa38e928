/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Long transfers by number (process_vm_readv(2)): twice as fast as by descriptor from 16 KiB on,
 * because no page is copied twice.
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

size_t vb_bulk_move(struct vb_peer *peer, uint64_t addr, const struct iovec *iov, int count,
		    size_t head, size_t length, bool write, const struct vb_guard *guard)
{
	/* The kernel takes the remote elements in order: the tail comes last. */
	struct iovec remote[2] = {
		{(void *)(uintptr_t)addr, head},
		{(void *)(uintptr_t)(addr + head), length - head},
	};
	const long argument[6] = {
		atomic_load(&peer->thread),
		(long)(uintptr_t)iov,
		count,
		(long)(uintptr_t)(const void *)remote,
		length > head ? 2 : 1,
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
