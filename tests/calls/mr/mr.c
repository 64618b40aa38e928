/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Registration and re-registration: flags, ranges, keys, the error codes of ibv_rereg_mr(3). */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "support/check.h"
#include "support/endpoint.h"

#define LENGTH 8192

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static char *buffer;

#define ALL_ACCESS                                                                   \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND)

/* Every combination of the five plain flags; remote change needs LOCAL_WRITE (ibv_reg_mr(3)). */
static void flags(void)
{
	for (int access = 0; access <= ALL_ACCESS; access++) {
		bool changes = access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC);
		struct ibv_mr *mr;

		expect_case("access %#x", (unsigned int)access);
		if (changes && !(access & IBV_ACCESS_LOCAL_WRITE)) {
			EXPECT_NULL(ibv_reg_mr(pd, buffer, LENGTH, access), EINVAL);
			continue;
		}
		mr = ibv_reg_mr(pd, buffer, LENGTH, access);
		if (!EXPECT_SAY(mr != NULL, "refused, errno %d", errno))
			continue;
		EXPECT(mr->context == ctx && mr->pd == pd);
		EXPECT(mr->addr == buffer && mr->length == LENGTH);
		EXPECT_EQ(mr->lkey, mr->rkey);
		EXPECT_EQ(ibv_dereg_mr(mr), 0);
	}
}

static void odd_flags(void)
{
	struct ibv_mr *mr;

	expect_case("relaxed ordering");
	mr = ibv_reg_mr(pd, buffer, LENGTH, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_RELAXED_ORDERING);
	EXPECT(mr != NULL);
	if (mr)
		EXPECT_EQ(ibv_dereg_mr(mr), 0);
	for (int bit = 20; bit < 30; bit++) {
		expect_case("optional bit %d", bit);
		mr = ibv_reg_mr(pd, buffer, LENGTH, IBV_ACCESS_LOCAL_WRITE | 1 << bit);
		EXPECT(mr != NULL);
		if (mr)
			EXPECT_EQ(ibv_dereg_mr(mr), 0);
	}
	for (int bit = 10; bit < 32; bit++) {
		int access = (int)(IBV_ACCESS_LOCAL_WRITE | 1u << bit);

		if (access & (int)IBV_ACCESS_OPTIONAL_RANGE)
			continue;
		expect_case("unknown mandatory bit %d", bit);
		EXPECT_NULL(ibv_reg_mr(pd, buffer, LENGTH, access), EINVAL);
		EXPECT_NULL(ibv_reg_mr_iova2(pd, buffer, LENGTH, 0, (unsigned int)access), EINVAL);
	}
}

