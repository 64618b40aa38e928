/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Sealed memfds: making, checking, mapping. */
#include "host/shared.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "host/descriptor.h"

#ifndef MFD_NOEXEC_SEAL /* Linux 6.3 */
#define MFD_NOEXEC_SEAL 0x0008u
#endif

#define SEALS_FIXED_SIZE (F_SEAL_SHRINK | F_SEAL_GROW)
#define SEALS_ONE_WRITER (SEALS_FIXED_SIZE | F_SEAL_FUTURE_WRITE)

static int memfd_open(const char *label)
{
	int fd = memfd_create(label, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);

	if (fd < 0 && errno == EINVAL)
		fd = memfd_create(label, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	return fd < 0 ? -errno : vb_descriptor_adopt(fd);
}

/* ftruncate(2) beyond RLIMIT_FSIZE would send SIGXFSZ, which kills the process. */
static int size_set(int fd, size_t bytes)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < bytes)
		return -EFBIG;
	return ftruncate(fd, (off_t)bytes) ? -errno : 0;
}

static int map_object(int fd, size_t bytes, int prot, void **map)
{
	void *p = mmap(NULL, bytes, prot, MAP_SHARED | MAP_NORESERVE, fd, 0);

	if (p == MAP_FAILED)
		return -errno;
	madvise(p, bytes, MADV_DONTFORK);
	*map = p;
	return 0;
}

static int seal(int fd, int seals)
{
	return fcntl(fd, F_ADD_SEALS, seals | F_SEAL_SEAL) ? -errno : 0;
}

static int create(const char *label, size_t bytes, int seals, void **map, int *out)
{
	int fd = memfd_open(label);

	if (fd < 0)
		return fd;
	int err = size_set(fd, bytes);

	if (!err)
		err = map_object(fd, bytes, PROT_READ | PROT_WRITE, map);
	if (err)
		goto fail;
	err = seal(fd, seals);
	if (err) {
		vb_shared_unmap(*map, bytes);
		goto fail;
	}
	*out = fd;
	return 0;
fail:
	vb_descriptor_close(fd);
	return err;
}

int vb_shared_create_file(const char *label, size_t bytes, int *out)
{
	int fd = memfd_open(label);

	if (fd < 0)
		return fd;
	int err = size_set(fd, bytes);

	if (!err)
		err = seal(fd, SEALS_FIXED_SIZE);
	if (err)
		vb_descriptor_close(fd);
	else
		*out = fd;
	return err;
}

int vb_shared_create(const char *label, size_t bytes, void **map, int *fd)
{
	return create(label, bytes, SEALS_ONE_WRITER, map, fd);
}

int vb_shared_create_common(const char *label, size_t bytes, void **map, int *fd)
{
	return create(label, bytes, SEALS_FIXED_SIZE, map, fd);
}

int vb_shared_check(int fd, bool common, uint64_t *bytes, const char **defect)
{
	int need = common ? SEALS_FIXED_SIZE : SEALS_ONE_WRITER;
	int seals = fcntl(fd, F_GET_SEALS);
	struct statfs fs;
	struct stat st;

	if (seals < 0) {
		*defect = "it is no memfd";
		return -EBADMSG;
	}
	if ((seals & need) != need) {
		*defect = "it is not sealed";
		return -EBADMSG;
	}
	/* The size is read after the seals: it cannot change any more. */
	if (fstat(fd, &st)) {
		*defect = "it has no size";
		return -EBADMSG;
	}
	*bytes = (uint64_t)st.st_size;
	/*
	 * A huge page may be lacking when it is touched, which kills the process that touches it.
	 */
	if (fstatfs(fd, &fs) || fs.f_type != TMPFS_MAGIC) {
		*defect = "its memory is not ordinary";
		return -EBADMSG;
	}
	return 0;
}

int vb_shared_map_part(int fd, size_t bytes, size_t part, bool common, void **map,
		       const char **defect)
{
	uint64_t size;
	int err = vb_shared_check(fd, common, &size, defect);

	if (!err && size != bytes) {
		*defect = "it has the wrong size";
		err = -EBADMSG;
	}
	if (err)
		return err;
	err = map_object(fd, part, common ? PROT_READ | PROT_WRITE : PROT_READ, map);
	if (err)
		*defect = "it cannot be mapped";
	return err;
}

int vb_shared_map(int fd, size_t bytes, bool common, void **map, const char **defect)
{
	return vb_shared_map_part(fd, bytes, bytes, common, map, defect);
}

void *vb_shared_map_whole(const void *map, size_t bytes)
{
	/*
	 * An old size of 0 keeps the mapping and makes another one of the same object (mremap(2)).
	 */
	void *whole = mremap((void *)(uintptr_t)map, 0, bytes, MREMAP_MAYMOVE);

	return whole == MAP_FAILED ? NULL : whole;
}

void vb_shared_unmap(const void *map, size_t bytes)
{
	if (map)
		munmap((void *)(uintptr_t)map, bytes);
}
