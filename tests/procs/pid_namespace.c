/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Promise: a peer in another pid namespace is reached like any other: directly from
 * the namespace above, where it has a number; from below through rings, because there
 * the target has none; and directly when both were started with VERBATIM_TRUST=uid, not
 * when one was.
 *
 * One process in this namespace, one in a new one; each is the target once. How
 * access is done is shown by a WRITE that finishes while the target is stopped, or
 * after it went on. Memory is given while messages go through rings already, on a
 * crowded machine some time after the first ones: so the target is stopped again.
 * Skips where the kernel does not let this user make a pid namespace.
 */
#include "procs/exercise.h"
#include "support/check.h"
#include "support/clock.h"
#include "support/process.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { ROUNDS = 3, STOPPED_MS = 100, TRIES = 20 };

enum { NEITHER, INITIATOR, TARGET, BOTH }; /* the processes that trust the user */

static int who_trusts;

static void trust(int me)
{
	unsetenv("VERBATIM_TRUST");
	if (who_trusts & me)
		CHECK_ZERO(setenv("VERBATIM_TRUST", "uid", 1));
}

/* The two processes' sockets to each other; their own ones lead to the referee. */
static int pair[2];

/* The referee stops the target for the time of a WRITE. True if the WRITE finished. */
static bool write_without_target(struct endpoint *ep, int referee)
{
	bool finished;

	message_meet(referee);
	message_meet(referee);
	finished = exercise_write_finishes(ep, STOPPED_MS);
	message_send(referee, &finished, sizeof(finished));
	if (!finished)
		completion_expect(ep->resources->cq, 77, IBV_WC_SUCCESS, NULL);
	return finished;
}

static int initiator(int referee, void *argument)
{
	bool finished = false, above = *(bool *)argument;
	struct resources resources;
	struct endpoint ep;

	promise("an initiator reaches a target in another pid namespace");
	trust(INITIATOR);
	resources_open(&resources, 256, false);
	ep_open_on(&ep, &resources, NULL, NULL, EXERCISE_SIZE);
	ep_exchange(&ep, pair[0]);
	exercise_initiate(&ep, pair[0], ROUNDS);
	for (int i = 0; i < TRIES && !finished; i++)
		finished = write_without_target(&ep, referee);
	if (above)
		promise("from above a WRITE finishes while its target is stopped");
	else if (who_trusts == BOTH)
		promise("with VERBATIM_TRUST=uid a WRITE finishes while its target is stopped");
	else
		promise("without it on both sides no memory is given");
	CHECK_EQ(finished, above || who_trusts == BOTH);
	message_meet(pair[0]);
	ep_close(&ep);
	resources_close(&resources);
	return 0;
}

static int target(int referee, void *unused)
{
	struct resources resources;
	struct endpoint ep;

	(void)referee;
	(void)unused;
	promise("a target serves an initiator in another pid namespace");
	trust(TARGET);
	resources_open(&resources, 256, false);
	ep_open_on(&ep, &resources, NULL, NULL, EXERCISE_SIZE);
	ep_exchange(&ep, pair[1]);
	exercise_serve(&ep, pair[1], ROUNDS);
	message_meet(pair[1]);
	ep_close(&ep);
	resources_close(&resources);
	return 0;
}

static void play(struct process *initiating, struct process *serving)
{
	bool finished = false;

	for (int i = 0; i < TRIES && !finished; i++) {
		message_meet(initiating->sock);
		process_stop(serving);
		message_meet(initiating->sock);
		message_receive(initiating->sock, &finished, sizeof(finished));
		process_continue(serving);
	}
	process_expect_success(initiating, PROCESS_PATIENCE_MS);
	process_expect_success(serving, PROCESS_PATIENCE_MS);
}

static bool write_map(const char *path, const char *text)
{
	int file = open(path, O_WRONLY | O_CLOEXEC);
	bool written;

	if (file < 0)
		return false;
	written = write(file, text, strlen(text)) == (ssize_t)strlen(text);
	close(file);
	return written;
}

/* From here on children of this process start in a new pid namespace. */
static void leave_pid_namespace(void)
{
	unsigned int uid = geteuid(), gid = getegid();
	char map[64];

	if (unshare(CLONE_NEWPID) == 0)
		return;
	if (unshare(CLONE_NEWUSER | CLONE_NEWPID) != 0)
		SKIP("no pid namespace for this user: errno %d", errno);
	snprintf(map, sizeof(map), "%u %u 1\n", uid, uid);
	CHECK(write_map("/proc/self/setgroups", "deny"));
	CHECK(write_map("/proc/self/uid_map", map));
	snprintf(map, sizeof(map), "%u %u 1\n", gid, gid);
	CHECK(write_map("/proc/self/gid_map", map));
}

/* One pid namespace per direction, since one ends with its first process. */
static int direction(int sock, void *argument)
{
	bool target_outside = *(bool *)argument, initiator_above = !target_outside;
	struct process outside, inside;

	(void)sock;
	CHECK_ZERO(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair));
	process_start(&outside, target_outside ? target : initiator, &initiator_above);
	leave_pid_namespace();
	process_start(&inside, target_outside ? initiator : target, &initiator_above);
	play(target_outside ? &inside : &outside, target_outside ? &outside : &inside);
	return 0;
}

int main(void)
{
	bool target_outside[] = {false, true};
	struct process process;
	int i;

	watchdog(150);
	promise("peers in different pid namespaces work together");
	for (i = 0; i < 2; i++) {
		process_start(&process, direction, &target_outside[i]);
		process_expect_success(&process, 80000);
	}
	/*
	 * A user other than root must leave the user namespace as well, which is seen and trusted
	 * by no process.
	 */
	for (who_trusts = INITIATOR; who_trusts <= BOTH && geteuid() == 0; who_trusts++) {
		for (i = 0; i < 2; i++) {
			process_start(&process, direction, &target_outside[i]);
			process_expect_success(&process, 80000);
		}
	}
	return 0;
}
