/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Another process's memory, through the descriptor of /proc/self/mem that the peer opened and
 * passed (proc(5)). The kernel checks no page protection on this way, so keys are the only guard. A
 * transfer is one call, whose elements the kernel handles in order: the tail, as an element of its
 * own on this side, is stored after all other bytes.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/reason.h"
#include "base/sys.h"
#include "host/arena.h"
#include "host/descriptor.h"
#include "host/guard.h"
#include "host/private.h"

int vb_memory_open_own(const uint64_t *nonce, char *obstacle, size_t size)
{
	uint64_t probe = 0;
	int fd = vb_descriptor_adopt(vb_sys_open("/proc/self/mem", O_RDWR | O_CLOEXEC));

	if (fd < 0) {
		int err = -errno;

		snprintf(obstacle, size, "not dumpable, or a policy forbids: /proc/self/mem: %s",
			 strerror(-err));
		return vb_system_is_short(err) ? err : -1;
	}
	if (vb_sys_pread(fd, &probe, sizeof(probe), (off_t)(uintptr_t)nonce) != sizeof(probe) ||
	    probe != *nonce) {
		snprintf(obstacle, size, "reading /proc/self/mem: %s", strerror(errno));
		vb_descriptor_close(fd);
		return -1;
	}
	obstacle[0] = '\0';
	return fd;
}

bool vb_memory_usable(int fd)
{
	int flags = fcntl(fd, F_GETFL);
	struct statfs fs;
	struct stat st;

	return flags >= 0 && (flags & O_ACCMODE) == O_RDWR && fstatfs(fd, &fs) == 0 &&
	       fs.f_type == PROC_SUPER_MAGIC && fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
}

const char *vb_node_direct_obstacle(struct vb_node *node)
{
	return node->obstacle[0] ? node->obstacle : NULL;
}

bool vb_peer_reachable(const struct vb_peer *peer)
{
	return peer->self || (atomic_load_explicit(&peer->given, memory_order_acquire) &&
			      atomic_load_explicit(&peer->mem_fd, memory_order_relaxed) >= 0 &&
			      !atomic_load_explicit(&peer->unreachable, memory_order_relaxed) &&
			      !atomic_load_explicit(&peer->node->gone, memory_order_relaxed));
}

/* Without a guard: memory that this process may change at any time. */
static int copy(void *to, const void *from, size_t bytes, const struct vb_guard *guard)
{
	if (guard)
		return vb_guard_move(guard, to, from, bytes);
	memcpy(to, from, bytes);
	return 0;
}

/* Copies the next `bytes` bytes of the list to or from `flat`, advancing the list. */
static int list_copy(struct iovec **iov, int *count, char *flat, size_t bytes, bool to_flat,
		     const struct vb_guard *guard)
{
	while (bytes && *count) {
		size_t n = (*iov)->iov_len < bytes ? (*iov)->iov_len : bytes;
		int err = to_flat ? copy(flat, (*iov)->iov_base, n, guard)
				  : copy((*iov)->iov_base, flat, n, guard);

		if (err)
			return err;
		(*iov)->iov_base = (char *)(*iov)->iov_base + n;
		(*iov)->iov_len -= n;
		flat += n;
		bytes -= n;
		if (!(*iov)->iov_len) {
			(*iov)++;
			(*count)--;
		}
	}
	return 0;
}

size_t vb_memory_before_tail(uint64_t addr, size_t length)
{
	uint64_t word = (addr + length - 1) & ~7ull;

	return word > addr ? (size_t)(word - addr) : 0;
}

static int store(uint64_t *word, uint64_t value, const struct vb_guard *guard)
{
	if (guard)
		return vb_guard_store(guard, word, value);
	__atomic_store_n(word, value, __ATOMIC_RELEASE);
	return 0;
}

/* Writes to memory that is mapped here. */
static int mapped_write(uint64_t addr, struct iovec *iov, int count, size_t length, bool tail,
			const struct vb_guard *guard)
{
	size_t head = tail ? vb_memory_before_tail(addr, length) : length;
	char *dst = (char *)(uintptr_t)addr;
	uint64_t word;
	int err = list_copy(&iov, &count, dst, head, true, guard);

	if (err || head == length)
		return err;
	if (length - head == sizeof(word) && (addr + head) % sizeof(word) == 0) {
		(void)list_copy(&iov, &count, (char *)&word, sizeof(word), true, NULL);
		return store((uint64_t *)(void *)(dst + head), word, guard);
	}
	__atomic_thread_fence(__ATOMIC_RELEASE);
	return list_copy(&iov, &count, dst + head, length - head, true, guard);
}

/*
 * Splits the list after `head` bytes, and makes what follows one element, copied to *word if it is
 * in pieces. `iov` has room for one more element.
 */
