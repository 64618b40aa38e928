/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Child processes with a time limit. */
#include "doctor/apart.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define STEP_NS 5000000

int apart_wait(pid_t child, unsigned int seconds)
{
	const struct timespec step = {.tv_nsec = STEP_NS};
	unsigned int steps = seconds * (1000000000u / STEP_NS);
	int status = 0;

	for (unsigned int i = 0; i < steps; i++) {
		pid_t done = waitpid(child, &status, WNOHANG);

		if (done == child)
			return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
		if (done < 0 && errno != EINTR)
			return -1;
		nanosleep(&step, NULL);
	}
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	return -1;
}

int apart_run(int (*check)(void *argument), void *argument, unsigned int seconds)
{
	pid_t child;

	fflush(NULL);
	child = fork();
	if (child < 0)
		return -1;
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		int result = check(argument);

		fflush(NULL);
		_exit(result);
	}
	return apart_wait(child, seconds);
}
