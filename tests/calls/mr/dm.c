/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Device memory, the calls (ibv_alloc_dm(3)): limits kept and given back, every check of the
 * copying functions, regions that are zero-based only, EBUSY while one lives.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "support/check.h"
#include "support/endpoint.h"

#define LENGTH 8192
#define SMALL  64

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static uint64_t max_dm_size;

static struct ibv_dm *alloc(size_t length, uint32_t log_align)
{
	struct ibv_alloc_dm_attr attr = {.length = length, .log_align_req = log_align};

	return ibv_alloc_dm(ctx, &attr);
}

static struct ibv_dm *need(size_t length)
{
	struct ibv_dm *dm = alloc(length, 0);

	CHECK(dm);
	return dm;
}

static void attributes(void)
{
	struct ibv_alloc_dm_attr attr = {.length = 64};
	struct ibv_dm *dm;

	expect_case("length 0");
	EXPECT_NULL(alloc(0, 0), EINVAL);
	expect_case("more than max_dm_size");
	EXPECT_NULL(alloc(max_dm_size + 1, 0), EINVAL);
	EXPECT_NULL(alloc(SIZE_MAX, 0), EINVAL);
	for (uint32_t bit = 0; bit < 32; bit++) {
		expect_case("comp_mask bit %u", bit);
		attr.comp_mask = 1u << bit;
		EXPECT_NULL(ibv_alloc_dm(ctx, &attr), EINVAL);
	}
	for (uint32_t align = 0; align <= 12; align++) {
		expect_case("alignment 2^%u", align);
		dm = alloc(100, align);
		if (EXPECT_SAY(dm != NULL, "refused, errno %d", errno))
			EXPECT_EQ(ibv_free_dm(dm), 0);
	}
	expect_case("alignment beyond the bound");
	EXPECT_NULL(alloc(100, 13), EINVAL);
	EXPECT_NULL(alloc(100, UINT32_MAX), EINVAL);
	expect_case("what the object says");
	dm = need(64);
	EXPECT(dm->context == ctx);
	EXPECT(dm->memcpy_to_dm && dm->memcpy_from_dm);
	EXPECT(dm->comp_mask & IBV_DM_MASK_HANDLE);
	EXPECT_EQ(ibv_free_dm(dm), 0);
}

/* All of it can be had, in one piece or many; then no more; and again after it was given back. */
static void exhaustion(void)
{
	enum { PIECES = 8 };
	struct ibv_dm *piece[PIECES];
	struct ibv_dm *all;

	for (int round = 0; round < 2; round++) {
		expect_case("everything in one piece, round %d", round);
		all = need(max_dm_size);
		EXPECT_NULL(alloc(1, 0), ENOMEM);
		EXPECT_EQ(ibv_free_dm(all), 0);
		expect_case("everything in pieces, round %d", round);
		for (int i = 0; i < PIECES; i++)
			piece[i] = need(max_dm_size / PIECES);
		EXPECT_NULL(alloc(4, 0), ENOMEM);
		expect_case("a piece from the middle comes back, round %d", round);
		EXPECT_EQ(ibv_free_dm(piece[3]), 0);
		EXPECT_NULL(alloc(max_dm_size / PIECES + 4, 0), ENOMEM);
		piece[3] = need(max_dm_size / PIECES);
		for (int i = 0; i < PIECES; i++)
			EXPECT_EQ(ibv_free_dm(piece[i]), 0);
	}
}

/* KiB of the file that holds device memory, from its descriptor. */
static long memory_kib(void)
{
	DIR *dir = opendir("/proc/self/fd");
	const struct dirent *entry;
	char path[300], to[64];
	struct stat st;
	long kib = -1;

	CHECK(dir);
	while (kib < 0 && (entry = readdir(dir))) {
		snprintf(path, sizeof(path), "/proc/self/fd/%s", entry->d_name);
		ssize_t n = readlink(path, to, sizeof(to) - 1);

		to[n > 0 ? n : 0] = 0;
		if (strstr(to, "verbatim-memory") && !stat(path, &st))
			kib = (long)(st.st_blocks / 2);
	}
	closedir(dir);
	CHECK(kib >= 0);
	return kib;
}

