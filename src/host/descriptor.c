/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Descriptors at high numbers, and the bitmap of those that are ours. */
#include "host/descriptor.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <unistd.h>

/* Numbers above are kept out of the table: they are still used and closed, but a forked child keeps its copy. */
#define TRACKED 65536

static _Atomic uint64_t ours[TRACKED / 64];

/* Programs that close or reuse numbers do so from the low end; select(2) bounds what is worth reaching. */
static int high_number(void)
{
	struct rlimit limit;
	rlim_t n = 1024;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < n)
		n = limit.rlim_cur;
	return (int)(n * 3 / 4);
}

static void mark(int fd)
{
	if (fd < TRACKED)
		atomic_fetch_or(&ours[fd / 64], 1ull << (fd % 64));
}

/* Whether it was ours until now. */
static bool unmark(int fd)
{
	uint64_t bit = 1ull << (fd % 64);

	if (fd >= TRACKED)
		return true;
	return (atomic_fetch_and(&ours[fd / 64], ~bit) & bit) != 0;
}

int vb_descriptor_adopt(int fd)
{
	if (fd < 0)
		return fd;
	int moved = fcntl(fd, F_DUPFD_CLOEXEC, high_number());

	if (moved >= 0) {
		close(fd);
		fd = moved;
	}
	mark(fd);
	return fd;
}

void vb_descriptor_close(int fd)
{
	if (fd >= 0 && unmark(fd))
		close(fd);
}

void vb_descriptor_forget_all(void)
{
	for (size_t i = 0; i < TRACKED / 64; i++)
		atomic_store(&ours[i], 0);
}

void vb_descriptor_close_inherited(void)
{
	for (int i = 0; i < TRACKED / 64; i++) {
		uint64_t word = atomic_exchange(&ours[i], 0);

		for (int bit = 0; word; bit++, word >>= 1) {
			if (word & 1)
				close(i * 64 + bit);
		}
	}
}
