/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Regions of a descriptor: ibv_reg_dmabuf_mr(3) and ibv_reg_mr_ex(3) with a descriptor. A memfd
 * stands for the dma-buf: this machine need not have an exporter.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "support/check.h"
#include "support/endpoint.h"
#include "support/filter.h"

#define PAGE 4096u
#define SIZE (8 * PAGE)
#define ALL                                                                          \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC)

static struct endpoint near, far;
static int fd;

/* @err 0: registered. */
static void try_range(const char *name, int file, uint64_t offset, size_t length, uint64_t iova,
		      int access, int err)
{
	struct ibv_mr *mr;

	expect_case("%s (0x%llx+%zu, iova 0x%llx, access %#x)", name, (unsigned long long)offset,
		    length, (unsigned long long)iova, (unsigned int)access);
	if (err) {
		EXPECT_NULL(ibv_reg_dmabuf_mr(far.pd, offset, length, iova, file, access), err);
		return;
	}
	mr = ibv_reg_dmabuf_mr(far.pd, offset, length, iova, file, access);
	EXPECT_SAY(mr != NULL, "refused, errno %d", errno);
	if (!mr)
		return;
	EXPECT_EQ(mr->length, length);
	EXPECT_EQ(ibv_dereg_mr(mr), 0);
}

/*
 * From here on the kernel's copies find no memory, as they do in pages of a device that only
 * instructions reach.
 */
static bool hide_from_kernel(void)
{
	return filter_refuse(SYS_process_vm_readv, EFAULT);
}

/*
 * A system with NVIDIA's driver, as far as the library can see, in a mount namespace of this
 * process.
 */
static bool show_driver(void)
{
	if (geteuid() ? unshare(CLONE_NEWUSER | CLONE_NEWNS) : unshare(CLONE_NEWNS))
		return false;
	return !mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) &&
	       !mount("none", "/proc/driver", "tmpfs", 0, NULL) &&
	       !mkdir("/proc/driver/nvidia", 0755);
}

enum { NO_FILTER = 255, REGISTERED = 254, NO_DOMAIN = 253, NO_DRIVER = 252, OTHER = 251 };

/* As NCCL, UCX and NVSHMEM ask whether the memory of a GPU can be registered. */
static void asked_by_programs(void)
{
	int status = 0;
	pid_t child = fork();

	if (child == 0) {
		struct ibv_pd *pd;

		if (!show_driver())
			_exit(NO_DRIVER);
		pd = ibv_alloc_pd(device_open());
		if (!pd)
			_exit(NO_DOMAIN);
		if (ibv_reg_dmabuf_mr(pd, 0, PAGE, 0, -1, ALL) || errno != EOPNOTSUPP)
			_exit(OTHER);
		/* What the processor reaches is registered there as well. */
		if (!ibv_reg_dmabuf_mr(pd, 0, PAGE, 0, fd, ALL))
			_exit(OTHER);
		_exit(ibv_reg_dmabuf_mr(pd, 0, 0, 0, -1, 0) ? REGISTERED : errno);
	}
	CHECK(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status));
	if (WEXITSTATUS(status) == NO_DRIVER)
		return; /* no mount namespace is to be had */
	expect_case("no descriptor, where NVIDIA's driver is");
	EXPECT_EQ(WEXITSTATUS(status), EOPNOTSUPP);
}

static int seems_dmabuf = -1;

/*
 * In place of the C library's: one descriptor is said to be a dma-buf. A real one that refuses to
 * be mapped comes from the driver of a GPU alone.
 */
__attribute__((visibility("default"))) int fstatfs(int file, struct statfs *fs)
{
	int err = (int)syscall(SYS_fstatfs, file, fs);

	if (!err && file == seems_dmabuf)
		fs->f_type = DMA_BUF_MAGIC;
	return err;
}

/* A file that has a size and cannot be mapped. */
static void not_mapped(void)
{
	int file = open("/sys/kernel/notes", O_RDONLY | O_CLOEXEC);

	if (file < 0 || lseek(file, 0, SEEK_END) <= 0)
		return; /* the kernel was built without it, or sysfs is not there */
	expect_case("what is no dma-buf and refuses to be mapped");
	EXPECT_NULL(ibv_reg_dmabuf_mr(far.pd, 0, 8, 0, file, 0), EINVAL);
	expect_case("a dma-buf that refuses to be mapped");
	seems_dmabuf = file;
	EXPECT_NULL(ibv_reg_dmabuf_mr(far.pd, 0, 8, 0, file, 0), EOPNOTSUPP);
	seems_dmabuf = -1;
	close(file);
}

