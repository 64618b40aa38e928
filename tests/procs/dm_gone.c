/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Promises about device memory that a peer process writes to as fast as it can, through its own
 * mapping:
 *   - after ibv_dereg_mr returned no byte of it changes any more; freed and allocated again it is
 *     zeroed and stays so;
 *   - a writer that is killed in the middle keeps nothing: the owner can deregister and free at
 *     once;
 *   - an owner that is killed does not take the writer along: its requests end with an error.
 *
 * usage: dm_gone [ROUNDS]
 */
#include "support/check.h"
#include "support/clock.h"
#include "support/endpoint.h"
#include "support/process.h"
#include "support/random.h"
#include "support/writer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIZE = 1024 * 1024, MARK = 0xa5, WATCH_MS = 3, LATEST_US = 3000 };

static uint64_t rounds;

static int writer(int sock, void *argument)
{
	uint64_t turns = *(uint64_t *)argument;
	uint64_t seed = 99;
	struct ep_config config = writer_config();
	struct resources resources;
	uint64_t i;

	promise("the writer sees success up to one error, then flushes");
	resources_open(&resources, 64, false);
	for (i = 0; i < turns; i++) {
		struct endpoint ep;

		ep_open_on(&ep, &resources, &config, NULL, SIZE);
		memset(ep.buffer, (int)(i % 100) + 1, SIZE);
		ep_exchange(&ep, sock);
		write_until_error(&ep, SIZE, false, &seed);
		message_meet(sock);
		ep_close(&ep);
	}
	resources_close(&resources);
	return 0;
}

/* The owner's side: the peer is told of device memory instead of the endpoint's own buffer. */
struct owner {
	struct endpoint ep;
	struct ibv_dm *dm;
	struct ibv_mr *mr;
};

static struct ibv_dm *dm_make(struct resources *resources)
{
	struct ibv_alloc_dm_attr attr = {.length = SIZE};
	struct ibv_dm *dm = ibv_alloc_dm(resources->context, &attr);

	CHECK(dm);
	return dm;
}

static void owner_open(struct owner *o, struct resources *resources, int sock)
{
	struct ep_config config = writer_config();

	ep_open_on(&o->ep, resources, &config, NULL, 4096);
	o->dm = dm_make(resources);
	o->mr = ibv_reg_dm_mr(resources->pd, o->dm, 0, SIZE, EP_ACCESS | IBV_ACCESS_ZERO_BASED);
	CHECK(o->mr);
	o->ep.local.addr = 0;
	o->ep.local.rkey = o->mr->rkey;
	ep_exchange(&o->ep, sock);
}

/* The test proves something only while the writer is writing. */
static void owner_wait_for_writes(struct owner *o)
{
	static unsigned char bytes[SIZE];
	unsigned int turns = 0;
	bool written = false;

	while (!written) {
		CHECK_ZERO(ibv_memcpy_from_dm(bytes, o->dm, 0, SIZE));
		for (size_t i = 0; i < SIZE && !written; i += 64)
			written = bytes[i] != 0;
		spin_once(&turns);
	}
}

static void expect_all(struct ibv_dm *dm, int byte, const char *when)
{
	static unsigned char bytes[SIZE];
	size_t i;

	CHECK_ZERO(ibv_memcpy_from_dm(bytes, dm, 0, SIZE));
	for (i = 0; i < SIZE && bytes[i] == byte; i++)
		continue;
	CHECK_SAY(i == SIZE, "byte %zu is %#x %s", i, bytes[i % SIZE], when);
}

