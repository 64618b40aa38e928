/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Promise: messages up to 2 GiB (2^31 bytes) arrive whole as SEND, WRITE and
 * READ, and ibv_post_send does not move them itself: it costs milliseconds of
 * CPU time at most, the rest goes on from polling.
 *
 * The large regions are one piece of memory of 2 MiB mapped over and over, with
 * first and last piece of their own, so that the test needs little memory. What
 * is checked is the first, the last, and one byte of every page in between.
 *
 * usage: large_message [BYTES]
 */
#include "support/check.h"
#include "support/clock.h"
#include "support/endpoint.h"
#include "support/process.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { PIECE = 2 * 1024 * 1024, PAGE = 4096 };
/* Copying 2 GiB takes ten times as long on the fastest machine. */
enum { POSTING_US = 20000 };

static size_t size;

/* `length` bytes of addresses on memory for three pieces. */
static unsigned char *map_large(size_t length)
{
	int file = memfd_create("large", MFD_CLOEXEC);
	unsigned char *start;
	size_t at;

	CHECK(file >= 0);
	CHECK_ZERO(ftruncate(file, 3 * (off_t)PIECE));
	start = mmap(NULL, length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	CHECK(start != MAP_FAILED);
	for (at = 0; at < length; at += PIECE) {
		off_t piece = at == 0 ? 0 : at + PIECE == length ? 2 : 1;
		void *got = mmap(start + at, PIECE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
				 file, piece * PIECE);

		CHECK(got == start + at);
	}
	close(file);
	return start;
}

static void fill(unsigned char *memory, unsigned char salt)
{
	memset(memory, salt, PIECE);
	memset(memory + PIECE, salt + 1, PIECE);
	memset(memory + size - PIECE, salt + 2, PIECE);
	memory[0] = salt + 3;
	memory[size - 1] = salt + 4;
}

static void check_filled(const unsigned char *memory, unsigned char salt)
{
	size_t at;

	CHECK_EQ(memory[0], (unsigned char)(salt + 3));
	CHECK_EQ(memory[size - 1], (unsigned char)(salt + 4));
	for (at = PAGE - 1; at < size - PAGE; at += PAGE) {
		unsigned char expected = at < PIECE          ? salt
					 : at < size - PIECE ? salt + 1
							     : salt + 2;

		CHECK_SAY(memory[at] == expected, "byte %zu is %u, expected %u", at, memory[at],
			  expected);
	}
}

static uint64_t thread_cpu_us(void)
{
	struct timespec used;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
	return (uint64_t)used.tv_sec * 1000000u + (uint64_t)used.tv_nsec / 1000u;
}

static void posted_quickly(const char *what, int result, uint64_t since)
{
	uint64_t used = thread_cpu_us() - since;

	CHECK_ZERO(result);
	CHECK_SAY(used < POSTING_US, "posting %s took %llu us of CPU time", what,
		  (unsigned long long)used);
}

static int initiator(int sock, void *unused)
{
	struct resources resources;
	struct endpoint ep;
	uint64_t since;

	(void)unused;
	promise("a message of up to 2 GiB arrives, posting it is quick");
	resources_open(&resources, 64, false);
	ep_open_on(&ep, &resources, NULL, map_large(size), size);
	ep_exchange(&ep, sock);

	fill(ep.buffer, 10);
	since = thread_cpu_us();
	posted_quickly("SEND", ep_send(&ep, 1, 0, size, IBV_SEND_SIGNALED), since);
	completion_expect(resources.cq, 1, IBV_WC_SUCCESS, NULL);
	message_meet(sock);

	fill(ep.buffer, 20);
	since = thread_cpu_us();
	posted_quickly("WRITE", ep_write(&ep, 2, 0, size, 0, IBV_SEND_SIGNALED), since);
	completion_expect(resources.cq, 2, IBV_WC_SUCCESS, NULL);
	message_meet(sock);

	message_meet(sock);
	since = thread_cpu_us();
	posted_quickly("READ", ep_read(&ep, 3, 0, size, 0, IBV_SEND_SIGNALED), since);
	completion_expect(resources.cq, 3, IBV_WC_SUCCESS, NULL);
	check_filled(ep.buffer, 30);
	message_meet(sock);
	ep_close(&ep);
	resources_close(&resources);
	return 0;
}

static int target(int sock, void *unused)
{
	struct resources resources;
	struct ibv_wc wc = {0};
	struct endpoint ep;

	(void)unused;
	promise("a message of up to 2 GiB arrives whole");
	resources_open(&resources, 64, false);
	ep_open_on(&ep, &resources, NULL, map_large(size), size);
	CHECK_ZERO(ep_recv(&ep, 9, 0, size));
	ep_exchange(&ep, sock);
	completion_expect(resources.cq, 9, IBV_WC_SUCCESS, &wc);
	CHECK_EQ(wc.byte_len, size);
	check_filled(ep.buffer, 10);
	message_meet(sock);

	message_meet(sock);
	check_filled(ep.buffer, 20);

	fill(ep.buffer, 30);
	message_meet(sock);
	message_meet(sock);
	ep_close(&ep);
	resources_close(&resources);
	return 0;
}

int main(int argc, char **argv)
{
	struct process a, b;

	size = argc > 1 ? strtoull(argv[1], NULL, 0) : (size_t)1 << 31;
	CHECK(size >= 3 * (size_t)PIECE && size % PIECE == 0);
	watchdog(120);
	process_start_pair(&a, initiator, &b, target, NULL);
	process_expect_success(&a, 110000);
	process_expect_success(&b, PROCESS_PATIENCE_MS);
	return 0;
}