static int list_seam(struct iovec *iov, int count, size_t head, uint64_t *word)
{
	size_t left = head, bytes = 0;
	int i = 0;

	while (i < count && iov[i].iov_len <= left)
		left -= iov[i++].iov_len;
	if (i == count)
		return count;
	if (left) {
		memmove(&iov[i + 1], &iov[i], sizeof(*iov) * (size_t)(count - i));
		iov[i + 1].iov_base = (char *)iov[i].iov_base + left;
		iov[i + 1].iov_len -= left;
		iov[i++].iov_len = left;
		count++;
	}
	if (count - i == 1)
		return count;
	for (int k = i; k < count; k++) {
		memcpy((char *)word + bytes, iov[k].iov_base, iov[k].iov_len);
		bytes += iov[k].iov_len;
	}
	iov[i] = (struct iovec){word, bytes};
	return i + 1;
}

/* The meaning of a failed or empty transfer. 0 bytes: the address space is gone (exit or exec). */
static int transfer_error(struct vb_peer *peer, int err)
{
	if (!err)
		return -ESRCH;
	if (err == -EBADF) {
		vb_node_descriptors_gone(peer->node);
		return -EOPNOTSUPP;
	}
	if (err == -EPERM || err == -ENOSYS) {
		vb_note(VB_REASON_NO_DIRECT_ACCESS,
			"process %u: this process may not use its descriptor: %s",
			vb_peer_pid(peer), strerror(-err));
		atomic_store(&peer->unreachable, true);
		return -EOPNOTSUPP;
	}
	if (err == -ESTALE || err == -EOPNOTSUPP)
		return err;
	return vb_peer_alive(peer) ? -EFAULT : -ESRCH;
}

/* Drops what was transferred from the front of the list. */
static void list_advance(struct iovec **iov, int *count, size_t bytes)
{
	while (*count && bytes >= (*iov)->iov_len) {
		bytes -= (*iov)->iov_len;
		(*iov)++;
		(*count)--;
	}
	if (*count) {
		(*iov)->iov_base = (char *)(*iov)->iov_base + bytes;
		(*iov)->iov_len -= bytes;
	}
}

/* A single element needs no list: the plain call saves the kernel copying it. */
static ssize_t transfer_once(int fd, struct iovec *iov, int count, uint64_t addr, bool write,
			     const struct vb_guard *guard)
{
	const long list[6] = {fd, (long)(uintptr_t)iov, count, (long)addr};
	const long one[6] = {fd, (long)(uintptr_t)iov->iov_base, (long)iov->iov_len, (long)addr};

	if (count == 1)
		return vb_guard_call(guard, write ? SYS_pwrite64 : SYS_pread64, one);
	return vb_guard_call(guard, write ? SYS_pwritev : SYS_preadv, list);
}

/* Either the program closes descriptors, or the peer has changed the mark of its file. */
static void descriptor_lost(struct vb_peer *peer)
{
	vb_note(VB_REASON_DESCRIPTORS_GONE,
		"process %u: the program closed the descriptor of its memory", vb_peer_pid(peer));
	atomic_store(&peer->unreachable, true);
	if (!vb_descriptor_ours(peer->node->epoll))
		vb_node_descriptors_gone(peer->node);
}

static int transfer(struct vb_peer *peer, uint64_t addr, struct iovec *iov, int count,
		    size_t length, bool write, const struct vb_guard *guard)
{
	int fd = atomic_load_explicit(&peer->mem_fd, memory_order_relaxed);

	/*
	 * A descriptor that is the program's by now must not be written to. Nothing cheaper than a
	 * system call tells.
	 */
	if (!vb_descriptor_still(fd)) {
		descriptor_lost(peer);
		return -EOPNOTSUPP;
	}
	while (length) {
		ssize_t n = transfer_once(fd, iov, count, addr, write, guard);

		if (n <= 0 && n != -EINTR)
			return transfer_error(peer, (int)n);
		if (n < 0)
			continue;
		if ((size_t)n >= length)
			break;
		/*
		 * The kernel moves at most 2 GiB in a call. After a fault the next call returns the
		 * error.
		 */
		length -= (size_t)n;
		addr += (uint64_t)n;
		list_advance(&iov, &count, (size_t)n);
	}
	return 0;
}

int vb_memory_transfer_word(struct vb_peer *peer, uint64_t addr, uint64_t *value, bool write,
			    const struct vb_guard *guard)
{
	struct iovec iov = {value, sizeof(*value)};

	return transfer(peer, addr, &iov, 1, sizeof(*value), write, guard);
}

static int transfer_piece(struct vb_peer *peer, uint64_t addr, void *at, size_t length, bool write,
			  const struct vb_guard *guard)
{
	struct iovec iov = {at, length};

	return vb_peer_reachable(peer) ? transfer(peer, addr, &iov, 1, length, write, guard)
				       : -EOPNOTSUPP;
}

int vb_peer_write_word(struct vb_peer *peer, uint64_t addr, const void *word,
		       const struct vb_guard *guard)
{
	return transfer_piece(peer, addr, (void *)(uintptr_t)word, sizeof(uint64_t), true, guard);
}