static void mark(struct ibv_dm *dm, uint32_t value)
{
	uint32_t words[SMALL / 4];

	for (int i = 0; i < SMALL / 4; i++)
		words[i] = value;
	CHECK(!ibv_memcpy_to_dm(dm, 0, words, sizeof(words)));
}

static bool is_marked(struct ibv_dm *dm, uint32_t value)
{
	uint32_t words[SMALL / 4];

	CHECK(!ibv_memcpy_from_dm(words, dm, 0, sizeof(words)));
	for (int i = 0; i < SMALL / 4; i++) {
		if (words[i] != value)
			return false;
	}
	return true;
}

/* ibv_alloc_dm(3): small pieces share memory pages, and none shares its bytes with another. */
static void small_pieces(void)
{
	enum { MOST = 20000, OTHER = 1 << 20 };
	static struct ibv_dm *piece[MOST];
	long before = memory_kib(), most = (long)MOST * SMALL / 1024 + 64;

	expect_case("more small pieces than there are pages");
	CHECK(max_dm_size / 4096 < MOST);
	for (uint32_t i = 0; i < MOST; i++) {
		piece[i] = need(SMALL);
		mark(piece[i], i + 1);
	}
	expect_case("they take what they say");
	EXPECT_SAY(memory_kib() - before <= most, "%ld KiB, not %ld", memory_kib() - before, most);
	expect_case("every other one is given back, and had again, as zeroes");
	for (int i = 0; i < MOST; i += 2)
		CHECK(!ibv_free_dm(piece[i]));
	for (uint32_t i = 0; i < MOST; i += 2) {
		piece[i] = need(SMALL);
		CHECK(is_marked(piece[i], 0));
		mark(piece[i], OTHER + i);
	}
	expect_case("each has its own bytes");
	for (uint32_t i = 0; i < MOST; i++)
		CHECK(is_marked(piece[i], i % 2 ? i + 1 : OTHER + i));
	for (int i = 0; i < MOST; i++)
		CHECK(!ibv_free_dm(piece[i]));
	expect_case("the memory goes back");
	EXPECT_SAY(memory_kib() - before <= 4, "%ld KiB stay", memory_kib() - before);
}

/*
 * What a small piece takes of max_dm_size: 64 bytes and multiples, or of its alignment; above a
 * quarter of a page, whole pages.
 */
static void small_charges(void)
{
	static const struct {
		size_t length;
		uint32_t log_align;
		int pieces; /* in a page */
	} rows[] = {{1, 0, 64},   {64, 6, 64},  {65, 0, 32}, {64, 10, 4},
		    {1024, 0, 4}, {1025, 0, 1}, {64, 11, 1}, {1, 12, 1}};
	struct ibv_dm *piece[64], *rest = need(max_dm_size - 4096);

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		expect_case("%zu bytes at 2^%u", rows[i].length, rows[i].log_align);
		for (int n = 0; n < rows[i].pieces; n++) {
			piece[n] = alloc(rows[i].length, rows[i].log_align);
			CHECK(piece[n]);
		}
		EXPECT_NULL(alloc(1, 0), ENOMEM);
		for (int n = 0; n < rows[i].pieces; n++)
			EXPECT_EQ(ibv_free_dm(piece[n]), 0);
	}
	EXPECT_EQ(ibv_free_dm(rest), 0);
}