static void ranges(void)
{
	char *hole = mmap(NULL, LENGTH, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *mr;

	CHECK(hole != MAP_FAILED);
	expect_case("wrap of 64 bits");
	EXPECT_NULL(ibv_reg_mr(pd, buffer, SIZE_MAX - 4096, 0), EINVAL);
	EXPECT_NULL(ibv_reg_mr(pd, (void *)(UINTPTR_MAX - 10), 4096, 0), EINVAL);
	EXPECT_NULL(ibv_reg_mr(pd, (void *)(UINTPTR_MAX - 10), 4096, IBV_ACCESS_ON_DEMAND), EINVAL);
	expect_case("the last byte of 64 bits is in range, and not mapped");
	EXPECT_NULL(ibv_reg_mr(pd, (void *)(UINTPTR_MAX - 4095), 4096, 0), EFAULT);

	expect_case("read-only mapping");
	mr = ibv_reg_mr(pd, hole, LENGTH, IBV_ACCESS_REMOTE_READ);
	EXPECT(mr != NULL);
	if (mr)
		EXPECT_EQ(ibv_dereg_mr(mr), 0);
	EXPECT_NULL(ibv_reg_mr(pd, hole, LENGTH, IBV_ACCESS_LOCAL_WRITE), EFAULT);

	expect_case("partly unmapped");
	CHECK(munmap(hole + 4096, 4096) == 0);
	EXPECT_NULL(ibv_reg_mr(pd, hole, LENGTH, 0), EFAULT);
	expect_case("unmapped");
	CHECK(munmap(hole, 4096) == 0);
	EXPECT_NULL(ibv_reg_mr(pd, hole, LENGTH, 0), EFAULT);
	EXPECT_NULL(ibv_reg_mr(pd, NULL, 4096, IBV_ACCESS_LOCAL_WRITE), EFAULT);

	expect_case("length 0");
	mr = ibv_reg_mr(pd, buffer, 0, IBV_ACCESS_LOCAL_WRITE);
	EXPECT(mr != NULL);
	if (mr)
		EXPECT_EQ(ibv_dereg_mr(mr), 0);
	expect_case("one byte, odd address");
	mr = ibv_reg_mr(pd, buffer + 13, 1, IBV_ACCESS_LOCAL_WRITE);
	EXPECT(mr != NULL);
	if (mr)
		EXPECT_EQ(ibv_dereg_mr(mr), 0);
}

/* Keys lie apart: a number that a program mistypes is no key. */
static void keys(void)
{
	enum { COUNT = 64 };
	struct ibv_mr *mr[COUNT];
	uint32_t freed;

	expect_case("keys");
	for (int i = 0; i < COUNT; i++) {
		mr[i] = ibv_reg_mr(pd, buffer, LENGTH, ALL_ACCESS);
		CHECK(mr[i]);
	}
	for (int i = 0; i < COUNT; i++)
		for (int j = 0; j < COUNT; j++) {
			uint32_t key = mr[i]->lkey;

			if (i != j)
				EXPECT(mr[j]->lkey != key);
			EXPECT(mr[j]->lkey != key + 1);
			EXPECT(mr[j]->lkey != (key + 10) * 5);
			EXPECT(mr[j]->lkey != key * 13 + 7);
			EXPECT(mr[j]->lkey != 0xdeadbeef);
		}
	freed = mr[0]->lkey;
	for (int i = 0; i < COUNT; i++)
		EXPECT_EQ(ibv_dereg_mr(mr[i]), 0);
	expect_case("a freed key does not come back soon");
	for (int i = 0; i < 200; i++) {
		struct ibv_mr *again = ibv_reg_mr(pd, buffer, LENGTH, ALL_ACCESS);

		CHECK(again);
		EXPECT(again->lkey != freed);
		EXPECT_EQ(ibv_dereg_mr(again), 0);
	}
}

static void iova(void)
{
	struct ibv_mr *mr;

	expect_case("ibv_reg_mr_iova");
	mr = ibv_reg_mr_iova(pd, buffer, LENGTH, 0x100000, ALL_ACCESS);
	EXPECT(mr != NULL);
	if (mr) {
		EXPECT(mr->addr == buffer);
		EXPECT_EQ(mr->length, LENGTH);
		EXPECT_EQ(ibv_dereg_mr(mr), 0);
	}
	expect_case("ibv_reg_mr_iova2, offset within the page differs");
	mr = ibv_reg_mr_iova2(pd, buffer, LENGTH, 0x100123,
			      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_RELAXED_ORDERING);
	EXPECT(mr != NULL);
	if (mr)
		EXPECT_EQ(ibv_dereg_mr(mr), 0);
	expect_case("iova wraps");
	EXPECT_NULL(ibv_reg_mr_iova(pd, buffer, LENGTH, UINT64_MAX - 100, 0), EINVAL);
	EXPECT_NULL(ibv_reg_mr_iova(pd, buffer, LENGTH, UINT64_MAX - LENGTH + 2, 0), EINVAL);
	expect_case("iova up to the end of 64 bits");
	mr = ibv_reg_mr_iova(pd, buffer, LENGTH, UINT64_MAX - LENGTH + 1, ALL_ACCESS);
	if (EXPECT(mr != NULL))
		EXPECT_EQ(ibv_dereg_mr(mr), 0);
	expect_case("iova wraps, but a zero-based region has none");
	mr = ibv_reg_mr_iova(pd, buffer, LENGTH, UINT64_MAX - 100, IBV_ACCESS_ZERO_BASED);
	if (EXPECT(mr != NULL))
		EXPECT_EQ(ibv_dereg_mr(mr), 0);
}

static void handles(void)
{
	struct ibv_mr *mr = ibv_reg_mr(pd, buffer, LENGTH, 0);
	uint32_t handle;

	expect_case("handle overwritten");
	CHECK(mr);
	handle = mr->handle;
	mr->handle = 0xdeadbeef;
	EXPECT_REFUSED(ibv_dereg_mr(mr), ENOENT);
	EXPECT_EQ(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0),
		  IBV_REREG_MR_ERR_INPUT);
	mr->handle = handle;
	expect_case("handle of the domain overwritten");
	handle = pd->handle;
	pd->handle = 0xdeadbeef;
	EXPECT_NULL(ibv_reg_mr(pd, buffer, LENGTH, 0), ENOENT);
	EXPECT_NULL(ibv_alloc_null_mr(pd), ENOENT);
	pd->handle = handle;
	EXPECT_EQ(ibv_dereg_mr(mr), 0);
}

static struct ibv_mr *fresh(void)
{
	struct ibv_mr *mr = ibv_reg_mr(pd, buffer, LENGTH, ALL_ACCESS & ~IBV_ACCESS_MW_BIND);

	CHECK(mr);
	return mr;
}

/*
 * What each code of ibv_rereg_mr(3) leaves behind: a region that is as it was, or one that can only
 * be deregistered.
 */
static void rereg_refused(const char *name, int flags_, struct ibv_pd *new_pd, void *addr,
			  size_t length, int access, int want)
{
	struct ibv_mr *mr = fresh();
	int again;

	expect_case("rereg: %s", name);
	errno = 0;
	EXPECT_EQ(ibv_rereg_mr(mr, flags_, new_pd, addr, length, access), want);
	EXPECT_EQ(errno, EINVAL);
	EXPECT(mr->pd == pd && mr->addr == buffer && mr->length == LENGTH);
	again = ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_LOCAL_WRITE);
	EXPECT_EQ(again, want == IBV_REREG_MR_ERR_INPUT ? 0 : IBV_REREG_MR_ERR_CMD);
	EXPECT_EQ(ibv_dereg_mr(mr), 0);
}

