/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Promise: where direct access to a peer's memory is impossible, everything
 * still works, over the ring: SEND, WRITE, READ, atomics, small and large.
 *
 * usage: not_dumpable [VARIANT]; the variants, all run as an ordinary user:
 *   dumpable  nothing is forbidden (shows that the other variants forbid something)
 *   target    the target is not dumpable (prctl(2)), so its memory cannot be opened
 *   both      neither side is dumpable
 *   open      seccomp refuses the initiator to open any file for reading and writing
 *   copy      seccomp refuses the initiator process_vm_readv/writev and positioned I/O
 *
 * That a variant really forbids is shown by a WRITE that does not finish while
 * the target is stopped, and does after it went on.
 */
#include "procs/exercise.h"
#include "support/check.h"
#include "support/clock.h"
#include "support/process.h"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { ROUNDS = 3, STOPPED_MS = 300 };

struct variant {
	const char *name;
	bool target_not_dumpable;
	bool initiator_not_dumpable;
	bool initiator_cannot_open;
	bool initiator_cannot_copy;
};

static const struct variant variants[] = {
	{.name = "dumpable"},
	{.name = "target", .target_not_dumpable = true},
	{.name = "both", .target_not_dumpable = true, .initiator_not_dumpable = true},
	{.name = "open", .initiator_cannot_open = true},
	{.name = "copy", .initiator_cannot_copy = true},
};
enum { VARIANTS = sizeof(variants) / sizeof(variants[0]) };

static int pair[2];

#define LOAD(member) \
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offsetof(struct seccomp_data, member))
/* Answers EPERM where the accumulator is this number, else goes on behind it. */
#define REFUSE(number)                                       \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (number), 0, 1), \
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM)
#define ALLOW BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

static void install(struct sock_filter *filter, size_t count)
{
	struct sock_fprog program = {.len = (unsigned short)count, .filter = filter};

	CHECK_ZERO(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) != 0)
		SKIP("seccomp filters cannot be installed here: errno %d", errno);
}

/* Refuses openat with O_RDWR, and openat2 whose flags a filter cannot read. */
static void forbid_open(void)
{
	struct sock_filter filter[] = {
		LOAD(nr),
		REFUSE(SYS_openat2),
		REFUSE(SYS_process_vm_readv),
		REFUSE(SYS_process_vm_writev),
#ifdef SYS_open
		REFUSE(SYS_open),
#endif
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 1, 0),
		ALLOW,
		LOAD(args[2]),
		BPF_STMT(BPF_ALU | BPF_AND | BPF_K, O_ACCMODE),
		REFUSE(O_RDWR),
		ALLOW,
	};

	install(filter, sizeof(filter) / sizeof(filter[0]));
	errno = 0;
	CHECK(open("/proc/self/mem", O_RDWR | O_CLOEXEC) < 0 && errno == EPERM);
}

static void forbid_copy(void)
{
	struct sock_filter filter[] = {
		LOAD(nr),
		REFUSE(SYS_process_vm_readv),
		REFUSE(SYS_process_vm_writev),
		REFUSE(SYS_pread64),
		REFUSE(SYS_pwrite64),
		REFUSE(SYS_preadv),
		REFUSE(SYS_pwritev),
		REFUSE(SYS_preadv2),
		REFUSE(SYS_pwritev2),
		ALLOW,
	};

	install(filter, sizeof(filter) / sizeof(filter[0]));
}

static int initiator(int referee, void *argument)
{
	const struct variant *variant = argument;
	bool forbidden = variant->target_not_dumpable || variant->initiator_cannot_open ||
			 variant->initiator_cannot_copy;
	struct resources resources;
	struct endpoint ep;

	promise(variant->name);
	process_drop_root();
	if (variant->initiator_not_dumpable)
		CHECK_ZERO(prctl(PR_SET_DUMPABLE, 0));
	if (variant->initiator_cannot_open)
		forbid_open();
	if (variant->initiator_cannot_copy)
		forbid_copy();
	resources_open(&resources, 256, false);
	ep_open_on(&ep, &resources, NULL, NULL, EXERCISE_SIZE);
	ep_exchange(&ep, pair[0]);
	exercise_initiate(&ep, pair[0], ROUNDS);
	message_meet(referee);
	message_meet(referee);
	if (forbidden)
		CHECK_SAY(!exercise_write_finishes(&ep, STOPPED_MS),
			  "a WRITE finished in a stopped target that cannot be reached");
	else
		CHECK(exercise_write_finishes(&ep, 10000));
	message_meet(referee);
	if (forbidden)
		completion_expect(resources.cq, 77, IBV_WC_SUCCESS, NULL);
	message_meet(pair[0]);
	ep_close(&ep);
	resources_close(&resources);
	return 0;
}

static int target(int referee, void *argument)
{
	const struct variant *variant = argument;
	struct resources resources;
	struct endpoint ep;

	(void)referee;
	promise(variant->name);
	process_drop_root();
	if (variant->target_not_dumpable)
		CHECK_ZERO(prctl(PR_SET_DUMPABLE, 0));
	resources_open(&resources, 256, false);
	ep_open_on(&ep, &resources, NULL, NULL, EXERCISE_SIZE);
	ep_exchange(&ep, pair[1]);
	exercise_serve(&ep, pair[1], ROUNDS);
	message_meet(pair[1]);
	ep_close(&ep);
	resources_close(&resources);
	return 0;
}

static void play(const struct variant *variant)
{
	struct process initiating, serving;

	printf("%s\n", variant->name);
	CHECK_ZERO(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair));
	process_start(&serving, target, (void *)(uintptr_t)variant);
	process_start(&initiating, initiator, (void *)(uintptr_t)variant);
	/* Only the two processes may keep the pair open, or an end would not be noticed. */
	close(pair[0]);
	close(pair[1]);
	message_meet(initiating.sock);
	process_stop(&serving);
	message_meet(initiating.sock);
	message_meet(initiating.sock);
	process_continue(&serving);
	process_expect_success(&initiating, PROCESS_PATIENCE_MS);
	process_expect_success(&serving, PROCESS_PATIENCE_MS);
}

int main(int argc, char **argv)
{
	bool found = false;
	int i;

	watchdog(120);
	for (i = 0; i < VARIANTS; i++)
		if (argc < 2 || strcmp(argv[1], variants[i].name) == 0) {
			play(&variants[i]);
			found = true;
		}
	CHECK_SAY(found, "no variant %s", argv[1]);
	return 0;
}
