/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The list of a program's libraries, read from the output of its loader. */
#include "doctor/libraries.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "doctor/apart.h"

#define SECONDS 10

static void list(const struct program *p, int out)
{
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

	dup2(out, STDOUT_FILENO);
	if (null >= 0)
		dup2(null, STDERR_FILENO);
	unsetenv("LD_PRELOAD");
	execl(p->elf.loader, p->elf.loader, "--list", p->path, (char *)NULL);
	_exit(EXIT_FAILURE);
}

/* A line is "\tNAME => PATH (ADDRESS)" or "\tNAME => not found". */
static void take_line(struct libraries *l, char *line)
{
	char *name = line + strspn(line, " \t");
	char *arrow = strstr(name, " => ");
	char *path;

	if (!arrow)
		return;
	*arrow = '\0';
	path = arrow + strlen(" => ");
	path[strcspn(path, "\n")] = '\0';
	if (!strcmp(path, "not found")) {
		snprintf(l->missing, sizeof(l->missing), "%s", name);
		return;
	}
	if (strrchr(path, ' '))
		*strrchr(path, ' ') = '\0';
	if (!strncmp(name, "libibverbs", strlen("libibverbs")))
		snprintf(l->verbs, sizeof(l->verbs), "%s", path);
	if (!strncmp(name, "librdmacm", strlen("librdmacm")))
		snprintf(l->cm, sizeof(l->cm), "%s", path);
	if (!strncmp(name, "libasan.so", strlen("libasan.so")))
		l->sanitizer = true;
}

int libraries_of(const struct program *program, struct libraries *libraries)
{
	char line[PATH_MAX + 256];
	int pipes[2];
	pid_t child;
	FILE *f;

	memset(libraries, 0, sizeof(*libraries));
	if (pipe2(pipes, O_CLOEXEC))
		return -errno;
	fflush(NULL);
	child = fork();
	if (child == 0)
		list(program, pipes[1]);
	close(pipes[1]);
	f = fdopen(pipes[0], "r");
	while (f && fgets(line, sizeof(line), f))
		take_line(libraries, line);
	if (f)
		fclose(f);
	else
		close(pipes[0]);
	return child > 0 && !apart_wait(child, SECONDS) ? 0 : -ENOEXEC;
}