static void rereg_refusals(void)
{
	const int move = IBV_REREG_MR_CHANGE_TRANSLATION, rights = IBV_REREG_MR_CHANGE_ACCESS,
		  domain = IBV_REREG_MR_CHANGE_PD;
	struct ibv_context *other_ctx = device_open();
	struct ibv_pd *foreign = ibv_alloc_pd(other_ctx);
	char *reading = mmap(NULL, LENGTH, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const struct {
		const char *name;
		int flags;
		struct ibv_pd *pd;
		void *addr;
		size_t length;
		int access, want;
	} rows[] = {
		{"unknown flag", 1 << 3, NULL, NULL, 0, 0, IBV_REREG_MR_ERR_INPUT},
		{"an unknown flag among others", rights | 1 << 30, NULL, NULL, 0, 0,
		 IBV_REREG_MR_ERR_INPUT},
		{"every bit", -1, pd, buffer, LENGTH, 0, IBV_REREG_MR_ERR_INPUT},
		{"translation without address", move, NULL, NULL, LENGTH, 0,
		 IBV_REREG_MR_ERR_INPUT},
		{"translation of length 0", move, NULL, buffer, 0, 0, IBV_REREG_MR_ERR_INPUT},
		{"translation that wraps around", move, NULL, buffer, SIZE_MAX, 0,
		 IBV_REREG_MR_ERR_INPUT},
		{"access not announced", move, NULL, buffer, LENGTH, IBV_ACCESS_LOCAL_WRITE,
		 IBV_REREG_MR_ERR_INPUT},
		{"domain announced and missing", domain, NULL, NULL, 0, 0, IBV_REREG_MR_ERR_INPUT},
		{"no flag at all", 0, NULL, NULL, 0, 0, IBV_REREG_MR_ERR_CMD},
		{"bad access combination", rights, NULL, NULL, 0, IBV_ACCESS_REMOTE_WRITE,
		 IBV_REREG_MR_ERR_CMD},
		{"unknown access flag", rights, NULL, NULL, 0, 1 << 12, IBV_REREG_MR_ERR_CMD},
		{"translation to what is not mapped", move, NULL, (void *)16, 64, 0,
		 IBV_REREG_MR_ERR_CMD},
		{"translation to what cannot be written", move, NULL, reading, LENGTH, 0,
		 IBV_REREG_MR_ERR_CMD},
		{"domain of another context", domain, foreign, NULL, 0, 0, IBV_REREG_MR_ERR_CMD},
	};

	CHECK(foreign && reading != MAP_FAILED);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		rereg_refused(rows[i].name, rows[i].flags, rows[i].pd, rows[i].addr, rows[i].length,
			      rows[i].access, rows[i].want);
	expect_case("rereg: refusals hold no domain");
	EXPECT_EQ(ibv_dealloc_pd(foreign), 0);
	EXPECT_EQ(ibv_close_device(other_ctx), 0);
	munmap(reading, LENGTH);
}

static void rereg(void)
{
	struct ibv_pd *other = ibv_alloc_pd(ctx);
	struct ibv_mr *mr;

	CHECK(other);
	expect_case("rereg: protection domain");
	mr = fresh();
	EXPECT_EQ(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, other, NULL, 0, 0), 0);
	EXPECT(mr->pd == other);
	EXPECT_REFUSED(ibv_dealloc_pd(other), EBUSY);
	EXPECT_EQ(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, pd, NULL, 0, 0), 0);
	EXPECT(mr->pd == pd);
	EXPECT_EQ(ibv_dealloc_pd(other), 0);

	expect_case("rereg: translation");
	EXPECT_EQ(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, buffer + 4096, 1000, 0),
		  0);
	EXPECT(mr->addr == buffer + 4096);
	EXPECT_EQ(mr->length, 1000);
	expect_case("rereg: everything");
	EXPECT_EQ(ibv_rereg_mr(mr,
			       IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_PD |
				       IBV_REREG_MR_CHANGE_ACCESS,
			       pd, buffer, LENGTH, IBV_ACCESS_REMOTE_READ),
		  0);
	EXPECT(mr->addr == buffer);
	EXPECT_EQ(mr->length, LENGTH);
	EXPECT_EQ(ibv_dereg_mr(mr), 0);
}

int main(int argc, char **argv)
{
	ep_main(argc, argv);
	ctx = device_open();
	pd = ibv_alloc_pd(ctx);
	buffer = aligned_alloc(4096, LENGTH);
	CHECK(pd && buffer);
	memset(buffer, 0, LENGTH);
	flags();
	odd_flags();
	ranges();
	keys();
	iova();
	handles();
	rereg_refusals();
	rereg();
	EXPECT_EQ(ibv_dealloc_pd(pd), 0);
	EXPECT_EQ(ibv_close_device(ctx), 0);
	free(buffer);
	return expect_done();
}
