/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "support/threads.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/check.h"
#include "support/clock.h"

enum { LOOK_MS = 5, PATIENCE_MS = 20000 };

struct look {
	bool awake;
	unsigned long long switches; /* of all threads: a thread that has run was switched to */
};

static void thread_look(const char *tid, struct look *look)
{
	char path[64], line[128];
	unsigned long long number;

	snprintf(path, sizeof(path), "/proc/self/task/%.20s/status", tid);
	FILE *file = fopen(path, "re");

	if (!file) /* it has ended */
		return;
	while (fgets(line, sizeof(line), file)) {
		if (!strncmp(line, "State:", 6) && !strchr(line + 6, 'S'))
			look->awake = true;
		if (sscanf(line, "%*[a-z]_ctxt_switches: %llu", &number) == 1)
			look->switches += number;
	}
	fclose(file);
}

static struct look threads_look(void)
{
	struct look look = {false, 0};
	DIR *folder = opendir("/proc/self/task");
	const struct dirent *entry;

	CHECK(folder);
	while ((entry = readdir(folder))) {
		if (entry->d_name[0] != '.' && atoi(entry->d_name) != gettid())
			thread_look(entry->d_name, &look);
	}
	closedir(folder);
	return look;
}

void threads_rest(void)
{
	struct look before = threads_look();

	for (int waited = 0; waited < PATIENCE_MS; waited += LOOK_MS) {
		sleep_ms(LOOK_MS);
		struct look now = threads_look();

		if (!now.awake && !before.awake && now.switches == before.switches)
			return;
		before = now;
	}
	CHECK_SAY(false, "a thread has not come to rest in %d ms", PATIENCE_MS);
}