/* In a process of its own, because a filter cannot be taken back. */
static void unreachable(void)
{
	int status = 0;
	pid_t child = fork();

	if (child == 0) {
		struct ibv_pd *pd = ibv_alloc_pd(device_open());

		if (!pd)
			_exit(NO_DOMAIN);
		if (!hide_from_kernel())
			_exit(NO_FILTER);
		_exit(ibv_reg_dmabuf_mr(pd, 0, PAGE, 0, fd, ALL) ? REGISTERED : errno);
	}
	CHECK(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status));
	if (WEXITSTATUS(status) == NO_FILTER)
		return; /* seccomp(2) is not to be had: nothing can be refused here */
	expect_case("memory that the kernel cannot copy from");
	EXPECT_EQ(WEXITSTATUS(status), EOPNOTSUPP);
}

static void refusals(void)
{
	int reading = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	static const struct {
		const char *name;
		uint64_t offset;
		size_t length;
		uint64_t iova;
		int err;
	} rows[] = {
		{"the whole", 0, SIZE, 0, 0},
		{"its last byte", SIZE - 1, 1, PAGE - 1, 0},
		{"iova up to the end of 64 bits", 0, PAGE, UINT64_MAX - PAGE + 1, 0},
		{"length 0", 0, 0, 0, EINVAL},
		{"one byte too long", 0, SIZE + 1, 0, EINVAL},
		{"beyond its end", PAGE, SIZE, PAGE, EINVAL},
		{"from its end on", SIZE, 1, 0, EINVAL},
		{"offset wraps", UINT64_MAX - PAGE + 1, SIZE, 0, EINVAL},
		{"length of all there is", 0, SIZE_MAX, 0, EINVAL},
		{"iova wraps", 0, 2 * PAGE, UINT64_MAX - PAGE + 1, EINVAL},
		{"page offsets differ", 100, PAGE, 200, EINVAL},
		{"page offsets differ by one", 0, PAGE, 1, EINVAL},
		{"page offsets alike", 100, PAGE, 7 * PAGE + 100, 0},
	};
	char path[64];
	int pipes[2], writing;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	writing = open(path, O_WRONLY | O_CLOEXEC);
	CHECK(writing >= 0 && reading >= 0 && pipe(pipes) == 0);
	expect_case("no descriptor");
	EXPECT_NULL(ibv_reg_dmabuf_mr(far.pd, 0, PAGE, 0, -1, ALL), EBADF);
	EXPECT_NULL(ibv_reg_dmabuf_mr(far.pd, 0, PAGE, 0, 999999, ALL), EBADF);
	expect_case("not to be mapped");
	EXPECT_NULL(ibv_reg_dmabuf_mr(far.pd, 0, PAGE, 0, pipes[0], ALL), EINVAL);
	expect_case("not to be read");
	EXPECT_NULL(ibv_reg_dmabuf_mr(far.pd, 0, PAGE, 0, writing, 0), EACCES);
	expect_case("not to be written");
	EXPECT_NULL(ibv_reg_dmabuf_mr(far.pd, 0, PAGE, 0, reading, ALL), EACCES);
	try_range("what may only be read, to be read", reading, 0, PAGE, 0, IBV_ACCESS_REMOTE_READ,
		  0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		try_range(rows[i].name, fd, rows[i].offset, rows[i].length, rows[i].iova, ALL,
			  rows[i].err);
	for (int bit = 0; bit < 30; bit++) {
		bool optional = bit >= 20, known = bit < 4;

		try_range("access flag", fd, 0, PAGE, 0, IBV_ACCESS_LOCAL_WRITE | 1 << bit,
			  known || optional ? 0 : EINVAL);
	}
	try_range("remote changes without LOCAL_WRITE", fd, 0, PAGE, 0, IBV_ACCESS_REMOTE_WRITE,
		  EINVAL);
	try_range("the same", fd, 0, PAGE, 0, IBV_ACCESS_REMOTE_ATOMIC, EINVAL);
	expect_case("handle of the domain overwritten");
	far.pd->handle += 100;
	EXPECT_NULL(ibv_reg_dmabuf_mr(far.pd, 0, PAGE, 0, fd, ALL), ENOENT);
	far.pd->handle -= 100;
	close(reading);
	close(writing);
	close(pipes[0]);
	close(pipes[1]);
}

static int request(enum ibv_wr_opcode opcode, uint64_t addr, uint32_t rkey)
{
	struct ibv_sge sge = ep_sge(&near, 0, 200);
	struct ibv_send_wr wr = ep_wr(opcode, 1, &sge, 1);

	ep_target(&wr, addr, rkey);
	return ep_run(&near, &wr);
}

static bool file_holds(off_t at, int byte, size_t length)
{
	uint8_t data[256];

	CHECK(length <= sizeof(data));
	CHECK(pread(fd, data, length, at) == (ssize_t)length);
	for (size_t i = 0; i < length; i++)
		if (data[i] != byte)
			return false;
	return true;
}

/* The region is the range of the file, addressed by its iova; the descriptor may be closed. */
static void traffic(bool ex)
{
	struct ibv_mr_init_attr attr = {
		.length = 2 * PAGE,
		.access = ALL,
		.comp_mask = IBV_REG_MR_MASK_FD | IBV_REG_MR_MASK_FD_OFFSET | IBV_REG_MR_MASK_IOVA,
		.iova = 0x70000064,
		.fd = dup(fd),
		.fd_offset = PAGE + 0x64,
	};
	struct ibv_sge from;
	struct ibv_send_wr wr;
	struct ibv_wc wc;
	struct ibv_mr *mr;

	mr = ex ? ibv_reg_mr_ex(far.pd, &attr)
		: ibv_reg_dmabuf_mr(far.pd, attr.fd_offset, attr.length, attr.iova, attr.fd, ALL);
	CHECK(mr);
	close(attr.fd);
	expect_case("WRITE to a dma-buf (%s)", ex ? "reg_mr_ex" : "reg_dmabuf_mr");
	ep_fill(&near, 0, 0x51, 200);
	EXPECT_STATUS(request(IBV_WR_RDMA_WRITE, attr.iova + 10, mr->rkey), IBV_WC_SUCCESS);
	EXPECT(file_holds(PAGE + 0x64 + 10, 0x51, 200));
	EXPECT_EQ(mr->length, 2 * PAGE);
	expect_case("READ");
	ep_fill(&near, 0, 0, 200);
	EXPECT_STATUS(request(IBV_WR_RDMA_READ, attr.iova + 10, mr->rkey), IBV_WC_SUCCESS);
	EXPECT(ep_is_filled(&near, 0, 0x51, 200));
	expect_case("SEND from it");
	from = (struct ibv_sge){.addr = attr.iova + 10, .length = 100, .lkey = mr->lkey};
	wr = ep_wr(IBV_WR_RDMA_WRITE, 5, &from, 1);
	wr.wr.rdma.remote_addr = near.local.addr + 1000;
	wr.wr.rdma.rkey = near.local.rkey;
	CHECK(ep_post_send(&far, &wr) == 0);
	EXPECT_STATUS(ep_poll_one(&far, EP_SEND_CQ, &wc), IBV_WC_SUCCESS);
	EXPECT(ep_is_filled(&near, 1000, 0x51, 100));
	expect_case("no re-registration");
	EXPECT_EQ(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, ALL),
		  IBV_REREG_MR_ERR_INPUT);
	expect_case("outside");
	EXPECT_STATUS(request(IBV_WR_RDMA_WRITE, attr.iova + 2 * PAGE - 199, mr->rkey),
		      IBV_WC_REM_ACCESS_ERR);
	ep_relink(&near, &far);
	EXPECT_EQ(ibv_dereg_mr(mr), 0);
}