/* A dma-buf has whole pages, where others' bytes would lie. */
static void small_export(void)
{
	struct ibv_dm *piece[64];

	expect_case("a small piece is not exported");
	for (int i = 0; i < 64; i++) {
		piece[i] = need(SMALL);
		EXPECT_MINUS1(ibv_dm_export_dmabuf_fd(piece[i]), EOPNOTSUPP);
	}
	for (int i = 0; i < 64; i++)
		EXPECT_EQ(ibv_free_dm(piece[i]), 0);
}

/* The limit is the device's: two contexts share it. */
static void limit_per_device(void)
{
	struct ibv_context *other = device_open();
	struct ibv_alloc_dm_attr attr = {.length = max_dm_size / 2 + 4096};
	struct ibv_dm *dm = need(max_dm_size / 2);

	expect_case("two contexts of one device");
	EXPECT_NULL(ibv_alloc_dm(other, &attr), ENOMEM);
	EXPECT_EQ(ibv_free_dm(dm), 0);
	EXPECT_EQ(ibv_close_device(other), 0);
}

static void copies(void)
{
	struct ibv_dm *dm = need(100);
	char in[104], out[104];

	memset(in, 0x5a, sizeof(in));
	memset(out, 1, sizeof(out));
	expect_case("it begins as zeroes");
	EXPECT_EQ(ibv_memcpy_from_dm(out, dm, 0, 100), 0);
	for (int i = 0; i < 100; i++)
		EXPECT_EQ(out[i], 0);
	expect_case("written and read back");
	EXPECT_EQ(ibv_memcpy_to_dm(dm, 8, in, 64), 0);
	EXPECT_EQ(ibv_memcpy_from_dm(out, dm, 4, 72), 0);
	EXPECT(out[3] == 0 && out[4] == 0x5a && out[67] == 0x5a && out[68] == 0);
	expect_case("the last word, and nothing");
	EXPECT_EQ(ibv_memcpy_to_dm(dm, 96, in, 4), 0);
	EXPECT_EQ(ibv_memcpy_to_dm(dm, 100, in, 0), 0);
	EXPECT_EQ(ibv_memcpy_from_dm(out, dm, 100, 0), 0);
	EXPECT_EQ(ibv_memcpy_to_dm(dm, 0, NULL, 0), 0);
	for (int odd = 1; odd < 4; odd++) {
		expect_case("not a multiple of 4: %d", odd);
		EXPECT_REFUSED(ibv_memcpy_to_dm(dm, (uint64_t)odd, in, 4), EINVAL);
		EXPECT_REFUSED(ibv_memcpy_from_dm(out, dm, (uint64_t)odd, 4), EINVAL);
		EXPECT_REFUSED(ibv_memcpy_to_dm(dm, 0, in, (size_t)odd), EINVAL);
		EXPECT_REFUSED(ibv_memcpy_from_dm(out, dm, 0, (size_t)odd), EINVAL);
	}
	expect_case("out of range");
	EXPECT_REFUSED(ibv_memcpy_to_dm(dm, 0, in, 104), EFAULT);
	EXPECT_REFUSED(ibv_memcpy_from_dm(out, dm, 0, 104), EFAULT);
	EXPECT_REFUSED(ibv_memcpy_to_dm(dm, 100, in, 4), EFAULT);
	EXPECT_REFUSED(ibv_memcpy_to_dm(dm, 104, in, 0), EFAULT);
	EXPECT_REFUSED(ibv_memcpy_to_dm(dm, UINT64_MAX - 3, in, 8), EFAULT);
	EXPECT_REFUSED(ibv_memcpy_from_dm(out, dm, 4, SIZE_MAX - 3), EFAULT);
	expect_case("no host memory");
	EXPECT_REFUSED(ibv_memcpy_to_dm(dm, 0, NULL, 4), EINVAL);
	EXPECT_REFUSED(ibv_memcpy_from_dm(NULL, dm, 0, 4), EINVAL);
	EXPECT_EQ(ibv_free_dm(dm), 0);
}

