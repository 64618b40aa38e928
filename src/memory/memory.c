/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Registered memory: checks and copies. Runs under an engine's lock, which is what vb_process_quiesce() waits for. */
#include "memory/memory.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "memory/foreign.h"
#include "process/process.h"
#include "host/arena.h"
#include "host/peer.h"

/* The sentence that names the element, the region and what is wrong between them. */
static void explain(const struct vb_mem *mem, const char *what, int element, uint32_t key,
		    uint64_t va, uint64_t length, enum vb_reason reason)
{
	const struct vb_key *k = &mem->keys->key[vb_key_slot(key)];
	char name[24] = "";

	if (element >= 0)
		snprintf(name, sizeof(name), " sge[%d]", element);
	if (__atomic_load_n(&k->key, __ATOMIC_ACQUIRE) != key)
		vb_note(reason, "%s: qp 0x%x%s 0x%llx+%llu: key 0x%x: %s", what, mem->qpn, name,
			(unsigned long long)va, (unsigned long long)length, key,
			vb_reason_text(reason));
	else
		vb_note(reason,
			"%s: qp 0x%x%s 0x%llx+%llu: mr key 0x%x is 0x%llx+%llu, access 0x%x, pd %u (queue's %u): %s",
			what, mem->qpn, name, (unsigned long long)va, (unsigned long long)length,
			key, (unsigned long long)k->start, (unsigned long long)k->length, k->access,
			k->pd, mem->pd, vb_reason_text(reason));
}

enum vb_reason vb_mem_check(const struct vb_mem *mem, uint32_t key, uint64_t va, uint64_t length,
			    uint32_t need, enum vb_access_side side, uint64_t *addr)
{
	const struct vb_key *entry = &mem->keys->key[vb_key_slot(key)];

	if (vb_foreign_any() && vb_foreign_is(mem, key))
		return vb_foreign_check(mem, key, va, length, need, side, addr);
	return vb_access_check(entry, key, mem->pd, mem->qpn, va, length, need, side, addr);
}

enum vb_reason vb_mem_check_explained(const struct vb_mem *mem, const char *what, uint32_t key,
				      uint64_t va, uint64_t length, uint32_t need, uint64_t *addr)
{
	enum vb_reason reason = vb_mem_check(mem, key, va, length, need, VB_ACCESS_REMOTE, addr);

	if (reason != VB_REASON_NONE)
		explain(mem, what, -1, key, va, length, reason);
	return reason;
}

static bool is_paged(const struct vb_key *k)
{
	return k->access & IBV_ACCESS_ON_DEMAND;
}

static void note_odd(const struct vb_mem *mem, uint32_t key, int n, struct vb_mem_odd *odd)
{
	const struct vb_key *k = &mem->keys->key[vb_key_slot(key)];

	if (k->kind == VB_KEY_NULL)
		odd->null |= 1ull << n;
	else if (is_paged(k))
		odd->paged |= 1ull << n;
}

bool vb_mem_is_plain(const struct vb_mem *mem, const struct ibv_sge *sge, uint32_t num_sge)
{
	for (uint32_t i = 0; i < num_sge; i++) {
		const struct vb_key *k = &mem->keys->key[vb_key_slot(sge[i].lkey)];

		if (k->key == sge[i].lkey && (k->kind == VB_KEY_NULL || is_paged(k)))
			return false;
	}
	return true;
}

enum vb_reason vb_mem_vectors(const struct vb_mem *mem, const struct ibv_sge *sge, uint32_t num_sge,
			      uint64_t offset, uint64_t length, uint32_t need, struct iovec *iov,
			      int max, int *count, uint64_t *got, struct vb_mem_odd *odd)
{
	uint64_t covered = 0;
	int n = 0;

	*odd = (struct vb_mem_odd){0, 0};

	for (uint32_t i = 0; i < num_sge && covered < length && n < max; i++) {
		uint64_t addr;

		if (offset >= sge[i].length) {
			offset -= sge[i].length;
			continue;
		}
		uint64_t part = sge[i].length - offset;

		if (part > length - covered)
			part = length - covered;
		enum vb_reason reason = vb_mem_check(mem, sge[i].lkey, sge[i].addr + offset, part,
						     need, VB_ACCESS_LOCAL, &addr);

		if (reason != VB_REASON_NONE) {
			explain(mem, "local access", (int)i, sge[i].lkey, sge[i].addr + offset,
				part, reason);
			return reason;
		}
		note_odd(mem, sge[i].lkey, n, odd);
		iov[n].iov_base = (void *)(uintptr_t)addr;
		iov[n].iov_len = part;
		n++;
		covered += part;
		offset = 0;
	}
	*count = n;
	*got = covered;
	return VB_REASON_NONE;
}

