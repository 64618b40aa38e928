/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ibv_advise_mr(3): each advice, and each error of the page. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "support/check.h"
#include "support/endpoint.h"

#define PAGE     4096u
#define PAGES    8u
#define LOCAL    IBV_ACCESS_LOCAL_WRITE
#define PAGED    (LOCAL | IBV_ACCESS_ON_DEMAND)

#define FETCH    IBV_ADVISE_MR_ADVICE_PREFETCH
#define WRITE    IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE
#define NO_FAULT IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT
#define FLUSH    IBV_ADVISE_MR_FLAG_FLUSH

static struct endpoint ep;
static uint8_t *memory;

static int advise(const struct ibv_mr *mr, enum ibv_advise_mr_advice advice, uint32_t flags,
		  uint64_t offset, uint32_t length)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)memory + offset, .length = length, .lkey = mr->lkey};

	return ibv_advise_mr(ep.pd, advice, flags, &sge, 1);
}

static unsigned int resident(void)
{
	unsigned char map[PAGES];
	unsigned int n = 0;

	CHECK(mincore(memory, PAGES * PAGE, map) == 0);
	for (unsigned int i = 0; i < PAGES; i++)
		n += map[i] & 1;
	return n;
}

/* With FLUSH the pages are there when the call returns. */
static void brings_pages(void)
{
	struct ibv_mr *mr = ibv_reg_mr(ep.pd, memory, PAGES * PAGE, PAGED);

	CHECK(mr);
	expect_case("PREFETCH_WRITE with FLUSH");
	CHECK(madvise(memory, PAGES * PAGE, MADV_DONTNEED) == 0);
	EXPECT_EQ(resident(), 0);
	EXPECT_EQ(advise(mr, WRITE, FLUSH, PAGE, 3 * PAGE), 0);
	EXPECT_EQ(resident(), 3);
	expect_case("PREFETCH with FLUSH");
	EXPECT_EQ(advise(mr, FETCH, FLUSH, 0, PAGES * PAGE), 0);
	expect_case("part of a page");
	EXPECT_EQ(advise(mr, WRITE, FLUSH, 7 * PAGE + 100, 10), 0);
	expect_case("no FLUSH, no fault, nothing");
	EXPECT_EQ(advise(mr, FETCH, 0, 0, PAGES * PAGE), 0);
	EXPECT_EQ(advise(mr, WRITE, 0, 0, PAGES * PAGE), 0);
	EXPECT_EQ(advise(mr, NO_FAULT, FLUSH, 0, PAGES * PAGE), 0);
	EXPECT_EQ(advise(mr, NO_FAULT, 0, 0, 0), 0);
	EXPECT_EQ(ibv_dereg_mr(mr), 0);
}

