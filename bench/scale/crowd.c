/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Many processes side by side (crowd.h). */
#include "crowd.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "scale.h"
#include "support/check.h"
#include "support/clock.h"
#include "support/process.h"

struct crowd_shared *crowd_make(uint32_t count, uint64_t numbers)
{
	struct crowd_shared *crowd = memory_shared(sizeof(*crowd));
	pthread_barrierattr_t attr;

	CHECK_ZERO(pthread_barrierattr_init(&attr));
	CHECK_ZERO(pthread_barrierattr_setpshared(&attr, PTHREAD_PROCESS_SHARED));
	CHECK_ZERO(pthread_barrier_init(&crowd->barrier, &attr, count));
	crowd->count = count;
	crowd->numbers = memory_shared(numbers * sizeof(*crowd->numbers) + 1);
	for (int i = 0; i < CROWD_FIGURES; i++)
		crowd->found[i] = memory_shared(count * sizeof(double));
	return crowd;
}

void crowd_meet(struct crowd_shared *crowd)
{
	pthread_barrier_wait(&crowd->barrier);
}

void crowd_wait(const struct crowd_shared *crowd, uint64_t begun)
{
	if (wait_once(begun) && crowd->count > 2)
		usleep(crowd->count * 50);
}

void crowd_run(struct crowd_shared *crowd,
	       void (*member)(struct crowd_shared *crowd, uint32_t self))
{
	pid_t *pid = calloc(crowd->count, sizeof(*pid));
	bool failed = false;

	CHECK(pid);
	for (uint32_t i = 0; i < crowd->count; i++) {
		pid[i] = fork();
		CHECK(pid[i] >= 0);
		if (!pid[i]) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			member(crowd, i);
			_exit(0);
		}
	}
	for (uint32_t n = 0; n < crowd->count; n++) {
		int status = 0;
		pid_t ended = waitpid(-1, &status, 0);

		for (uint32_t i = 0; i < crowd->count; i++)
			pid[i] = pid[i] == ended ? 0 : pid[i];
		if (failed || (WIFEXITED(status) && !WEXITSTATUS(status)))
			continue;
		failed = true; /* the others would wait for it at the barrier */
		for (uint32_t i = 0; i < crowd->count; i++) {
			if (pid[i])
				kill(pid[i], SIGKILL);
		}
	}
	free(pid);
	CHECK_SAY(!failed, "a process of the crowd failed");
}

void crowd_figure(struct crowd_shared *crowd, int which, const char *median_name,
		  const char *most_name)
{
	double *found = crowd->found[which];
	double middle = median(found, crowd->count);

	figure(median_name, middle);
	figure(most_name, found[crowd->count - 1]);
}
