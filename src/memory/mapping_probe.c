/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Probes of single pages. Each is made by the kernel on this process's behalf, with the rights of
 * the mapping, and fails with EFAULT where the process would get a signal: - a byte is read by
 * process_vm_readv(2) of oneself; - a word is changed into itself, in one step, by FUTEX_WAKE_OP
 * (futex(2)) with "or 0"; - what is there then is anonymous memory, or it is not (pagemap of
 * proc(5), "page is file-page or shared-anon").
 */
#include "memory/mapping_probe.h"

#include <limits.h>
#include <linux/futex.h>
#include <stddef.h>
#include <sys/uio.h>

#include "base/sys.h"

#define BATCH           64u
#define PAGEMAP_PRESENT (1ull << 63)
#define PAGEMAP_SWAPPED (1ull << 62)
#define PAGEMAP_FILE    (1ull << 61)
/*
 * FUTEX_WAKE_OP wakes waiters if the word had this value. A thread that waits on a futex must
 * expect to be woken without cause (futex(2)).
 */
#define UNLIKELY_WORD   0x5a5

static bool readable(uintptr_t start, size_t count, size_t page)
{
	struct iovec theirs[BATCH];
	char byte[BATCH];
	struct iovec ours = {.iov_base = byte, .iov_len = count};

	for (size_t i = 0; i < count; i++)
		theirs[i] = (struct iovec){.iov_base = (void *)(start + i * page), .iov_len = 1};
	return syscall(SYS_process_vm_readv, getpid(), &ours, 1, theirs, count, 0) ==
	       (ssize_t)count;
}

static bool writable_too(uintptr_t start, size_t count, size_t page)
{
	int op = FUTEX_OP(FUTEX_OP_OR, 0, FUTEX_OP_CMP_EQ, UNLIKELY_WORD);
	uint32_t nobodys = 0;

	for (size_t i = 0; i < count; i++) {
		if (syscall(SYS_futex, &nobodys, FUTEX_WAKE_OP | FUTEX_PRIVATE_FLAG, 0, NULL,
			    start + i * page, op) < 0)
			return false;
	}
	return true;
}

static bool maybe_shared(const uint64_t *entry, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (entry[i] & PAGEMAP_FILE || !(entry[i] & (PAGEMAP_PRESENT | PAGEMAP_SWAPPED)))
			return true;
	}
	return false;
}

static bool probe(int pagemap, uintptr_t start, uintptr_t end, bool writable, bool *shared)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint64_t entry[BATCH];

	while (start < end) {
		size_t count = (end - start + page - 1) / page;

		count = count < BATCH ? count : BATCH;
		if (!readable(start, count, page) ||
		    (writable && !writable_too(start, count, page)))
			return false;
		if (vb_sys_pread(pagemap, entry, count * sizeof(*entry),
				 (off_t)(start / page * sizeof(*entry))) !=
		    (ssize_t)(count * sizeof(*entry)))
			return false;
		*shared |= maybe_shared(entry, count);
		start += count * page;
	}
	return true;
}

bool vb_mapping_probe(uintptr_t addr, size_t length, bool writable, bool *shared)
{
	uintptr_t start = addr & ~((uintptr_t)sysconf(_SC_PAGESIZE) - 1);
	int pagemap;
	bool good;

	*shared = false;
	/* The last page of the address space is the kernel's on every processor. */
	if (length > VB_MAPPING_PROBE_BYTES || addr + length < addr)
		return false;
	pagemap = vb_sys_open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	if (pagemap < 0)
		return false;
	good = probe(pagemap, start, addr + length, writable, shared);
	vb_sys_close(pagemap);
	return good;
}
