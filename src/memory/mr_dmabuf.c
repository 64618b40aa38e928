/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Regions of a dma-buf. The device maps the dma-buf for itself, and has the kernel copy, because
 * pages of a file can vanish.
 *
 * The descriptor must be one that can be mapped shared: a dma-buf whose exporter allows access by
 * the processor, or a memfd, which serves on machines without an exporter. DMA_BUF_IOCTL_SYNC is
 * not used: the memory is taken to be coherent, as it is with exporters of system memory.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/reason.h"
#include "memory/copy.h"
#include "memory/memory.h"
#include "memory/mr.h"

/* The rights that ibv_reg_dmabuf_mr(3) lists. */
#define DMABUF_BITS                                                        \
	((unsigned int)(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | \
			IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC))

/*
 * NCCL, UCX and NVSHMEM call without a descriptor to find out whether the memory of a GPU can be
 * registered: EBADF says so. NVIDIA's dma-bufs cannot be mapped, so where the driver is, also in a
 * container, the answer is the one that makes these programs copy through host memory.
 */
static int refuse_descriptor(int fd)
{
	static const char *const signs[] = {"/proc/driver/nvidia", "/dev/nvidiactl"};

	for (size_t i = 0; i < sizeof(signs) / sizeof(signs[0]); i++) {
		if (!access(signs[i], F_OK))
			return vb_refuse(EOPNOTSUPP, VB_REASON_GPU_MEMORY,
					 "reg_dmabuf_mr: fd %d is not open, and %s is there", fd,
					 signs[i]);
	}
	return vb_refuse(EBADF, VB_REASON_ARG, "reg_dmabuf_mr: fd %d is not open", fd);
}

static bool is_dmabuf(int fd)
{
	struct statfs fs;

	return !fstatfs(fd, &fs) && fs.f_type == DMA_BUF_MAGIC;
}

/* `err`: of mmap(2). The exporter of a dma-buf may allow none, and has its own errno for that. */
static int refuse_mapping(int fd, int err)
{
	if (err == EACCES || err == ENOMEM)
		return vb_refuse(err, VB_REASON_SYSTEM, "reg_dmabuf_mr: fd %d cannot be mapped: %s",
				 fd, strerror(err));
	if (is_dmabuf(fd))
		return vb_refuse(EOPNOTSUPP, VB_REASON_GPU_MEMORY,
				 "reg_dmabuf_mr: the exporter of fd %d refuses to be mapped: %s",
				 fd, strerror(err));
	return vb_refuse(EINVAL, VB_REASON_SYSTEM, "reg_dmabuf_mr: fd %d cannot be mapped: %s", fd,
			 strerror(err));
}

static int check(uint64_t offset, size_t length, uint64_t iova, int fd, uint64_t page)
{
	off_t end;

	if (fcntl(fd, F_GETFD) < 0)
		return refuse_descriptor(fd);
	if (!length || offset + length < offset || iova + (length - 1) < iova)
		return vb_refuse(EINVAL, VB_REASON_ARG,
				 "reg_dmabuf_mr: 0x%llx+%zu is empty or wraps",
				 (unsigned long long)offset, length);
	if ((offset ^ iova) & (page - 1))
		return vb_refuse(
			EINVAL, VB_REASON_ARG,
			"reg_dmabuf_mr: offset 0x%llx and iova 0x%llx lie differently in their pages",
			(unsigned long long)offset, (unsigned long long)iova);
	end = lseek(fd, 0, SEEK_END);
	if (end < 0 || offset + length > (uint64_t)end)
		return vb_refuse(EINVAL, VB_REASON_ARG,
				 "reg_dmabuf_mr: fd %d holds %lld bytes, 0x%llx+%zu exceeds it", fd,
				 (long long)end, (unsigned long long)offset, length);
	return 0;
}

/*
 * Device pages that only instructions can reach are refused, because the kernel's copies serve
 * peers' requests.
 */
static int probe(const void *memory)
{
	char byte;

	if (vb_mem_copy_out(&byte, (uintptr_t)memory, 1))
		return 0;
	return vb_refuse(EOPNOTSUPP, VB_REASON_GPU_MEMORY,
			 "reg_dmabuf_mr: the kernel cannot copy from this dma-buf's mapping");
}

int vb_mr_register_dmabuf(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova, int fd,
			  unsigned int access, struct ibv_mr **mr)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t into = offset & (page - 1);
	struct vb_mr_mapping mapping = {.map_length = length + into,
					.length = length,
					.iova = iova,
					.addr = (void *)(uintptr_t)offset};
	int prot = access & IBV_ACCESS_LOCAL_WRITE ? PROT_READ | PROT_WRITE : PROT_READ;
	int err;

	access &= ~(unsigned int)IBV_ACCESS_OPTIONAL_RANGE;
	if (access & ~DMABUF_BITS)
		return vb_refuse(EINVAL, VB_REASON_ARG_MASK, "reg_dmabuf_mr: access flags 0x%x",
				 access & ~DMABUF_BITS);
	err = vb_mr_check_access(&access);
	if (!err)
		err = check(offset, length, iova, fd, page);
	if (err)
		return err;
	mapping.map = mmap(NULL, mapping.map_length, prot, MAP_SHARED, fd, (off_t)(offset - into));
	if (mapping.map == MAP_FAILED)
		return refuse_mapping(fd, errno);
	mapping.memory = (char *)mapping.map + into;
	err = probe(mapping.memory);
	if (!err)
		err = vb_mr_register_mapping(pd, &mapping, access | IBV_ACCESS_ON_DEMAND, mr);
	if (err)
		munmap(mapping.map, mapping.map_length);
	return err;
}
