/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Buffers that peers can map (ibv_alloc_buf(3), ibv_reg_buf_mr(3)), DMA handles, dma-bufs: what is
 * checked, and which object keeps which alive.
 */
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "support/check.h"
#include "support/endpoint.h"

#define LENGTH 20000

static struct ibv_context *ctx;
static struct ibv_pd *pd, *other_pd;

#define ALL_ACCESS                                                                   \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC)

static void allocation(void)
{
	struct ibv_buf *buf = NULL, *second = NULL;
	unsigned char *addr, *other;
	int dirty = 0;

	expect_case("no bytes, no place for the answer");
	EXPECT_NULL(ibv_alloc_buf(pd, 0, &buf), EINVAL);
	EXPECT_NULL(ibv_alloc_buf(pd, 64, NULL), EINVAL);
	EXPECT_NULL(ibv_alloc_buf(NULL, 64, &buf), EINVAL);
	expect_case("handle of the domain overwritten");
	pd->handle += 100;
	EXPECT_NULL(ibv_alloc_buf(pd, 64, &buf), ENOENT);
	pd->handle -= 100;
	expect_case("more than there is");
	EXPECT_NULL(ibv_alloc_buf(pd, SIZE_MAX, &buf), ENOMEM);
	EXPECT_NULL(ibv_alloc_buf(pd, (size_t)1 << 50, &buf), ENOMEM);
	EXPECT(!buf); /* untouched so far */
	expect_case("a buffer is zeroed memory of the program");
	addr = ibv_alloc_buf(pd, LENGTH, &buf);
	other = ibv_alloc_buf(pd, LENGTH, &second);
	CHECK(addr && buf && other && second);
	EXPECT_EQ((uintptr_t)addr % 4096, 0);
	EXPECT(other >= addr + LENGTH || addr >= other + LENGTH);
	for (int i = 0; i < LENGTH; i++)
		dirty += addr[i] != 0;
	EXPECT_EQ(dirty, 0);
	memset(addr, 1, LENGTH);
	EXPECT_EQ(other[0], 0);
	expect_case("the domain outlives its buffers");
	EXPECT_REFUSED(ibv_dealloc_pd(pd), EBUSY);
	ibv_free_buf(buf);
	ibv_free_buf(second);
	ibv_free_buf(NULL);
	expect_case("freed and allocated again: zeroes");
	addr = ibv_alloc_buf(pd, LENGTH, &buf);
	CHECK(addr);
	for (int i = 0; i < LENGTH; i++)
		dirty += addr[i] != 0;
	EXPECT_EQ(dirty, 0);
	ibv_free_buf(buf);
}

static void registration(void)
{
	struct ibv_buf *buf;
	char *addr = ibv_alloc_buf(pd, LENGTH, &buf);
	struct ibv_mr *mr, *plain;

	CHECK(addr);
	expect_case("the whole, a part, the end");
	for (int i = 0; i < 3; i++) {
		char *at = addr + (i == 0 ? 0 : i == 1 ? 5000 : LENGTH - 1);
		size_t length = i == 0 ? LENGTH : i == 1 ? 100 : 1;

		mr = ibv_reg_buf_mr(pd, buf, at, length, ALL_ACCESS);
		EXPECT_SAY(mr != NULL, "refused, errno %d", errno);
		if (!mr)
			continue;
		EXPECT(mr->addr == at && mr->length == length && mr->pd == pd);
		EXPECT_EQ(ibv_dereg_mr(mr), 0);
	}
	expect_case("outside");
	EXPECT_NULL(ibv_reg_buf_mr(pd, buf, addr, LENGTH + 1, ALL_ACCESS), EINVAL);
	EXPECT_NULL(ibv_reg_buf_mr(pd, buf, addr - 1, 2, ALL_ACCESS), EINVAL);
	EXPECT_NULL(ibv_reg_buf_mr(pd, buf, addr + LENGTH, 1, ALL_ACCESS), EINVAL);
	EXPECT_NULL(ibv_reg_buf_mr(pd, buf, addr + 2, SIZE_MAX, ALL_ACCESS), EINVAL);
	EXPECT_NULL(ibv_reg_buf_mr(pd, buf, NULL, 0, ALL_ACCESS), EINVAL);
	expect_case("another domain than the buffer's");
	EXPECT_NULL(ibv_reg_buf_mr(other_pd, buf, addr, LENGTH, ALL_ACCESS), EINVAL);
	expect_case("arguments missing");
	EXPECT_NULL(ibv_reg_buf_mr(NULL, buf, addr, 8, 0), EINVAL);
	EXPECT_NULL(ibv_reg_buf_mr(pd, NULL, addr, 8, 0), EINVAL);
	expect_case("access");
	EXPECT_NULL(ibv_reg_buf_mr(pd, buf, addr, 8, IBV_ACCESS_REMOTE_WRITE), EINVAL);
	expect_case("as any other memory");
	plain = ibv_reg_mr(other_pd, addr, LENGTH, ALL_ACCESS);
	EXPECT(plain != NULL);
	if (plain)
		EXPECT_EQ(ibv_dereg_mr(plain), 0);
	ibv_free_buf(buf);
}

