/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Promise: a program that closes all descriptors from 3 up, the library's among
 * them, breaks nothing but events: traffic of queue pairs that are polled goes on,
 * nothing crashes, nothing spins, and files that the program opens under the
 * freed numbers are never written. Closing everything before the device is
 * opened, as daemons do, does no harm at all.
 *
 * usage: close_fds [MESSAGES]
 */
#include "procs/stream.h"
#include "support/check.h"
#include "support/clock.h"
#include "support/process.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { FILES = 64, FILE_SIZE = 64 * 1024, BYTE = 0x77, FIRST = 3 };
enum { IDLE_MS = 300, IDLE_CPU_US = 100000 };
enum when { NEVER, IN_TRAFFIC, BEFORE_OPENING };

struct plan {
	bool sends;
	enum when when;
};

static uint64_t messages;

/* Files of the program under the numbers that were the library's. */
static struct {
	int count;
	int descriptor[FILES];
	ino_t inode[FILES];
	unsigned char *content[FILES];
} files;

static void close_all(void)
{
	CHECK_ZERO(syscall(SYS_close_range, FIRST, ~0u, 0));
}

static void open_files(void)
{
	struct stat facts;
	int i;

	for (i = 0; i < FILES; i++) {
		int fd = memfd_create("foreign", 0);

		CHECK(fd >= FIRST);
		CHECK_ZERO(ftruncate(fd, FILE_SIZE));
		files.content[i] = mmap(NULL, FILE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		CHECK(files.content[i] != MAP_FAILED);
		memset(files.content[i], BYTE, FILE_SIZE);
		CHECK_ZERO(fstat(fd, &facts));
		files.inode[i] = facts.st_ino;
		files.descriptor[i] = fd;
	}
	files.count = FILES;
}

static void check_contents(void)
{
	int i, k;

	for (i = 0; i < files.count; i++)
		for (k = 0; k < FILE_SIZE; k++)
			CHECK_SAY(files.content[i][k] == BYTE,
				  "a foreign file (descriptor %d) was written at %d",
				  files.descriptor[i], k);
}

static void check_files(void)
{
	struct stat facts;
	int i;

	for (i = 0; i < files.count; i++) {
		CHECK_ZERO(fstat(files.descriptor[i], &facts));
		CHECK_SAY(facts.st_ino == files.inode[i], "descriptor %d was replaced",
			  files.descriptor[i]);
		CHECK_SAY(facts.st_size == FILE_SIZE, "a foreign file grew to %lld",
			  (long long)facts.st_size);
		CHECK_SAY(lseek(files.descriptor[i], 0, SEEK_CUR) == 0,
			  "a foreign file was read or written from its position");
	}
	check_contents();
}

static void close_in_traffic(struct stream *stream, uint64_t number)
{
	if (number == stream->messages / 2) {
		close_all();
		open_files();
	}
}

static uint64_t cpu_us(void)
{
	struct rusage usage;

	CHECK_ZERO(getrusage(RUSAGE_SELF, &usage));
	return (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000u +
	       (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

/* A thread whose descriptor was closed must not poll it in a loop. */
static void check_idle(void)
{
	uint64_t before;

	sleep_ms(50);
	before = cpu_us();
	sleep_ms(IDLE_MS);
	CHECK_SAY(cpu_us() - before < IDLE_CPU_US, "%llu us of CPU time in %d ms without work",
		  (unsigned long long)(cpu_us() - before), IDLE_MS);
}

static void become_daemon(void)
{
	struct ibv_context *context = device_open();

	/* The device was known before; a daemon keeps nothing of it. */
	CHECK_ZERO(ibv_close_device(context));
	setsid();
	close_all();
}

static int run(int sock, const struct plan *plan)
{
	struct resources resources;
	struct endpoint ep;
	struct stream stream = {.ep = &ep, .messages = messages};

	/* The socket to the other process survives as standard input. */
	CHECK_EQ(dup2(sock, STDIN_FILENO), STDIN_FILENO);
	if (plan->when == BEFORE_OPENING)
		become_daemon();
	resources_open(&resources, 256, false);
	ep_open_on(&ep, &resources, NULL, NULL, STREAM_SIZE);
	stream_prepare(&ep);
	ep_exchange(&ep, STDIN_FILENO);
	if (plan->when == IN_TRAFFIC) {
		stream.hook = close_in_traffic;
		stream.hook_every = stream.messages / 2;
	}
	if (plan->sends)
		stream_send(&stream);
	else
		stream_receive(&stream);
	message_meet(STDIN_FILENO);
	check_files();
	check_idle();
	message_meet(STDIN_FILENO);
	/* The context's own descriptors may be closed by number here, nothing is written. */
	ep_close(&ep);
	(void)ibv_destroy_cq(resources.cq);
	(void)ibv_dealloc_pd(resources.pd);
	(void)ibv_close_device(resources.context);
	check_contents();
	return 0;
}

static struct plan first, second;

static int first_main(int sock, void *unused)
{
	(void)unused;
	return run(sock, &first);
}

static int second_main(int sock, void *unused)
{
	(void)unused;
	return run(sock, &second);
}

static void play(const char *text, enum when sender, enum when receiver)
{
	struct process a, b;

	printf("%s\n", text);
	promise(text);
	first = (struct plan){.sends = true, .when = sender};
	second = (struct plan){.sends = false, .when = receiver};
	process_start_pair(&a, first_main, &b, second_main, NULL);
	process_expect_success(&a, 60000);
	process_expect_success(&b, PROCESS_PATIENCE_MS);
}

int main(int argc, char **argv)
{
	messages = argc > 1 ? strtoull(argv[1], NULL, 0) : 10000;
	watchdog(150);
	play("the sender closes all descriptors in traffic", IN_TRAFFIC, NEVER);
	play("the receiver closes all descriptors in traffic", NEVER, IN_TRAFFIC);
	play("both close all descriptors in traffic", IN_TRAFFIC, IN_TRAFFIC);
	play("both close all descriptors before they open the device", BEFORE_OPENING,
	     BEFORE_OPENING);
	return 0;
}