int vb_peer_read_piece(struct vb_peer *peer, uint64_t addr, void *to, size_t length,
		       const struct vb_guard *guard)
{
	return transfer_piece(peer, addr, to, length, false, guard);
}

/* 0 if the arguments and the peer are valid. */
int vb_memory_transfer_check(const struct vb_peer *peer, uint64_t addr, int count, size_t length)
{
	if (count < 0 || count > VB_PEER_IOV)
		return -EINVAL;
	if (addr + length < addr || addr + length > INT64_MAX)
		return -EFAULT;
	return peer->self || vb_peer_alive(peer) ? 0 : -ESRCH;
}

/*
 * Whether the range is shared memory that is completely mapped here by now. What follows then
 * cannot fail.
 */
static bool window_ready(struct vb_peer *peer, uint64_t addr, uint64_t length)
{
	size_t room = 0;

	while (vb_arena_window(peer, addr, length, &room)) {
		if (room >= length)
			return true;
		addr += room;
		length -= room;
	}
	return false;
}

/* Copies piece by piece. Elements of the list that are used up have length 0 afterwards. */
static int window_copy(struct vb_peer *peer, uint64_t addr, struct iovec *iov, int count,
		       size_t length, bool write, const struct vb_guard *guard)
{
	size_t room;
	char *at;
	int err = 0;

	while (!err && length && (at = vb_arena_window(peer, addr, length, &room))) {
		size_t n = room < length ? room : length;

		err = list_copy(&iov, &count, at, n, write, guard);
		length -= n;
		addr += n;
	}
	return err;
}

/*
 * The tail is stored after all other bytes. A window ends at an aligned word, so the tail lies in
 * one window.
 */
static int window_write(struct vb_peer *peer, uint64_t addr, struct iovec *iov, int count,
			size_t length, bool tail, const struct vb_guard *guard)
{
	size_t head = tail ? vb_memory_before_tail(addr, length) : length;
	size_t room;

	/* What was written before is seen before. */
	__atomic_thread_fence(__ATOMIC_RELEASE);
	int err = window_copy(peer, addr, iov, count, head, true, guard);

	if (err || head == length)
		return err;
	char *at = vb_arena_window(peer, addr + head, length - head, &room);

	return at ? mapped_write((uintptr_t)at, iov, count, length - head, true, guard) : 0;
}

/* Memory of another process is touched under a guard; a guard without words is `none`. */
static const struct vb_guard *guard_of(const struct vb_peer *peer, const struct vb_guard *guard,
				       struct vb_guard *none)
{
	if (peer->self)
		return NULL;
	if (guard)
		return guard;
	vb_guard_init(none);
	return none;
}

int vb_peer_write(struct vb_peer *peer, uint64_t addr, struct iovec *iov, int count, size_t length,
		  bool tail, const struct vb_guard *guard)
{
	struct iovec more[VB_PEER_IOV + 1];
	struct vb_guard none;
	uint64_t word;
	int err = vb_memory_transfer_check(peer, addr, count, length);

	if (err || !length)
		return err;
	guard = guard_of(peer, guard, &none);
	if (window_ready(peer, addr, length))
		return window_write(peer, addr, iov, count, length, tail, guard);
	if (peer->self)
		return mapped_write(addr, iov, count, length, tail, NULL);
	if (!vb_peer_reachable(peer))
		return -EOPNOTSUPP;
	size_t head = tail ? vb_memory_before_tail(addr, length) : length;

	memcpy(more, iov, sizeof(*iov) * (size_t)count);
	if (head < length)
		count = list_seam(more, count, head, &word);
	iov = more;
	if (vb_bulk_suits(peer, length)) {
		/* The kernel stores what lies behind the seam of the list by a copy of its own. */
		size_t done = vb_bulk_move(peer, addr, iov, count, length, true, guard);

		if (done == length)
			return 0;
		list_advance(&iov, &count, done);
		addr += done;
		length -= done;
	}
	return transfer(peer, addr, iov, count, length, true, guard);
}

int vb_peer_read(struct vb_peer *peer, uint64_t addr, struct iovec *iov, int count, size_t length,
		 const struct vb_guard *guard)
{
	struct vb_guard none;
	int err = vb_memory_transfer_check(peer, addr, count, length);

	if (err || !length)
		return err;
	guard = guard_of(peer, guard, &none);
	if (window_ready(peer, addr, length)) {
		err = window_copy(peer, addr, iov, count, length, false, guard);
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		return err;
	}
	if (peer->self)
		return list_copy(&iov, &count, (char *)(uintptr_t)addr, length, false, NULL);
	if (!vb_peer_reachable(peer))
		return -EOPNOTSUPP;
	if (vb_bulk_suits(peer, length)) {
		size_t done = vb_bulk_move(peer, addr, iov, count, length, false, guard);

		if (done == length)
			return 0;
		list_advance(&iov, &count, done);
		addr += done;
		length -= done;
	}
	return transfer(peer, addr, iov, count, length, false, guard);
}