/*
 * ibv_free_buf(3) has no answer, so it cannot refuse: the memory stays until the last region on it
 * goes, and no longer.
 */
static void freed_first(void)
{
	struct ibv_pd *own = ibv_alloc_pd(ctx);
	unsigned char *addr, *again, resident;
	struct ibv_buf *buf;
	struct ibv_mr *mr[2];

	CHECK(own);
	for (int last = 0; last < 2; last++) {
		expect_case("the buffer is freed before its regions, region %d goes last", last);
		addr = ibv_alloc_buf(own, LENGTH, &buf);
		CHECK(addr);
		mr[0] = ibv_reg_buf_mr(own, buf, addr, LENGTH, ALL_ACCESS);
		mr[1] = ibv_reg_buf_mr(own, buf, addr + 64, 64, ALL_ACCESS);
		CHECK(mr[0] && mr[1]);
		errno = 0;
		ibv_free_buf(buf);
		EXPECT_EQ(errno, 0);
		memset(addr, 7, LENGTH);
		EXPECT_EQ(ibv_dereg_mr(mr[!last]), 0);
		expect_case("the memory is there as long as a region is");
		again = ibv_alloc_buf(own, LENGTH, &buf);
		CHECK(again);
		EXPECT(again >= addr + LENGTH || addr >= again + LENGTH);
		EXPECT_EQ(addr[LENGTH - 1], 7);
		ibv_free_buf(buf);
		EXPECT_REFUSED(ibv_dealloc_pd(own), EBUSY);
		EXPECT_EQ(ibv_dereg_mr(mr[last]), 0);
		expect_case("then it is the library's again");
		EXPECT(mincore(addr, 4096, &resident) != 0 || !(resident & 1));
	}
	expect_case("and nothing holds the domain");
	EXPECT_EQ(ibv_dealloc_pd(own), 0);
}

static void registration_ex(void)
{
	struct ibv_buf *buf;
	char *addr = ibv_alloc_buf(pd, LENGTH, &buf);
	struct ibv_mr_init_attr attr = {
		.comp_mask = IBV_REG_MR_MASK_ADDR | IBV_REG_MR_MASK_BUF | IBV_REG_MR_MASK_IOVA,
		.addr = addr,
		.buf = buf,
		.iova = 0x1000000,
		.length = LENGTH,
		.access = ALL_ACCESS,
	};
	struct ibv_mr *mr;

	CHECK(addr);
	expect_case("ibv_reg_mr_ex with a buffer");
	mr = ibv_reg_mr_ex(pd, &attr);
	EXPECT(mr && mr->addr == addr && mr->length == LENGTH);
	if (mr)
		EXPECT_EQ(ibv_dereg_mr(mr), 0);
	expect_case("the range exceeds it");
	attr.length = LENGTH + 1;
	EXPECT_NULL(ibv_reg_mr_ex(pd, &attr), EINVAL);
	attr.length = 64;
	expect_case("announced and missing");
	attr.buf = NULL;
	EXPECT_NULL(ibv_reg_mr_ex(pd, &attr), EINVAL);
	attr.buf = buf;
	expect_case("a buffer has an address, and is no file");
	attr.comp_mask = IBV_REG_MR_MASK_BUF | IBV_REG_MR_MASK_FD;
	EXPECT_NULL(ibv_reg_mr_ex(pd, &attr), EINVAL);
	attr.comp_mask = IBV_REG_MR_MASK_BUF;
	EXPECT_NULL(ibv_reg_mr_ex(pd, &attr), EINVAL);
	ibv_free_buf(buf);
}

/*
 * ibv_reg_mr_ex(3): every set of members. One of addr and fd; fd_offset goes with fd, a buffer with
 * addr.
 */