static void play_revocation(struct resources *resources, int sock, uint64_t wait_us)
{
	static unsigned char marks[SIZE];
	struct owner o;
	uint64_t until;
	unsigned int turns = 0;

	owner_open(&o, resources, sock);
	owner_wait_for_writes(&o);
	for (until = now_us() + wait_us; now_us() < until;)
		spin_once(&turns);
	CHECK_ZERO(ibv_dereg_mr(o.mr));
	memset(marks, MARK, SIZE);
	CHECK_ZERO(ibv_memcpy_to_dm(o.dm, 0, marks, SIZE));
	sleep_ms(WATCH_MS);
	expect_all(o.dm, MARK, "after ibv_dereg_mr");
	CHECK_ZERO(ibv_free_dm(o.dm));
	o.dm = dm_make(resources);
	expect_all(o.dm, 0, "in memory that was allocated again");
	message_meet(sock);
	expect_all(o.dm, 0, "long after");
	CHECK_ZERO(ibv_free_dm(o.dm));
	ep_close(&o.ep);
}

static void play_killed_writer(struct resources *resources, struct process *process)
{
	struct owner o;
	uint64_t start;

	owner_open(&o, resources, process->sock);
	owner_wait_for_writes(&o);
	process_kill(process);
	start = now_us();
	CHECK_ZERO(ibv_dereg_mr(o.mr));
	CHECK_ZERO(ibv_free_dm(o.dm));
	CHECK_SAY(now_us() - start < 5000000, "took %llu us",
		  (unsigned long long)(now_us() - start));
	ep_close(&o.ep);
}

/* An owner that shares memory and waits to be killed. */
static int owner_process(int sock, void *argument)
{
	struct resources resources;
	struct owner o;

	(void)argument;
	resources_open(&resources, 64, false);
	owner_open(&o, &resources, sock);
	owner_wait_for_writes(&o);
	message_meet(sock);
	sleep_ms(60000);
	return 1;
}

static void play_killed_owner(struct resources *resources, struct process *process)
{
	struct ep_config config = writer_config();
	uint64_t seed = 7;
	bool error = false;
	struct endpoint ep;
	int i;

	ep_open_on(&ep, resources, &config, NULL, SIZE);
	memset(ep.buffer, 3, SIZE);
	ep_exchange(&ep, process->sock);
	for (i = 0; i < 100; i++) {
		CHECK_ZERO(ep_write(&ep, 1, 0, SIZE, 0, IBV_SEND_SIGNALED));
		completion_expect(resources->cq, 1, IBV_WC_SUCCESS, NULL);
	}
	message_meet(process->sock);
	/* Killed between two looks of the writer: requests in flight and to come. */
	for (i = 0; i < WRITER_WINDOW; i++)
		CHECK_ZERO(ep_write(&ep, (uint64_t)i, 0, SIZE, 0, IBV_SEND_SIGNALED));
	process_kill(process);
	for (i = 0; i < WRITER_WINDOW; i++) {
		struct ibv_wc wc = {0};

		completion_next(resources->cq, &wc);
		error |= wc.status != IBV_WC_SUCCESS;
	}
	if (!error)
		write_until_error(&ep, SIZE, false, &seed);
	ep_close(&ep);
}

int main(int argc, char **argv)
{
	static uint64_t for_ever = 1;
	struct process revoked, killed[3], owner[3];
	struct resources resources;
	uint64_t seed = now_us() | 1;
	uint64_t i;
	int k;

	rounds = argc > 1 ? strtoull(argv[1], NULL, 0) : 60;
	watchdog(120);
	process_start(&revoked, writer, &rounds);
	for (k = 0; k < 3; k++) {
		process_start(&killed[k], writer, &for_ever);
		process_start(&owner[k], owner_process, NULL);
	}
	resources_open(&resources, 64, false);
	promise("no byte of device memory changes after ibv_dereg_mr");
	for (i = 0; i < rounds; i++)
		play_revocation(&resources, revoked.sock, random_next(&seed) % LATEST_US);
	process_expect_success(&revoked, PROCESS_PATIENCE_MS);
	promise("a killed writer holds up nothing");
	for (k = 0; k < 3; k++)
		play_killed_writer(&resources, &killed[k]);
	promise("a killed owner does not take the writer along");
	for (k = 0; k < 3; k++)
		play_killed_owner(&resources, &owner[k]);
	resources_close(&resources);
	printf("%llu revocations, no byte changed after one\n", (unsigned long long)rounds);
	return 0;
}