/* What one owner left is not seen by the next. */
static void fresh(void)
{
	char *bytes = malloc(LENGTH);
	struct ibv_dm *dm = need(LENGTH);
	int dirty = 0;

	CHECK(bytes);
	expect_case("freed memory comes back as zeroes");
	memset(bytes, 0x77, LENGTH);
	EXPECT_EQ(ibv_memcpy_to_dm(dm, 0, bytes, LENGTH), 0);
	EXPECT_EQ(ibv_free_dm(dm), 0);
	for (int i = 0; i < 4; i++) {
		dm = need(LENGTH);
		EXPECT_EQ(ibv_memcpy_from_dm(bytes, dm, 0, LENGTH), 0);
		for (int at = 0; at < LENGTH; at++)
			dirty += bytes[at] != 0;
		EXPECT_EQ(ibv_free_dm(dm), 0);
	}
	EXPECT_EQ(dirty, 0);
	free(bytes);
}

static void region_access(void)
{
	const unsigned int plain = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				   IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
	const unsigned int changes = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
	struct ibv_dm *dm = need(LENGTH);

	for (unsigned int access = 0; access <= plain; access++) {
		struct ibv_mr *mr;

		expect_case("access %#x", access);
		EXPECT_NULL(ibv_reg_dm_mr(pd, dm, 0, LENGTH, access), EINVAL);
		if ((access & changes) && !(access & IBV_ACCESS_LOCAL_WRITE)) {
			EXPECT_NULL(ibv_reg_dm_mr(pd, dm, 0, LENGTH,
						  access | IBV_ACCESS_ZERO_BASED),
				    EINVAL);
			continue;
		}
		mr = ibv_reg_dm_mr(pd, dm, 0, LENGTH, access | IBV_ACCESS_ZERO_BASED);
		EXPECT_SAY(mr != NULL, "refused, errno %d", errno);
		if (!mr)
			continue;
		EXPECT(mr->context == ctx && mr->pd == pd && !mr->addr);
		EXPECT_EQ(mr->length, LENGTH);
		EXPECT_EQ(ibv_dereg_mr(mr), 0);
	}
	for (unsigned int bit = 10; bit < 20; bit++) {
		expect_case("unknown access bit %u", bit);
		EXPECT_NULL(ibv_reg_dm_mr(pd, dm, 0, LENGTH, IBV_ACCESS_ZERO_BASED | 1u << bit),
			    EINVAL);
	}
	expect_case("flags for the program's own memory");
	EXPECT_NULL(ibv_reg_dm_mr(pd, dm, 0, LENGTH, IBV_ACCESS_ZERO_BASED | IBV_ACCESS_ON_DEMAND),
		    EINVAL);
	EXPECT_NULL(ibv_reg_dm_mr(pd, dm, 0, LENGTH, IBV_ACCESS_ZERO_BASED | IBV_ACCESS_HUGETLB),
		    EINVAL);
	EXPECT_EQ(ibv_free_dm(dm), 0);
}

static void region_range(void)
{
	static const struct {
		uint64_t offset;
		size_t length;
		bool good;
	} rows[] = {
		{0, LENGTH, true},    {4, LENGTH - 4, true},  {LENGTH - 1, 1, true},
		{LENGTH, 0, true},    {0, LENGTH + 1, false}, {4, LENGTH, false},
		{LENGTH, 1, false},   {LENGTH + 1, 0, false}, {UINT64_MAX, 2, false},
		{2, SIZE_MAX, false},
	};
	const unsigned int access = IBV_ACCESS_ZERO_BASED | IBV_ACCESS_LOCAL_WRITE;
	struct ibv_dm *dm = need(LENGTH);

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		expect_case("range %llu+%zu", (unsigned long long)rows[i].offset, rows[i].length);
		if (!rows[i].good) {
			EXPECT_NULL(ibv_reg_dm_mr(pd, dm, rows[i].offset, rows[i].length, access),
				    EINVAL);
			continue;
		}
		struct ibv_mr *mr = ibv_reg_dm_mr(pd, dm, rows[i].offset, rows[i].length, access);

		if (EXPECT_SAY(mr != NULL, "refused, errno %d", errno))
			EXPECT_EQ(ibv_dereg_mr(mr), 0);
	}
	EXPECT_EQ(ibv_free_dm(dm), 0);
}