static void every_mask(void)
{
	struct ibv_dmah_init_attr hints = {.comp_mask = 0};
	struct ibv_mr_init_attr attr = {.length = 4096, .access = ALL_ACCESS, .iova = 0x1000000};
	int fd = memfd_create("region", MFD_CLOEXEC);

	attr.addr = ibv_alloc_buf(pd, LENGTH, &attr.buf);
	attr.dmah = ibv_alloc_dmah(ctx, &hints);
	attr.fd = fd;
	attr.fd_offset = 4096;
	CHECK(attr.addr && attr.dmah && fd >= 0 && ftruncate(fd, 8192) == 0);
	for (uint64_t mask = 0; mask < IBV_REG_MR_MASK_BUF << 1; mask++) {
		bool addr = mask & IBV_REG_MR_MASK_ADDR, file = mask & IBV_REG_MR_MASK_FD;
		bool good = addr ? !file && !(mask & IBV_REG_MR_MASK_FD_OFFSET)
				 : file && !(mask & IBV_REG_MR_MASK_BUF);
		struct ibv_mr *mr;

		expect_case("ibv_reg_mr_ex: comp_mask 0x%llx", (unsigned long long)mask);
		attr.comp_mask = mask;
		if (!good) {
			EXPECT_NULL(ibv_reg_mr_ex(pd, &attr), EINVAL);
			continue;
		}
		mr = ibv_reg_mr_ex(pd, &attr);
		if (EXPECT_SAY(mr != NULL, "refused, errno %d", errno))
			EXPECT_EQ(ibv_dereg_mr(mr), 0);
	}
	for (int bit = 6; bit < 64; bit++) {
		expect_case("ibv_reg_mr_ex: unknown bit %d", bit);
		attr.comp_mask = IBV_REG_MR_MASK_ADDR | 1ull << bit;
		EXPECT_NULL(ibv_reg_mr_ex(pd, &attr), EINVAL);
	}
	expect_case("ibv_reg_mr_ex: a buffer's region up to the end of 64 bits, and beyond");
	attr.comp_mask = IBV_REG_MR_MASK_ADDR | IBV_REG_MR_MASK_BUF | IBV_REG_MR_MASK_IOVA;
	attr.iova = UINT64_MAX - 4094;
	EXPECT_NULL(ibv_reg_mr_ex(pd, &attr), EINVAL);
	attr.iova--;
	struct ibv_mr *last = ibv_reg_mr_ex(pd, &attr);

	if (EXPECT(last != NULL))
		EXPECT_EQ(ibv_dereg_mr(last), 0);
	expect_case("ibv_reg_mr_ex: nothing of this is left");
	EXPECT_EQ(ibv_dealloc_dmah(attr.dmah), 0);
	errno = 0;
	ibv_free_buf(attr.buf);
	EXPECT_EQ(errno, 0);
	close(fd);
}

static void handles(void)
{
	static char memory[64];
	const struct ibv_dmah_init_attr whole = {
		.comp_mask = IBV_DMAH_INIT_ATTR_MASK_CPU_ID | IBV_DMAH_INIT_ATTR_MASK_PH |
			     IBV_DMAH_INIT_ATTR_MASK_TPH_MEM_TYPE,
		.cpu_id = (uint32_t)sysconf(_SC_NPROCESSORS_CONF) - 1,
		.ph = 3,
		.tph_mem_type = IBV_TPH_MEM_TYPE_PM,
	};
	struct ibv_mr_init_attr region = {
		.comp_mask = IBV_REG_MR_MASK_ADDR | IBV_REG_MR_MASK_DMAH,
		.addr = memory,
		.length = sizeof(memory),
		.access = ALL_ACCESS,
	};
	struct ibv_dmah_init_attr attr = whole;
	struct ibv_context *other = device_open();
	struct ibv_dmah *dmah = ibv_alloc_dmah(ctx, &attr), *foreign = ibv_alloc_dmah(other, &attr);
	struct ibv_mr *mr;

	expect_case("a DMA handle, every hint at its largest");
	CHECK(dmah && foreign);
	EXPECT(dmah->context == ctx);
	expect_case("a region with it");
	region.dmah = dmah;
	mr = ibv_reg_mr_ex(pd, &region);
	EXPECT(mr != NULL);
	if (mr)
		EXPECT_EQ(ibv_dereg_mr(mr), 0);
	expect_case("a region with it, on demand");
	region.access |= IBV_ACCESS_ON_DEMAND;
	EXPECT_NULL(ibv_reg_mr_ex(pd, &region), EINVAL);
	region.access &= ~IBV_ACCESS_ON_DEMAND;
	expect_case("a region with none, or one of another context");
	region.dmah = NULL;
	EXPECT_NULL(ibv_reg_mr_ex(pd, &region), EINVAL);
	region.dmah = foreign;
	EXPECT_NULL(ibv_reg_mr_ex(pd, &region), ENOENT);
	foreign->context = ctx;
	EXPECT_REFUSED(ibv_dealloc_dmah(foreign), ENOENT);
	foreign->context = other;
	EXPECT_EQ(ibv_dealloc_dmah(foreign), 0);
	EXPECT_EQ(ibv_dealloc_dmah(dmah), 0);
	EXPECT_EQ(ibv_close_device(other), 0);
	expect_case("a hint out of range");
	attr.ph = 4;
	EXPECT_NULL(ibv_alloc_dmah(ctx, &attr), EINVAL);
	attr.ph = UINT8_MAX;
	EXPECT_NULL(ibv_alloc_dmah(ctx, &attr), EINVAL);
	attr = whole;
	attr.tph_mem_type = IBV_TPH_MEM_TYPE_PM + 1;
	EXPECT_NULL(ibv_alloc_dmah(ctx, &attr), EINVAL);
	attr.tph_mem_type = UINT8_MAX;
	EXPECT_NULL(ibv_alloc_dmah(ctx, &attr), EINVAL);
	attr = whole;
	attr.cpu_id++;
	EXPECT_NULL(ibv_alloc_dmah(ctx, &attr), EINVAL);
	attr.cpu_id = UINT32_MAX;
	EXPECT_NULL(ibv_alloc_dmah(ctx, &attr), EINVAL);
	expect_case("what the mask does not name is not looked at");
	attr = (struct ibv_dmah_init_attr){.cpu_id = UINT32_MAX, .ph = 9, .tph_mem_type = 9};
	dmah = ibv_alloc_dmah(ctx, &attr);
	EXPECT(dmah != NULL);
	if (dmah)
		EXPECT_EQ(ibv_dealloc_dmah(dmah), 0);
	attr = whole;
	for (int bit = 3; bit < 32; bit++) {
		expect_case("unknown mask bit %d", bit);
		attr.comp_mask = 1u << bit;
		EXPECT_NULL(ibv_alloc_dmah(ctx, &attr), EINVAL);
	}
}