enum vb_reason vb_mem_check_list(const struct vb_mem *mem, const struct ibv_sge *sge,
				 uint32_t num_sge, uint32_t need)
{
	for (uint32_t i = 0; i < num_sge; i++) {
		uint64_t addr;

		if (!sge[i].length)
			continue;
		enum vb_reason reason = vb_mem_check(mem, sge[i].lkey, sge[i].addr, sge[i].length,
						     need, VB_ACCESS_LOCAL, &addr);

		if (reason != VB_REASON_NONE) {
			explain(mem, "local access", (int)i, sge[i].lkey, sge[i].addr,
				sge[i].length, reason);
			return reason;
		}
	}
	return VB_REASON_NONE;
}

#define VECTORS 8

static enum vb_reason gone(const struct vb_mem *mem, const struct iovec *iov)
{
	vb_note(VB_REASON_MEMORY_GONE,
		"qp 0x%x: %p+%zu is registered on demand, but the program has unmapped it",
		mem->qpn, iov->iov_base, iov->iov_len);
	return VB_REASON_MEMORY_GONE;
}

/* One vector that is not plain memory. */
static enum vb_reason odd_out(const struct vb_mem *mem, void *to, const struct iovec *iov,
			      bool null)
{
	if (null)
		memset(to, 0, iov->iov_len);
	else if (!vb_mem_copy_out(to, (uintptr_t)iov->iov_base, iov->iov_len))
		return gone(mem, iov);
	return VB_REASON_NONE;
}

static enum vb_reason odd_in(const struct vb_mem *mem, const struct iovec *iov, const void *from,
			     bool null)
{
	if (!null && !vb_mem_copy_in((uintptr_t)iov->iov_base, from, iov->iov_len))
		return gone(mem, iov);
	return VB_REASON_NONE;
}

bool vb_mem_is_ours(const struct vb_mem *mem, const struct ibv_sge *sge, uint32_t num_sge)
{
	for (uint32_t i = 0; vb_foreign_any() && i < num_sge; i++) {
		if (vb_foreign_is(mem, sge[i].lkey))
			return false;
	}
	return true;
}

/* The part of an element that is not imported. */
static enum vb_reason own_part(const struct vb_mem *mem, uint32_t key, uint64_t addr, char *flat,
			       uint64_t length, bool gather)
{
	struct iovec iov = {(void *)(uintptr_t)addr, length};
	struct vb_mem_odd odd = {0, 0};

	note_odd(mem, key, 0, &odd);
	if (odd.paged | odd.null)
		return gather ? odd_out(mem, flat, &iov, odd.null)
			      : odd_in(mem, &iov, flat, odd.null);
	if (gather)
		memcpy(flat, iov.iov_base, length);
	else
		memcpy(iov.iov_base, flat, length);
	return VB_REASON_NONE;
}

/* One element of a list that has imported ones, or the part of it. */
static enum vb_reason mixed_part(const struct vb_mem *mem, int element, uint32_t key, uint64_t va,
				 char *flat, uint64_t length, bool gather)
{
	uint32_t need = gather ? 0 : IBV_ACCESS_LOCAL_WRITE;
	uint64_t addr;

	if (vb_foreign_is(mem, key))
		return gather ? vb_foreign_read(mem, key, va, flat, length, need, VB_ACCESS_LOCAL)
			      : vb_foreign_write(mem, key, va, flat, length, need, VB_ACCESS_LOCAL);
	enum vb_reason reason = vb_mem_check(mem, key, va, length, need, VB_ACCESS_LOCAL, &addr);

	if (reason != VB_REASON_NONE)
		explain(mem, "local access", element, key, va, length, reason);
	else
		reason = own_part(mem, key, addr, flat, length, gather);
	return reason;
}

static enum vb_reason mixed(const struct vb_mem *mem, const struct ibv_sge *sge, uint32_t num_sge,
			    uint64_t offset, char *flat, uint64_t length, bool gather)
{
	for (uint32_t i = 0; i < num_sge && length; i++) {
		if (offset >= sge[i].length) {
			offset -= sge[i].length;
			continue;
		}
		uint64_t part = sge[i].length - offset;

		if (part > length)
			part = length;
		enum vb_reason reason = mixed_part(mem, (int)i, sge[i].lkey, sge[i].addr + offset,
						   flat, part, gather);

		if (reason != VB_REASON_NONE)
			return reason;
		flat += part;
		length -= part;
		offset = 0;
	}
	if (!length)
		return VB_REASON_NONE;
	return gather ? VB_REASON_LKEY_RANGE : VB_REASON_RECV_TOO_SMALL;
}

