/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Promise: a WRITE does not reach the program that its target process executes meanwhile. The test
 * takes the moment at which that is hardest: the initiator has made all its checks and is about to
 * enter the system call that copies. A tracer (ptrace(2)) stops the initiator there. The target
 * executes another program, which maps the same addresses and fills them with a pattern. Then the
 * initiator goes on, and the pattern must stay.
 *
 * usage: exec_write [BYTES]
 */
#include "support/check.h"
#include "support/clock.h"
#include "support/endpoint.h"
#include "support/process.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SIZE = 1024 * 1024, PATTERN = 0x3c };
/* Far from where anything is put by itself on x86-64 and aarch64. */
#define PLACE ((void *)(uintptr_t)0x200000000000)

/* Where they all are; in a memfd, which an exec keeps. */
enum stage { BEGUN, WARM, FIRE, EXEC, FILLED, LOOK };

struct board {
	_Atomic int stage;
};

static struct board *board;
static int board_fd;
static size_t bytes;

static void board_map(void)
{
	board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED, board_fd, 0);
	CHECK(board != MAP_FAILED);
}

static void await(enum stage stage)
{
	uint64_t until = now_ms() + PROCESS_PATIENCE_MS;

	while (board->stage < (int)stage) {
		CHECK_SAY(now_ms() < until, "stage %d was not reached", (int)stage);
		sleep_ms(1);
	}
}

static unsigned char *map_place(void)
{
	void *memory = mmap(PLACE, SIZE, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	CHECK_SAY(memory == PLACE, "cannot map %p: errno %d", PLACE, errno);
	return memory;
}

static int after_exec(void)
{
	unsigned char *memory = map_place();

	promise("no byte of the new program changes");
	watchdog(60);
	board_map();
	memset(memory, PATTERN, SIZE);
	board->stage = FILLED;
	await(LOOK);
	for (size_t i = 0; i < SIZE; i++)
		CHECK_SAY(memory[i] == PATTERN, "byte %zu changed to %#x", i, memory[i]);
	return 0;
}

static int target(int sock, void *unused)
{
	struct resources resources;
	struct endpoint ep;
	char number[16];

	(void)unused;
	promise("the target is ready");
	resources_open(&resources, 256, false);
	ep_open_on(&ep, &resources, NULL, map_place(), SIZE);
	ep_exchange(&ep, sock);
	await(EXEC);
	snprintf(number, sizeof(number), "%d", board_fd);
	execl("/proc/self/exe", "exec_write", "--after-exec", number, (char *)NULL);
	check_failed(__FILE__, __LINE__, "execl: errno %d", errno);
}

static int initiator(int sock, void *unused)
{
	struct resources resources;
	struct ibv_wc wc = {0};
	struct endpoint ep;

	(void)unused;
	promise("the initiator's WRITE ends, one way or the other");
	resources_open(&resources, 256, false);
	ep_open_on(&ep, &resources, NULL, NULL, SIZE);
	memset(ep.buffer, 0x77, SIZE);
	ep_exchange(&ep, sock);
	CHECK_ZERO(ep_write(&ep, 1, 0, 64, 0, IBV_SEND_SIGNALED));
	completion_expect(resources.cq, 1, IBV_WC_SUCCESS, NULL);
	board->stage = WARM;
	await(FIRE);
	CHECK_ZERO(ep_write(&ep, 2, 0, bytes, 0, IBV_SEND_SIGNALED));
	completion_next(resources.cq, &wc);
	/* It says whether the bytes are somewhere: then in the old program's memory. */
	printf("the WRITE ended as %s\n", ibv_wc_status_str(wc.status));
	fflush(stdout);
	_exit(0);
}

static bool copies(uint64_t number)
{
	return number == SYS_process_vm_writev || number == SYS_pwritev || number == SYS_pwrite64;
}

/* Goes on until the initiator enters the call that copies. False: it ended without. */
static bool hold_at_copy(pid_t pid)
{
	struct __ptrace_syscall_info info;
	int status;

	for (;;) {
		CHECK_ZERO(ptrace(PTRACE_SYSCALL, pid, 0, 0));
		CHECK(waitpid(pid, &status, 0) == pid);
		if (WIFEXITED(status) || WIFSIGNALED(status))
			return false;
		if (ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof(info), &info) > 0 &&
		    info.op == PTRACE_SYSCALL_INFO_ENTRY && copies(info.entry.nr))
			return true;
	}
}

static void trace(pid_t pid)
{
	int status;

	if (ptrace(PTRACE_SEIZE, pid, 0, PTRACE_O_TRACESYSGOOD))
		SKIP("ptrace is not allowed here");
	CHECK_ZERO(ptrace(PTRACE_INTERRUPT, pid, 0, 0));
	CHECK(waitpid(pid, &status, 0) == pid && WIFSTOPPED(status));
	board->stage = FIRE;
	if (!hold_at_copy(pid))
		SKIP("the WRITE did not go by a copy of the initiator's");
	board->stage = EXEC;
	await(FILLED);
	CHECK_ZERO(ptrace(PTRACE_DETACH, pid, 0, 0));
}

int main(int argc, char **argv)
{
	struct process a, b;

	if (argc == 3 && strcmp(argv[1], "--after-exec") == 0) {
		board_fd = atoi(argv[2]);
		return after_exec();
	}
	bytes = argc > 1 ? strtoull(argv[1], NULL, 0) : 65536;
	watchdog(120);
	promise("a WRITE never lands in the program that was executed");
	board_fd = memfd_create("board", 0);
	CHECK(board_fd >= 0 && ftruncate(board_fd, sizeof(struct board)) == 0);
	board_map();
	process_start_pair(&a, target, &b, initiator, NULL);
	await(WARM);
	trace(b.pid);
	process_expect_success(&b, PROCESS_PATIENCE_MS);
	board->stage = LOOK;
	process_expect_success(&a, PROCESS_PATIENCE_MS);
	return 0;
}
