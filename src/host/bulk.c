/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Long transfers by process number (process_vm_readv(2)): twice as fast as by descriptor from 16 KiB on, because no page is copied twice.
 *
 * A number is not bound to an address space as the descriptor is. Hence it is used only after a probe found the peer's nonce where the
 * peer says it lies, and while the peer's futex word says that the process lives. A process that executes another program loses
 * that word first (its threads are ended, then its memory is replaced, many microseconds later): a look right before the call makes a
 * write safe unless this thread loses its core between the two, a look after it tells whether what was read was the peer's.
 */
#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "host/private.h"

#define BULK_BYTES 16384u

void vb_bulk_probe(struct vb_peer *peer, uint64_t nonce_address)
{
	uint64_t nonce = 0;
	struct iovec local = {&nonce, sizeof(nonce)};
	struct iovec remote = {(void *)(uintptr_t)nonce_address, sizeof(nonce)};

	if (peer->seen_pid <= 0 || !nonce_address)
		return;
	ssize_t n = process_vm_readv(peer->seen_pid, &local, 1, &remote, 1, 0);
	bool found = n == sizeof(nonce) && nonce == peer->nonce && vb_peer_alive(peer);

	atomic_store(&peer->by_pid, found);
	vb_log(VB_LOG_INFO, "process %u: long transfers by %s", vb_peer_pid(peer),
	       found ? "process number" : "descriptor");
}

bool vb_bulk_suits(const struct vb_peer *peer, size_t length)
{
	return length >= BULK_BYTES && atomic_load_explicit(&peer->by_pid, memory_order_relaxed);
}

size_t vb_bulk_write(struct vb_peer *peer, uint64_t addr, const struct iovec *iov, int count,
		     size_t head, size_t length)
{
	/* The kernel takes the remote elements in order: the tail comes last. */
	struct iovec remote[2] = {
		{(void *)(uintptr_t)addr, head},
		{(void *)(uintptr_t)(addr + head), length - head},
	};

	if (!vb_peer_alive(peer))
		return 0;
	ssize_t n = process_vm_writev(peer->seen_pid, iov, (unsigned long)count, remote,
				      length > head ? 2 : 1, 0);

	if (n < 0 && errno != EFAULT)
		atomic_store(&peer->by_pid, false);
	return n < 0 ? 0 : (size_t)n;
}

size_t vb_bulk_read(struct vb_peer *peer, uint64_t addr, const struct iovec *iov, int count,
		    size_t length)
{
	struct iovec remote = {(void *)(uintptr_t)addr, length};
	ssize_t n = process_vm_readv(peer->seen_pid, iov, (unsigned long)count, &remote, 1, 0);

	if (n < 0 && errno != EFAULT)
		atomic_store(&peer->by_pid, false);
	return n < 0 || !vb_peer_alive(peer) ? 0 : (size_t)n;
}