enum vb_reason vb_mem_gather(const struct vb_mem *mem, const struct ibv_sge *sge, uint32_t num_sge,
			     uint64_t offset, void *dst, uint64_t length)
{
	struct iovec iov[VECTORS];
	struct vb_mem_odd odd;
	char *to = dst;

	if (!vb_mem_is_ours(mem, sge, num_sge))
		return mixed(mem, sge, num_sge, offset, dst, length, true);
	while (length) {
		uint64_t got;
		int n;
		enum vb_reason reason = vb_mem_vectors(mem, sge, num_sge, offset, length, 0, iov,
						       VECTORS, &n, &got, &odd);

		if (reason != VB_REASON_NONE)
			return reason;
		if (!n)
			return VB_REASON_LKEY_RANGE;
		for (int i = 0; i < n; i++) {
			if (((odd.paged | odd.null) >> i) & 1)
				reason = odd_out(mem, to, &iov[i], (odd.null >> i) & 1);
			else
				memcpy(to, iov[i].iov_base, iov[i].iov_len);
			if (reason)
				return reason;
			to += iov[i].iov_len;
		}
		offset += got;
		length -= got;
	}
	return VB_REASON_NONE;
}

enum vb_reason vb_mem_scatter(const struct vb_mem *mem, const struct ibv_sge *sge, uint32_t num_sge,
			      uint64_t offset, const void *src, uint64_t length)
{
	struct iovec iov[VECTORS];
	struct vb_mem_odd odd;
	const char *from = src;

	if (!vb_mem_is_ours(mem, sge, num_sge))
		return mixed(mem, sge, num_sge, offset, (char *)(uintptr_t)src, length, false);
	while (length) {
		uint64_t got;
		int n;
		enum vb_reason reason = vb_mem_vectors(mem, sge, num_sge, offset, length,
						       IBV_ACCESS_LOCAL_WRITE, iov, VECTORS, &n,
						       &got, &odd);

		if (reason != VB_REASON_NONE)
			return reason;
		if (!n)
			return VB_REASON_RECV_TOO_SMALL;
		for (int i = 0; i < n; i++) {
			if (((odd.paged | odd.null) >> i) & 1)
				reason = odd_in(mem, &iov[i], from, (odd.null >> i) & 1);
			else
				memcpy(iov[i].iov_base, from, iov[i].iov_len);
			if (reason)
				return reason;
			from += iov[i].iov_len;
		}
		offset += got;
		length -= got;
	}
	return VB_REASON_NONE;
}

void vb_mem_copy_tail_last(void *dst, const void *src, uint64_t length)
{
	if (!length)
		return;
	uintptr_t end = (uintptr_t)dst + length;
	uintptr_t tail = (end - 1) & ~(uintptr_t)7;
	uint64_t before = tail > (uintptr_t)dst ? tail - (uintptr_t)dst : 0;
	uint64_t rest = length - before;

	memcpy(dst, src, before);
	/* The compiler and, on weakly ordered machines, the processor keep the tail behind what precedes it. */
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

/* Where process_vm_writev(2) on oneself is forbidden (an old container's seccomp), plain copies must do. */
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
 * Device memory and its like: mapped a second time, where the program cannot unmap it. vb_peer_write() and vb_peer_read() go that
 * way by themselves. NULL: the range is other memory.
 */
static struct vb_peer *shared_owner(uint64_t addr, uint64_t length)
{
	struct vb_node *node = vb_process_node_started();
	struct vb_peer *self = node ? vb_node_self(node) : NULL;

	return self && vb_arena_holds(self, addr, length) ? self : NULL;
}

bool vb_mem_copy_in(uint64_t addr, const void *src, uint64_t length)
{
	struct vb_peer *shared = shared_owner(addr, length);

	if (shared) {
		struct iovec iov = {(void *)(uintptr_t)src, length};

		return vb_peer_write(shared, addr, &iov, 1, length, true, NULL) == 0;
	}
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
	vb_mem_copy_tail_last((void *)(uintptr_t)addr, src, length);
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
	memcpy(dst, (const void *)(uintptr_t)addr, length);
	return true;
}