/* A file that becomes shorter takes the pages away; that is an error of the request. */
static void truncated(void)
{
	struct ibv_mr *mr = ibv_reg_dmabuf_mr(far.pd, 0, SIZE, 0, fd, ALL);
	struct ibv_sge from;
	struct ibv_send_wr wr;
	struct ibv_wc wc;

	CHECK(mr && ftruncate(fd, PAGE) == 0);
	expect_case("pages gone: remote");
	EXPECT_STATUS(request(IBV_WR_RDMA_WRITE, 2 * PAGE, mr->rkey), IBV_WC_REM_OP_ERR);
	ep_relink(&near, &far);
	expect_case("pages gone: local");
	from = (struct ibv_sge){.addr = 2 * PAGE, .length = 100, .lkey = mr->lkey};
	wr = ep_wr(IBV_WR_SEND, 5, &from, 1);
	CHECK(ep_post_send(&far, &wr) == 0);
	EXPECT_STATUS(ep_poll_one(&far, EP_SEND_CQ, &wc), IBV_WC_LOC_PROT_ERR);
	EXPECT_EQ(ibv_dereg_mr(mr), 0);
}

int main(int argc, char **argv)
{
	struct ep_config config = ep_defaults(IBV_QPT_RC);

	ep_main(argc, argv);
	fd = memfd_create("dma", MFD_CLOEXEC);
	CHECK(fd >= 0 && ftruncate(fd, SIZE) == 0);
	asked_by_programs();
	unreachable(); /* before this process has devices */
	ep_pair(&near, &far, &config, &config, EP_HERE);
	refusals();
	not_mapped();
	traffic(false);
	traffic(true);
	truncated();
	ep_pair_close(&near, &far);
	close(fd);
	return expect_done();
}
