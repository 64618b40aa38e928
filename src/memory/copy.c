/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Copies between memory of the program, which the program may have unmapped, and the library's own
 * memory.
 */
#include "memory/copy.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/copy_source.h"
#include "host/arena.h"
#include "host/peer.h"
#include "process/process.h"

void vb_mem_put(uint64_t addr, const void *src, uint64_t length)
{
	void *dst = (void *)(uintptr_t)addr;

	if (!length)
		return;
	uintptr_t end = (uintptr_t)dst + length;
	uintptr_t tail = (end - 1) & ~(uintptr_t)7;
	uint64_t before = tail > (uintptr_t)dst ? tail - (uintptr_t)dst : 0;
	uint64_t rest = length - before;

	memcpy(dst, src, before);
	/*
	 * Keeps the compiler and, on weakly ordered machines, the processor from storing the tail
	 * before the rest.
	 */
	__atomic_thread_fence(__ATOMIC_RELEASE);
	if (rest == 8) {
		uint64_t word;

		memcpy(&word, (const char *)src + before, sizeof(word));
		__atomic_store_n((uint64_t *)(void *)((char *)dst + before), word,
				 __ATOMIC_RELEASE);
	} else {
		memcpy((char *)dst + before, (const char *)src + before, rest);
	}
}

void vb_mem_get(void *dst, uint64_t addr, uint64_t length)
{
	if (length)
		memcpy(dst, (const void *)(uintptr_t)addr, length);
}

/*
 * Where process_vm_writev(2) on the own process is forbidden (an old container's seccomp filter),
 * plain copies are made instead.
 */
static _Atomic bool kernel_copies_refused;

static bool kernel_copy(struct iovec *local, const struct iovec *remote, unsigned long pieces,
			uint64_t length, bool in)
{
	ssize_t n = in ? process_vm_writev(getpid(), local, 1, remote, pieces, 0)
		       : process_vm_readv(getpid(), local, 1, remote, pieces, 0);

	if (n < 0 && (errno == EPERM || errno == ENOSYS))
		atomic_store_explicit(&kernel_copies_refused, true, memory_order_relaxed);
	return n >= 0 && (uint64_t)n == length;
}

static bool refused(void)
{
	return atomic_load_explicit(&kernel_copies_refused, memory_order_relaxed);
}

/*
 * The owner of device memory or of a buffer: such memory is mapped a second time, where the program
 * cannot unmap it. vb_peer_write() and vb_peer_read() use that mapping. NULL: the range is other
 * memory.
 */
static struct vb_peer *shared_owner(uint64_t addr, uint64_t length)
{
	struct vb_node *node = vb_process_node_started();
	struct vb_peer *self = node ? vb_node_self(node) : NULL;

	return self && vb_arena_holds(self, addr, length) ? self : NULL;
}

static __thread struct vb_copy_source *copy_source;

void vb_mem_copy_from(struct vb_copy_source *source)
{
	copy_source = source;
}

bool vb_mem_copy_in(uint64_t addr, const void *src, uint64_t length)
{
	struct vb_peer *shared = shared_owner(addr, length);

	if (shared) {
		struct iovec iov = {(void *)(uintptr_t)src, length};

		return vb_peer_write(shared, addr, &iov, 1, length, true, NULL) == 0;
	}
	if (copy_source && copy_source->copy(copy_source, src, addr, length))
		return true;
	uint64_t tail = (addr + length - 1) & ~(uint64_t)7;
	uint64_t head = tail > addr ? tail - addr : 0;
	struct iovec local = {.iov_base = (void *)(uintptr_t)src, .iov_len = length};
	struct iovec remote[2] = {
		{.iov_base = (void *)(uintptr_t)addr, .iov_len = head},
		{.iov_base = (void *)(uintptr_t)(addr + head), .iov_len = length - head},
	};

	if (!refused() &&
	    kernel_copy(&local, head ? remote : remote + 1, head ? 2 : 1, length, true))
		return true;
	if (!refused())
		return false;
	vb_mem_put(addr, src, length);
	return true;
}

bool vb_mem_copy_out(void *dst, uint64_t addr, uint64_t length)
{
	struct vb_peer *shared = shared_owner(addr, length);

	if (shared) {
		struct iovec iov = {dst, length};

		return vb_peer_read(shared, addr, &iov, 1, length, NULL) == 0;
	}
	struct iovec local = {.iov_base = dst, .iov_len = length};
	struct iovec remote = {.iov_base = (void *)(uintptr_t)addr, .iov_len = length};

	if (!refused() && kernel_copy(&local, &remote, 1, length, false))
		return true;
	if (!refused())
		return false;
	vb_mem_get(dst, addr, length);
	return true;
}