static void limit_descriptors(rlim_t limit)
{
	struct rlimit wish;

	CHECK_ZERO(getrlimit(RLIMIT_NOFILE, &wish));
	wish.rlim_cur = limit;
	CHECK_ZERO(setrlimit(RLIMIT_NOFILE, &wish));
}

/* Without a number for the maker of dma-bufs, or for the dma-buf that it makes. */
static void no_descriptor(struct ibv_dm *dm, bool possible)
{
	struct rlimit before;
	int lowest = dup(STDIN_FILENO);

	CHECK(lowest >= 0 && !getrlimit(RLIMIT_NOFILE, &before));
	close(lowest);
	for (rlim_t room = 0; room <= possible; room++) {
		expect_case("a dma-buf with %d descriptors", (int)room);
		limit_descriptors((rlim_t)lowest + room);
		EXPECT_MINUS1(ibv_dm_export_dmabuf_fd(dm), EMFILE);
		limit_descriptors(before.rlim_cur);
	}
}

/*
 * Where the system lets this user make a dma-buf it shows the same bytes; elsewhere the answer says
 * that there is none.
 */
static void dma_bufs(void)
{
	struct ibv_alloc_dm_attr attr = {.length = 4096};
	struct ibv_dm *dm = ibv_alloc_dm(ctx, &attr);
	struct ibv_buf *buf;
	char *addr = ibv_alloc_buf(pd, LENGTH, &buf);
	uint32_t word = 0x600df00d;
	bool possible = access("/dev/udmabuf", R_OK | W_OK) == 0;
	int fd;

	CHECK(dm && addr);
	expect_case("device memory as a dma-buf");
	EXPECT_EQ(ibv_memcpy_to_dm(dm, 0, &word, sizeof(word)), 0);
	if (!possible) {
		EXPECT_MINUS1(ibv_dm_export_dmabuf_fd(dm), EOPNOTSUPP);
	} else {
		fd = ibv_dm_export_dmabuf_fd(dm);
		EXPECT(fd >= 0);
		uint32_t *map = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);

		if (EXPECT(map != MAP_FAILED)) {
			EXPECT_EQ(*map, word);
			munmap(map, 4096);
		}
		close(fd);
	}
	EXPECT_MINUS1(ibv_dm_export_dmabuf_fd(NULL), EINVAL);
	no_descriptor(dm, possible);
	expect_case("a buffer as a dma-buf");
	if (!possible) {
		EXPECT_MINUS1(ibv_export_buf_dmabuf_fd(buf), ENODATA);
	} else {
		fd = ibv_export_buf_dmabuf_fd(buf);
		EXPECT(fd >= 0);
		close(fd);
	}
	EXPECT_MINUS1(ibv_export_buf_dmabuf_fd(NULL), EINVAL);
	ibv_free_buf(buf);
	EXPECT_EQ(ibv_free_dm(dm), 0);
}

int main(int argc, char **argv)
{
	ep_main(argc, argv);
	ctx = device_open();
	pd = ibv_alloc_pd(ctx);
	other_pd = ibv_alloc_pd(ctx);
	CHECK(pd && other_pd);
	allocation();
	registration();
	freed_first();
	registration_ex();
	every_mask();
	handles();
	dma_bufs();
	EXPECT_EQ(ibv_dealloc_pd(pd), 0);
	EXPECT_EQ(ibv_dealloc_pd(other_pd), 0);
	EXPECT_EQ(ibv_close_device(ctx), 0);
	return expect_done();
}
