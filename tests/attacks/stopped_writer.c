/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Promise: a peer that is stopped (SIGSTOP) in the middle of its WRITEs keeps nobody waiting.
 * ibv_dereg_mr, ibv_rereg_mr, ibv_modify_qp to ERR and ibv_destroy_qp return within their bound
 * while it stands, and when it goes on no byte of the memory changes any more.
 *
 * Each round a new pair of queue pairs; the peer keeps WRITEs of 8 B to 512 KiB outstanding and is
 * stopped at a random moment.
 *
 * usage: stopped_writer private|mapped [ROUNDS [SEED]]
 *   private  memory that the peer reaches through the kernel
 *   mapped   a buffer of ibv_alloc_buf, which the peer has mapped
 */
#include "support/check.h"
#include "support/clock.h"
#include "support/endpoint.h"
#include "support/process.h"
#include "support/qp_state.h"
#include "support/random.h"
#include "support/writer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIZE = 1024 * 1024, PATTERN = 0xa5, LATEST_US = 3000, WATCH_MS = 3 };
/* ibv_dereg_mr(3) names 2 s; the rest is the machine's. */
enum { BOUND_MS = 3000 };

enum way { DEREG, REREG, TO_ERROR, DESTROY, WAYS };
static const char *const way_names[WAYS] = {"ibv_dereg_mr", "ibv_rereg_mr", "ibv_modify_qp to ERR",
					    "ibv_destroy_qp"};

static int writer(int sock, void *argument)
{
	uint64_t rounds = *(uint64_t *)argument;
	struct ep_config config = writer_config();
	struct resources resources;
	uint64_t seed = 77;

	promise("the writer goes on until its first error");
	resources_open(&resources, 256, false);
	for (uint64_t i = 0; i < rounds; i++) {
		struct endpoint ep;

		ep_open_on(&ep, &resources, &config, NULL, SIZE);
		memset(ep.buffer, (int)(i % 100) + 1, SIZE);
		ep_exchange(&ep, sock);
		write_until_error(&ep, SIZE / 2, false, &seed);
		message_meet(sock);
		ep_close(&ep);
	}
	resources_close(&resources);
	return 0;
}

static void take_away(struct endpoint *ep, enum way way)
{
	switch (way) {
	case DEREG:
		CHECK_ZERO(ibv_dereg_mr(ep->mr));
		ep->mr = NULL;
		break;
	case REREG:
		CHECK_ZERO(ibv_rereg_mr(ep->mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
					IBV_ACCESS_LOCAL_WRITE));
		break;
	case TO_ERROR:
		qp_move(ep->qp, IBV_QPS_ERR);
		break;
	default:
		CHECK_ZERO(ibv_destroy_qp(ep->qp));
		ep->qp = NULL;
		break;
	}
}

static void check_pattern(const unsigned char *buffer, const char *when)
{
	for (size_t i = 0; i < SIZE; i++)
		CHECK_SAY(buffer[i] == PATTERN, "byte %zu changed to %#x %s", i, buffer[i], when);
}

static uint64_t play(struct resources *resources, struct process *process, enum way way,
		     uint64_t wait_us, void *buffer)
{
	struct ep_config config = writer_config();
	unsigned int turns = 0;
	uint64_t until, since, took;
	struct endpoint ep;

	ep_open_on(&ep, resources, &config, buffer, SIZE);
	memset(ep.buffer, PATTERN, SIZE);
	ep_exchange(&ep, process->sock);
	while (((volatile unsigned char *)ep.buffer)[turns * 4096u % SIZE] == PATTERN)
		spin_once(&turns);
	for (until = now_us() + wait_us; now_us() < until;)
		spin_once(&turns);
	process_stop(process);
	since = now_ms();
	take_away(&ep, way);
	took = now_ms() - since;
	CHECK_SAY(took < BOUND_MS, "%s took %llu ms", way_names[way], (unsigned long long)took);
	memset(ep.buffer, PATTERN, SIZE);
	process_continue(process);
	sleep_ms(WATCH_MS);
	check_pattern(ep.buffer, "after the peer went on");
	message_meet(process->sock);
	check_pattern(ep.buffer, "long after the peer went on");
	ep_close(&ep);
	return took;
}

int main(int argc, char **argv)
{
	bool mapped = argc > 1 && strcmp(argv[1], "mapped") == 0;
	uint64_t rounds = argc > 2 ? strtoull(argv[2], NULL, 0) : 200;
	uint64_t seed = argc > 3 ? strtoull(argv[3], NULL, 0) : (now_us() | 1);
	struct resources resources;
	struct process process;
	struct ibv_buf *buf = NULL;
	void *buffer = NULL;
	uint64_t longest = 0;

	printf("seed %llu\n", (unsigned long long)seed);
	fflush(stdout);
	watchdog(150);
	process_start(&process, writer, &rounds);
	promise("a stopped writer keeps nobody waiting");
	resources_open(&resources, 256, false);
	if (mapped) {
		buffer = ibv_alloc_buf(resources.pd, SIZE, &buf);
		CHECK(buffer);
	}
	for (uint64_t i = 0; i < rounds; i++) {
		uint64_t took;

		promise(way_names[i % WAYS]);
		took = play(&resources, &process, (enum way)(i % WAYS),
			    random_next(&seed) % LATEST_US, buffer);
		longest = took > longest ? took : longest;
	}
	if (buf)
		ibv_free_buf(buf);
	resources_close(&resources);
	process_expect_success(&process, PROCESS_PATIENCE_MS);
	printf("%llu rounds, the longest call took %llu ms\n", (unsigned long long)rounds,
	       (unsigned long long)longest);
	return 0;
}
