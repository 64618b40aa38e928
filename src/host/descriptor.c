/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Descriptors at high numbers, and the table of those that are ours. */
#include "host/descriptor.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/sys.h"

/* Numbers above are kept out of the table: they are used and closed unchecked, and a forked child keeps its copy. */
#define TRACKED 65536

static _Atomic uint64_t ours[TRACKED / 64];
/* Which file each of them is. Written before the bit in `ours` is set. */
static _Atomic uint64_t identity[TRACKED];

/* Programs that close or reuse numbers do so from the low end; select(2) bounds what is worth reaching. */
static int high_number(void)
{
	struct rlimit limit;
	rlim_t n = 1024;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < n)
		n = limit.rlim_cur;
	return (int)(n * 3 / 4);
}

/* The inode, with the device mixed into its upper bits; 0 for a number that is closed. */
static uint64_t identity_of(int fd)
{
	struct stat st;

	return fstat(fd, &st) ? 0 : (uint64_t)st.st_ino ^ (uint64_t)st.st_dev << 40;
}

static bool is_marked(int fd)
{
	return atomic_load(&ours[fd / 64]) >> fd % 64 & 1;
}

int vb_descriptor_adopt(int fd)
{
	if (fd < 0)
		return fd;
	int moved = fcntl(fd, F_DUPFD_CLOEXEC, high_number());

	if (moved >= 0) {
		vb_sys_close(fd);
		fd = moved;
	}
	if (fd < TRACKED) {
		atomic_store(&identity[fd], identity_of(fd));
		atomic_fetch_or(&ours[fd / 64], 1ull << fd % 64);
	}
	return fd;
}

bool vb_descriptor_ours(int fd)
{
	if (fd < 0)
		return false;
	return fd >= TRACKED || (is_marked(fd) && identity_of(fd) == atomic_load(&identity[fd]));
}

void vb_descriptor_close(int fd)
{
	bool close_it = vb_descriptor_ours(fd);

	if (fd >= 0 && fd < TRACKED)
		atomic_fetch_and(&ours[fd / 64], ~(1ull << fd % 64));
	if (close_it)
		vb_sys_close(fd);
}

void vb_descriptor_forget_all(void)
{
	for (size_t i = 0; i < TRACKED / 64; i++)
		atomic_store(&ours[i], 0);
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
