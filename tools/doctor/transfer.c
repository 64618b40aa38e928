/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The last check: two processes exchange data, through shared memory and by UDP. */
#include "doctor/transfer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <signal.h>
#include <unistd.h>

#include "doctor/apart.h"
#include "doctor/checks.h"
#include "doctor/finding.h"

#define SECONDS 60
#define WAIT_S  30 /* for a message of the other side */

static pid_t start(const struct transfer_plan *plan, const int pair[2], bool active)
{
	const struct timeval wait = {.tv_sec = WAIT_S};
	pid_t child;
	int sock = pair[active];

	fflush(NULL);
	child = fork();
	if (child)
		return child;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	close(pair[!active]);
	setsockopt(sock, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
	_exit(transfer_side(plan, sock, active) ? EXIT_FAILURE : EXIT_SUCCESS);
}

static int both_sides(const struct transfer_plan *plan)
{
	int pair[2];
	pid_t passive, active;
	int err;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair)) {
		snprintf(plan->why, TRANSFER_WHY, "no unix sockets: %s", strerror(errno));
		return -1;
	}
	passive = start(plan, pair, false);
	active = start(plan, pair, true);
	close(pair[0]);
	close(pair[1]);
	if (passive < 0 || active < 0)
		snprintf(plan->why, TRANSFER_WHY, "no further process can be started (ulimit -u)");
	err = passive > 0 ? apart_wait(passive, SECONDS) : -1;
	err |= active > 0 ? apart_wait(active, SECONDS) : -1;
	if (err && !plan->why[0])
		snprintf(plan->why, TRANSFER_WHY, "a process was killed or did not end");
	return err;
}

static bool transfer(bool udp)
{
	const char *way = udp ? "by UDP" : "through shared memory";
	struct transfer_plan plan = {.udp = udp};
	int err;

	plan.why =
		mmap(NULL, TRANSFER_WHY, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (plan.why == MAP_FAILED) {
		finding_problem("look at the limits above", "transfer %s: no memory", way);
		return false;
	}
	err = both_sides(&plan);
	if (err)
		finding_problem(
			"look at the lines above; VERBATIM_LOG=debug verbatim doctor tells more",
			"transfer %s: %s", way, plan.why);
	else
		finding_ok(
			"transfer %s: SEND, WRITE and READ of 64 KiB between two processes, all bytes right",
			way);
	munmap(plan.why, TRANSFER_WHY);
	return !err;
}

bool check_transfer(void)
{
	bool shared = transfer(false);

	return transfer(true) && shared;
}