static void busy(void)
{
	const unsigned int access = IBV_ACCESS_ZERO_BASED | IBV_ACCESS_LOCAL_WRITE;
	struct ibv_dm *dm = need(LENGTH);
	struct ibv_mr *first = ibv_reg_dm_mr(pd, dm, 0, LENGTH, access);
	struct ibv_mr *second = ibv_reg_dm_mr(pd, dm, 4096, 8, access);
	uint32_t word = 0x12345678;

	CHECK(first && second);
	expect_case("free with regions alive");
	EXPECT_REFUSED(ibv_free_dm(dm), EBUSY);
	EXPECT_EQ(ibv_dereg_mr(first), 0);
	EXPECT_REFUSED(ibv_free_dm(dm), EBUSY);
	expect_case("a refused free changes nothing");
	EXPECT_EQ(ibv_memcpy_to_dm(dm, 0, &word, sizeof(word)), 0);
	expect_case("a region of device memory cannot be re-registered");
	EXPECT_EQ(ibv_rereg_mr(second, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
			       IBV_ACCESS_LOCAL_WRITE),
		  IBV_REREG_MR_ERR_INPUT);
	EXPECT_EQ(ibv_dereg_mr(second), 0);
	expect_case("handle overwritten");
	dm->handle += 1;
	EXPECT_REFUSED(ibv_free_dm(dm), ENOENT);
	EXPECT_NULL(ibv_reg_dm_mr(pd, dm, 0, 8, access), ENOENT);
	EXPECT_MINUS1(ibv_dm_export_dmabuf_fd(dm), ENOENT);
	dm->handle -= 1;
	expect_case("handle of the domain overwritten");
	pd->handle += 1;
	EXPECT_NULL(ibv_reg_dm_mr(pd, dm, 0, 8, access), ENOENT);
	pd->handle -= 1;
	expect_case("objects of different contexts do not mix");
	struct ibv_context *other = device_open();
	struct ibv_pd *foreign = ibv_alloc_pd(other);

	CHECK(foreign);
	EXPECT_NULL(ibv_reg_dm_mr(foreign, dm, 0, 8, access), ENOENT);
	dm->context = other;
	EXPECT_NULL(ibv_reg_dm_mr(foreign, dm, 0, 8, access), ENOENT);
	EXPECT_NULL(ibv_reg_dm_mr(pd, dm, 0, 8, access), ENOENT);
	EXPECT_REFUSED(ibv_free_dm(dm), ENOENT);
	dm->context = ctx;
	EXPECT_EQ(ibv_dealloc_pd(foreign), 0);
	EXPECT_EQ(ibv_close_device(other), 0);
	expect_case("refusals left no region behind");
	EXPECT_EQ(ibv_free_dm(dm), 0);
}

int main(int argc, char **argv)
{
	struct ibv_device_attr_ex attr = {0};

	ep_main(argc, argv);
	ctx = device_open();
	pd = ibv_alloc_pd(ctx);
	CHECK(pd);
	CHECK(ibv_query_device_ex(ctx, NULL, &attr) == 0);
	max_dm_size = attr.max_dm_size;
	expect_case("max_dm_size");
	EXPECT(max_dm_size >= 65536);
	attributes();
	exhaustion();
	small_pieces();
	small_charges();
	small_export();
	limit_per_device();
	copies();
	fresh();
	region_access();
	region_range();
	busy();
	EXPECT_EQ(ibv_dealloc_pd(pd), 0);
	EXPECT_EQ(ibv_close_device(ctx), 0);
	return expect_done();
}
