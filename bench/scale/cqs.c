/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * CQs without queue pairs, all of them on one completion channel; and completion channels, of which
 * each is a descriptor of the program.
 */
#include <stdlib.h>
#include <sys/resource.h>

#include "scale.h"
#include "support/check.h"

static void cqs(const struct resources *r, uint32_t count)
{
	struct ibv_comp_channel *channel = ibv_create_comp_channel(r->context);
	struct ibv_cq **cq = calloc(count, sizeof(struct ibv_cq *));
	struct ibv_wc wc;

	CHECK(channel && cq);
	for (uint32_t i = 0; i < count; i++) /* the table is part of no figure */
		__atomic_store_n(&cq[i], (struct ibv_cq *)(void *)cq, __ATOMIC_RELAXED);
	uint64_t memory = memory_bytes(), begin = now_ns();

	for (uint32_t i = 0; i < count; i++) {
		cq[i] = ibv_create_cq(r->context, 1, NULL, channel, 0);
		CHECK_SAY(cq[i], "CQ %u: errno %d", i, errno);
	}
	figure("create_us", us_each(begin, now_ns(), count));
	figure("bytes", (double)(memory_bytes() - memory) / count);
	begin = now_ns();
	for (uint32_t i = 0; i < count; i++)
		CHECK_ZERO(ibv_req_notify_cq(cq[i], 0));
	figure("arm_us", us_each(begin, now_ns(), count));
	begin = now_ns();
	for (uint32_t i = 0; i < count; i++)
		CHECK_EQ(ibv_poll_cq(cq[i], 1, &wc), 0);
	figure("poll_us", us_each(begin, now_ns(), count));
	begin = now_ns();
	for (uint32_t i = 0; i < count; i++)
		CHECK_ZERO(ibv_destroy_cq(cq[i]));
	figure("destroy_us", us_each(begin, now_ns(), count));
	CHECK_ZERO(ibv_destroy_comp_channel(channel));
	free(cq);
}

/* As many as the limit of descriptors lets there be, at most `count`. */
static void channels(const struct resources *r, uint32_t count)
{
	struct rlimit limit;
	uint64_t begin;

	CHECK_ZERO(getrlimit(RLIMIT_NOFILE, &limit));
	if (limit.rlim_cur < count + 100)
		count = (uint32_t)limit.rlim_cur - 100;
	struct ibv_comp_channel **channel = calloc(count, sizeof(struct ibv_comp_channel *));

	CHECK(channel);
	begin = now_ns();
	for (uint32_t i = 0; i < count; i++) {
		channel[i] = ibv_create_comp_channel(r->context);
		CHECK_SAY(channel[i], "channel %u: errno %d", i, errno);
	}
	figure("create_channel_us", us_each(begin, now_ns(), count));
	begin = now_ns();
	for (uint32_t i = 0; i < count; i++)
		CHECK_ZERO(ibv_destroy_comp_channel(channel[i]));
	figure("destroy_channel_us", us_each(begin, now_ns(), count));
	free(channel);
}

int measure_cqs(int argc, char **argv)
{
	uint32_t count = (uint32_t)strtoul(argv[0], NULL, 0);
	struct resources r;

	(void)argc;
	resources_open(&r, 0, false);
	figures_begin("cqs", count);
	cqs(&r, count);
	channels(&r, count);
	figures_end();
	resources_close(&r);
	return 0;
}
