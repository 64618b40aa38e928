/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Promise: when the target executes another program in the middle of traffic,
 * no byte of the new program changes, and the initiator learns within a second
 * that its peer is gone.
 *
 * The new program maps the very addresses that the old one had registered, fills
 * them with a pattern and watches them, while the initiator goes on writing
 * there through several connections until each has failed.
 *
 * usage: exec_target [ROUNDS]
 */
#include "support/check.h"
#include "support/clock.h"
#include "support/endpoint.h"
#include "support/process.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <fcntl.h>
#include <unistd.h>

enum { SIZE = 1024 * 1024, SIDES = 4, WINDOW = 4, PATTERN = 0x3c, WATCH_MS = 60 };
enum { PROMISED_MS = 1000, ALLOWANCE_MS = 500 };
/* Far from where anything is put by itself on x86-64 and aarch64. */
#define PLACE ((void *)(uintptr_t)0x200000000000)

static const char own_path[] = "/proc/self/exe";

static unsigned char *map_place(void)
{
	void *memory = mmap(PLACE, SIZE, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	CHECK_SAY(memory == PLACE, "cannot map %p: errno %d", PLACE, errno);
	return memory;
}

/* The program that the target becomes: knows nothing of any device. */
static int after_exec(int sock)
{
	unsigned char *memory = map_place();
	uint64_t until;
	size_t i;

	promise("no byte of the new program changes");
	watchdog(60);
	memset(memory, PATTERN, SIZE);
	message_send(sock, "e", 1);
	for (until = now_ms() + WATCH_MS; now_ms() < until;)
		for (i = 0; i < SIZE; i++)
			CHECK_SAY(((volatile unsigned char *)memory)[i] == PATTERN,
				  "byte %zu changed to %#x", i, memory[i]);
	message_send(sock, "w", 1);
	return 0;
}

static int target(int sock, void *unused)
{
	struct resources resources;
	struct endpoint ep[SIDES];
	char number[16], go;
	unsigned char *memory;
	int i;

	(void)unused;
	promise("the target is ready");
	memory = map_place();
	resources_open(&resources, 256, false);
	for (i = 0; i < SIDES; i++) {
		ep_open_on(&ep[i], &resources, NULL, memory, SIZE);
		ep_exchange(&ep[i], sock);
	}
	message_receive(sock, &go, 1);
	/* This one descriptor goes along; the library's own must close themselves. */
	CHECK_ZERO(fcntl(sock, F_SETFD, 0));
	snprintf(number, sizeof(number), "%d", sock);
	execl(own_path, own_path, "--after-exec", number, (char *)NULL);
	check_failed(__FILE__, __LINE__, "execl: errno %d", errno);
}

/* The initiator's window of WRITEs on each connection, until each has failed. */
struct writer {
	struct endpoint ep[SIDES];
	uint64_t posted[SIDES], completed[SIDES];
	bool error[SIDES];
	int failed;
};

static void write_on(struct writer *writer, struct ibv_cq *cq)
{
	struct ibv_wc wc = {0};
	int i;

	for (i = 0; i < SIDES; i++)
		while (!writer->error[i] && writer->posted[i] - writer->completed[i] < WINDOW) {
			size_t size = (size_t)8 << (writer->posted[i]++ * 5 % 15);

			CHECK_ZERO(ep_write(&writer->ep[i], (uint64_t)i, 0, size, SIZE / 2,
					    IBV_SEND_SIGNALED));
		}
	while (ibv_poll_cq(cq, 1, &wc) == 1) {
		uint64_t number = wc.wr_id;

		writer->completed[number]++;
		if (wc.status == IBV_WC_SUCCESS && !writer->error[number])
			continue;
		if (wc.status !=
		    (writer->error[number] ? IBV_WC_WR_FLUSH_ERR : IBV_WC_RETRY_EXC_ERR)) {
			completion_print(&wc);
			check_failed(__FILE__, __LINE__, "unexpected status");
		}
		writer->failed += !writer->error[number];
		writer->error[number] = true;
	}
}

static void play(struct resources *resources, struct process *process)
{
	struct writer writer = {0};
	uint64_t until;
	char said;
	int i;

	for (i = 0; i < SIDES; i++) {
		ep_open_on(&writer.ep[i], resources, NULL, NULL, SIZE);
		ep_exchange(&writer.ep[i], process->sock);
	}
	for (until = now_ms() + 5; now_ms() < until;)
		write_on(&writer, resources->cq);
	CHECK_EQ(writer.failed, 0);
	message_send(process->sock, "g", 1);
	while (!message_try_receive(process->sock, &said, 1, 0))
		write_on(&writer, resources->cq);
	CHECK_EQ(said, 'e');
	for (until = now_ms() + PROMISED_MS + ALLOWANCE_MS; writer.failed < SIDES;) {
		write_on(&writer, resources->cq);
		CHECK_SAY(now_ms() < until, "%d of %d connections failed in time", writer.failed,
			  SIDES);
	}
	message_receive(process->sock, &said, 1);
	CHECK_EQ(said, 'w');
	process_expect_success(process, PROCESS_PATIENCE_MS);
	for (i = 0; i < SIDES; i++)
		ep_close(&writer.ep[i]);
}

/* A process of its own per round, so that every target starts without an open device. */
static int round_main(int sock, void *unused)
{
	struct resources resources;
	struct process process;

	(void)sock;
	(void)unused;
	promise("the initiator learns that its peer is gone");
	process_start(&process, target, NULL);
	resources_open(&resources, 256, false);
	play(&resources, &process);
	resources_close(&resources);
	return 0;
}

int main(int argc, char **argv)
{
	int rounds, i;

	if (argc == 3 && strcmp(argv[1], "--after-exec") == 0)
		return after_exec(atoi(argv[2]));
	rounds = argc > 1 ? atoi(argv[1]) : 20;
	watchdog(120);
	for (i = 0; i < rounds; i++) {
		struct process process;

		process_start(&process, round_main, NULL);
		process_expect_success(&process, PROCESS_PATIENCE_MS);
	}
	printf("%d rounds, no byte of the new program changed\n", rounds);
	return 0;
}
