/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Regions: registered, looked up by a SEND's local key and by the remote keys of WRITE and READ,
 * each message with a region drawn at random, and deregistered. Beside them stand so many queue
 * pairs with a CQ each: a key that ends is one that no engine uses any more.
 */
#include <stdlib.h>
#include <sys/mman.h>

#include "scale.h"
#include "support/check.h"
#include "support/random.h"

enum { PIECE = 64, LOOKS = 100000, AREA = 64 << 20 };

struct regions {
	struct resources r;
	unsigned char *area;
	struct ibv_mr **mr;
	uint32_t count;
	struct endpoint a, b;
	uint64_t seed;
};

static void idle_engines(struct regions *g, uint32_t engines)
{
	struct ep_config config = small_config();

	for (uint32_t i = 0; i < engines; i++) {
		config.send_cq = config.recv_cq = ibv_create_cq(g->r.context, 2, NULL, NULL, 0);
		CHECK(config.send_cq);
		ep_create_qp(&g->r, &config);
	}
}

static void register_all(struct regions *g)
{
	uint64_t memory = memory_bytes(), begin = now_ns();

	for (uint32_t i = 0; i < g->count; i++) {
		g->mr[i] =
			ibv_reg_mr(g->r.pd, g->area + (size_t)i * PIECE % AREA, PIECE, EP_ACCESS);
		CHECK_SAY(g->mr[i], "region %u: errno %d", i, errno);
	}
	figure("register_us", us_each(begin, now_ns(), g->count));
	figure("bytes", (double)(memory_bytes() - memory) / g->count);
}

static void finish(struct regions *g, uint32_t completions)
{
	struct ibv_wc wc;

	for (uint32_t got = 0; got < completions;) {
		int n = ibv_poll_cq(g->r.cq, 1, &wc);

		CHECK(n >= 0);
		if (n)
			CHECK_EQ(wc.status, IBV_WC_SUCCESS);
		got += (uint32_t)n;
	}
}

static struct ibv_mr *draw(struct regions *g)
{
	return g->mr[random_next(&g->seed) % g->count];
}

static double looks(struct regions *g, enum ibv_wr_opcode opcode)
{
	uint64_t begin = now_ns();

	for (uint32_t n = 0; n < LOOKS; n++) {
		struct ibv_mr *local = draw(g), *remote = draw(g);
		struct ibv_sge sge = {(uintptr_t)local->addr, 8, local->lkey};
		struct ibv_send_wr wr = {.sg_list = &sge,
					 .num_sge = 1,
					 .opcode = opcode,
					 .send_flags = IBV_SEND_SIGNALED},
				   *bad;

		ep_target(&wr, (uintptr_t)remote->addr, remote->rkey);
		if (opcode == IBV_WR_SEND)
			CHECK_ZERO(ep_recv(&g->b, 0, 0, 64));
		CHECK_ZERO(ibv_post_send(g->a.qp, &wr, &bad));
		finish(g, opcode == IBV_WR_SEND ? 2 : 1);
	}
	return us_each(begin, now_ns(), LOOKS);
}

static void deregister_all(struct regions *g)
{
	uint64_t begin = now_ns();

	for (uint32_t i = 0; i < g->count; i++)
		CHECK_ZERO(ibv_dereg_mr(g->mr[i]));
	figure("deregister_us", us_each(begin, now_ns(), g->count));
}

/* Freed keys are given out again. */
static void again(struct regions *g)
{
	uint64_t begin = now_ns();

	for (uint32_t i = 0; i < g->count; i++) {
		g->mr[i] = ibv_reg_mr(g->r.pd, g->area, PIECE, EP_ACCESS);
		CHECK(g->mr[i]);
		CHECK_ZERO(ibv_dereg_mr(g->mr[i]));
	}
	figure("register_and_deregister_us", us_each(begin, now_ns(), g->count));
}

int measure_mrs(int argc, char **argv)
{
	struct regions g = {.count = (uint32_t)strtoul(argv[0], NULL, 0), .seed = 20261};
	uint32_t engines = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 0) : 0;

	resources_open(&g.r, 64, false);
	g.area = mmap(NULL, AREA, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	g.mr = calloc(g.count, sizeof(struct ibv_mr *));
	CHECK(g.area != MAP_FAILED && g.mr);
	ep_open_on(&g.a, &g.r, NULL, NULL, 4096);
	ep_open_on(&g.b, &g.r, NULL, NULL, 4096);
	ep_link(&g.a, &g.b);
	idle_engines(&g, engines);
	figures_begin(engines ? "mrs beside engines" : "mrs", g.count);
	if (engines)
		figure("engines", engines);
	register_all(&g);
	figure("send_us", looks(&g, IBV_WR_SEND));
	figure("write_us", looks(&g, IBV_WR_RDMA_WRITE));
	figure("read_us", looks(&g, IBV_WR_RDMA_READ));
	deregister_all(&g);
	again(&g);
	figures_end();
	return 0;
}
