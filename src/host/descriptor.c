/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Descriptors at high numbers, and the table of those that belong to the library. */
#include "host/descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/sys.h"

/*
 * Numbers above are kept out of the table: they are used and closed unchecked, and a forked child
 * keeps its copy.
 */
#define TRACKED 65536

static _Atomic uint64_t ours[TRACKED / 64];
/* The file of a descriptor without a mark. Written before the bit in `ours` is set. */
static _Atomic uint64_t identity[TRACKED];
static _Atomic uint8_t mark[TRACKED]; /* 0: the file cannot be marked */

/*
 * The mark of an open file is the signal of fcntl(2), F_SETSIG: a number that every open file has,
 * of whatever kind, and that means nothing without O_ASYNC. Programs leave it at 0, or set SIGIO or
 * a real-time signal; the library uses none of these. Nothing else tells eventfds and epoll
 * descriptors apart, which share one inode with all others of the system.
 */
#define MARKS 28u

/*
 * Programs that close or reuse numbers begin at the low end; select(2) bounds the numbers that they
 * need.
 */
static int high_number(bool anew)
{
	static _Atomic int known;
	struct rlimit limit;
	rlim_t n = 1024;

	if (!anew && atomic_load(&known))
		return atomic_load(&known);
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < n)
		n = limit.rlim_cur;
	atomic_store(&known, (int)(n * 3 / 4));
	return (int)(n * 3 / 4);
}

/* The inode, with the device mixed into its upper bits; 0: the number is closed. */
static uint64_t identity_of(int fd)
{
	struct stat st;

	return fstat(fd, &st) ? 0 : (uint64_t)st.st_ino ^ (uint64_t)st.st_dev << 40;
}

static bool is_tracked(int fd)
{
	return atomic_load(&ours[fd / 64]) >> fd % 64 & 1;
}

/* A descriptor that came from a peer has the mark that its maker set. */
static uint8_t mark_of(int fd)
{
	static _Atomic uint32_t next;
	int signal = fcntl(fd, F_GETSIG);

	if (signal > 0)
		return (uint8_t)signal;
	signal = (int)(1 + (atomic_fetch_add(&next, 1) + (uint32_t)getpid()) % MARKS);
	return fcntl(fd, F_SETSIG, signal) ? 0 : (uint8_t)signal;
}

static int next_free(int fd)
{
	while (fd < TRACKED && is_tracked(fd))
		fd++;
	return fd;
}

/*
 * Moves `fd` to a number that no descriptor of the library is believed to have. A number that the
 * table still has was closed by the program. A user of that number must not find another file of
 * the library there, so the number stays out of use until its user has closed it.
 */
static int move(int fd)
{
	int moved = fcntl(fd, F_DUPFD_CLOEXEC, next_free(high_number(false)));

	/* The limit may be lower by now. */
	if (moved < 0)
		moved = fcntl(fd, F_DUPFD_CLOEXEC, next_free(high_number(true)));
	while (moved >= 0 && moved != next_free(moved)) {
		vb_sys_close(moved);
		moved = fcntl(fd, F_DUPFD_CLOEXEC, next_free(moved));
	}
	if (moved < 0) {
		if (fd == next_free(fd))
			return fd;
		errno = EMFILE;
	}
	vb_sys_close(fd);
	return moved;
}

int vb_descriptor_adopt(int fd)
{
	if (fd < 0)
		return fd;
	fd = move(fd);
	if (fd >= 0 && fd < TRACKED) {
		uint8_t its = mark_of(fd);

		atomic_store(&mark[fd], its);
		atomic_store(&identity[fd], its ? 0 : identity_of(fd));
		atomic_fetch_or(&ours[fd / 64], 1ull << fd % 64);
	}
	return fd;
}

bool vb_descriptor_still(int fd)
{
	if (fd < 0)
		return false;
	if (fd >= TRACKED)
		return true;
	uint8_t wanted = atomic_load_explicit(&mark[fd], memory_order_relaxed);

	return wanted ? fcntl(fd, F_GETSIG) == wanted : vb_descriptor_ours(fd);
}

bool vb_descriptor_ours(int fd)
{
	if (fd < 0)
		return false;
	if (fd >= TRACKED)
		return true;
	uint8_t wanted = atomic_load(&mark[fd]);

	/* Another file of the library is never put under a number that the table still has. */
	if (!is_tracked(fd))
		return false;
	return wanted ? fcntl(fd, F_GETSIG) == wanted
		      : identity_of(fd) == atomic_load(&identity[fd]);
}

bool vb_descriptor_room(int fd, int n)
{
	int taken[VB_DESCRIPTOR_ROOM], got = 0;

	while (got < n && got < VB_DESCRIPTOR_ROOM) {
		taken[got] = fcntl(fd, F_DUPFD_CLOEXEC, 0);
		if (taken[got] < 0)
			break;
		got++;
	}
	for (int i = 0; i < got; i++)
		vb_sys_close(taken[i]);
	return got == n;
}

void vb_descriptor_close(int fd)
{
	bool close_it = vb_descriptor_ours(fd);

	if (close_it)
		vb_sys_close(fd);
	if (fd >= 0 && fd < TRACKED)
		atomic_fetch_and(&ours[fd / 64], ~(1ull << fd % 64));
}

void vb_descriptor_close_inherited(void)
{
	for (int i = 0; i < TRACKED / 64; i++) {
		uint64_t word = atomic_load(&ours[i]);

		for (int bit = 0; word; bit++, word >>= 1) {
			if (word & 1)
				vb_descriptor_close(i * 64 + bit);
		}
	}
}
