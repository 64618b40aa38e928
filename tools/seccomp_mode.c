/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The line "Seccomp:" of /proc/self/status (proc_pid_status(5)). */
#include "seccomp_mode.h"

#include <stdio.h>

int seccomp_mode(void)
{
	FILE *f = fopen("/proc/self/status", "re");
	char line[256];
	int mode = 0;

	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "Seccomp: %d", &mode) == 1)
			break;
	}
	if (f)
		fclose(f);
	return mode;
}