static void refusals(void)
{
	struct ibv_mr *mr = ibv_reg_mr(ep.pd, memory, PAGES * PAGE, PAGED);
	struct ibv_mr *fixed = ibv_reg_mr(ep.pd, memory, PAGES * PAGE, LOCAL);
	struct ibv_mr *reading = ibv_reg_mr(ep.pd, memory, PAGES * PAGE, IBV_ACCESS_ON_DEMAND);
	struct ibv_mr *foreign = ibv_reg_mr(ep.other_pd, memory, PAGES * PAGE, PAGED);
	struct ibv_mr *null = ibv_alloc_null_mr(ep.pd);
	struct ibv_mr wrong;
	struct ibv_sge sge, sges[2];

	CHECK(mr && fixed && reading && foreign && null);
	expect_case("outside the region");
	EXPECT_REFUSED(advise(mr, FETCH, FLUSH, 0, PAGES * PAGE + 1), EFAULT);
	EXPECT_REFUSED(advise(mr, FETCH, 0, PAGES * PAGE, 1), EFAULT);
	expect_case("no such key");
	wrong = *mr;
	wrong.lkey++;
	EXPECT_REFUSED(advise(&wrong, FETCH, FLUSH, 0, PAGE), EFAULT);
	expect_case("not on demand");
	EXPECT_REFUSED(advise(fixed, FETCH, FLUSH, 0, PAGE), EINVAL);
	EXPECT_REFUSED(advise(null, FETCH, FLUSH, 0, PAGE), EINVAL);
	expect_case("not to be written");
	EXPECT_REFUSED(advise(reading, WRITE, FLUSH, 0, PAGE), EPERM);
	EXPECT_EQ(advise(reading, FETCH, FLUSH, 0, PAGE), 0);
	expect_case("another domain");
	EXPECT_REFUSED(advise(foreign, FETCH, FLUSH, 0, PAGE), EPERM);
	for (int bit = 1; bit < 32; bit++) {
		expect_case("unknown flag, bit %d", bit);
		EXPECT_REFUSED(advise(mr, FETCH, FLUSH | 1u << bit, 0, PAGE), EINVAL);
	}
	expect_case("unknown advice");
	EXPECT_REFUSED(advise(mr, (enum ibv_advise_mr_advice)3, FLUSH, 0, PAGE), EOPNOTSUPP);
	EXPECT_REFUSED(advise(mr, (enum ibv_advise_mr_advice) - 1, FLUSH, 0, PAGE), EOPNOTSUPP);
	expect_case("no list");
	sge = (struct ibv_sge){0};
	EXPECT_REFUSED(ibv_advise_mr(ep.pd, FETCH, FLUSH, &sge, 0), EINVAL);
	EXPECT_REFUSED(ibv_advise_mr(ep.pd, FETCH, FLUSH, NULL, 1), EINVAL);
	expect_case("key 0");
	EXPECT_REFUSED(ibv_advise_mr(ep.pd, FETCH, FLUSH, &sge, 1), EFAULT);
	expect_case("no such domain");
	ep.pd->handle += 100;
	EXPECT_REFUSED(advise(mr, FETCH, FLUSH, 0, PAGE), EINVAL);
	ep.pd->handle -= 100;
	expect_case("the second range is wrong: the first is not brought in");
	sges[0] = (struct ibv_sge){(uintptr_t)memory, PAGE, mr->lkey};
	sges[1] = (struct ibv_sge){(uintptr_t)memory, PAGES * PAGE + 1, mr->lkey};
	CHECK(madvise(memory, PAGES * PAGE, MADV_DONTNEED) == 0);
	EXPECT_REFUSED(ibv_advise_mr(ep.pd, WRITE, FLUSH, sges, 2), EFAULT);
	EXPECT_EQ(resident(), 0);
	expect_case("not mapped");
	CHECK(munmap(memory + 2 * PAGE, PAGE) == 0);
	EXPECT_REFUSED(advise(mr, FETCH, FLUSH, 0, PAGES * PAGE), EFAULT);
	EXPECT_EQ(advise(mr, FETCH, FLUSH, 0, 2 * PAGE), 0);
	EXPECT_EQ(ibv_dereg_mr(mr), 0);
	EXPECT_EQ(ibv_dereg_mr(fixed), 0);
	EXPECT_EQ(ibv_dereg_mr(reading), 0);
	EXPECT_EQ(ibv_dereg_mr(foreign), 0);
	EXPECT_EQ(ibv_dereg_mr(null), 0);
}

/* The key of a bound window names no region. */
static void window(void)
{
	struct ep_config config = ep_defaults(IBV_QPT_RC);
	struct ibv_mw_bind bind = {.wr_id = 1, .send_flags = IBV_SEND_SIGNALED};
	struct ibv_sge sge = {.length = PAGE};
	struct endpoint near, far;
	struct ibv_mw *mw;
	struct ibv_wc wc;

	expect_case("the key of a window");
	ep_pair(&near, &far, &config, &config, EP_HERE);
	mw = ibv_alloc_mw(near.pd, IBV_MW_TYPE_1);
	bind.bind_info.mr = ibv_reg_mr(near.pd, near.buffer, PAGE, PAGED | IBV_ACCESS_MW_BIND);
	CHECK(mw && bind.bind_info.mr);
	bind.bind_info.addr = (uintptr_t)near.buffer;
	bind.bind_info.length = PAGE;
	bind.bind_info.mw_access_flags = IBV_ACCESS_REMOTE_READ;
	CHECK(ibv_bind_mw(near.qp, mw, &bind) == 0);
	EXPECT_STATUS(ep_poll_one(&near, EP_SEND_CQ, &wc), IBV_WC_SUCCESS);
	sge.addr = (uintptr_t)near.buffer;
	sge.lkey = mw->rkey;
	EXPECT_REFUSED(ibv_advise_mr(near.pd, FETCH, FLUSH, &sge, 1), EINVAL);
	sge.lkey = bind.bind_info.mr->lkey;
	EXPECT_EQ(ibv_advise_mr(near.pd, FETCH, FLUSH, &sge, 1), 0);
	EXPECT_EQ(ibv_dealloc_mw(mw), 0);
	EXPECT_EQ(ibv_dereg_mr(bind.bind_info.mr), 0);
	ep_pair_close(&near, &far);
}

int main(int argc, char **argv)
{
	struct ep_config config = ep_defaults(IBV_QPT_RC);

	ep_main(argc, argv);
	ep_open(&ep, &config, EP_HERE);
	CHECK(sysconf(_SC_PAGESIZE) == PAGE);
	memory = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		      0);
	CHECK(memory != MAP_FAILED);
	brings_pages();
	refusals();
	window();
	ep_close(&ep);
	return expect_done();
}
