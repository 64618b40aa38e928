/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Finding the file of a program, through scripts to their interpreter. */
#include "run/program.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

/* The kernel reads so much of a script (BINPRM_BUF_SIZE), and follows so many of them. */
enum { SCRIPT_HEAD = 256, SCRIPTS = 5 };

static const char default_path[] = "/bin:/usr/bin"; /* of execvp(3) */

static int is_executable(const char *path)
{
	struct stat st;

	if (stat(path, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EACCES;
	return faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) ? -errno : 0;
}

/* Writes "directory/name"; an empty directory is the working directory. */
static bool put_path(char path[PATH_MAX], const char *dir, size_t length, const char *name)
{
	int n = snprintf(path, PATH_MAX, "%.*s%s%s", (int)length, dir, length ? "/" : "", name);

	return n > 0 && n < PATH_MAX;
}

static int search(char path[PATH_MAX], const char *name)
{
	const char *list = getenv("PATH");
	int err = -ENOENT;

	if (!*name)
		return -ENOENT;
	if (strchr(name, '/'))
		return put_path(path, "", 0, name) ? is_executable(path) : -ENAMETOOLONG;
	for (const char *dir = list ? list : default_path;; dir++) {
		size_t length = strcspn(dir, ":");

		/* A directory that may not be entered holds nothing, as to a shell. */
		if (put_path(path, dir, length, name) && !access(path, F_OK)) {
			err = is_executable(path);
			if (!err)
				return 0;
		}
		dir += length;
		if (!*dir)
			return err;
	}
}

/* The next word of a line, which it is cut off from; NULL at the end. */
static char *word(char **line)
{
	char *start = *line + strspn(*line, " \t");
	size_t length = strcspn(start, " \t");

	if (!length)
		return NULL;
	*line = start + length + (start[length] != '\0');
	start[length] = '\0';
	return start;
}

/* The word of env(1)'s line that names the program. */
static const char *program_of_env(char **line)
{
	char *next;

	do
		next = word(line);
	while (next && (*next == '-' || strchr(next, '=')));
	return next;
}

/*
 * The interpreter of a script, found. 1: this is no script. The interpreter env(1) is asked for the
 * program that it would start.
 */
static int interpreter(int fd, char path[PATH_MAX])
{
	char head[SCRIPT_HEAD];
	ssize_t size = pread(fd, head, sizeof(head) - 1, 0);
	char *line = head + 2;
	const char *name;
	const char *base;

	if (size < 3 || memcmp(head, "#!", 2) != 0)
		return 1;
	head[size] = '\0';
	head[strcspn(head, "\n")] = '\0';
	name = word(&line);
	if (!name)
		return -ENOEXEC;
	base = strrchr(name, '/');
	if (base && !strcmp(base, "/env"))
		name = program_of_env(&line);
	return name ? search(path, name) : -ENOEXEC;
}

/* Whether execve(2) raises the rights, so that the loader is careful (ld.so(8), secure-execution). */
static bool raises(int fd)
{
	struct statvfs fs;
	struct stat st;

	if (fstat(fd, &st) || fstatvfs(fd, &fs) || (fs.f_flag & ST_NOSUID) ||
	    prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1)
		return false;
	if ((st.st_mode & S_ISUID) && st.st_uid != getuid())
		return true;
	if ((st.st_mode & S_ISGID) && (st.st_mode & S_IXGRP) && st.st_gid != getgid())
		return true;
	return getuid() != 0 && fgetxattr(fd, "security.capability", NULL, 0) > 0;
}

static int inspect(struct program *program, int depth)
{
	int fd = open(program->path, O_RDONLY | O_CLOEXEC);
	int err;

	if (fd < 0)
		return 0; /* it may be executed, but not read */
	err = interpreter(fd, program->path);
	if (err == 1) {
		program->known = !elf_file_read(&program->elf, fd);
		program->raised = raises(fd);
	}
	close(fd);
	program->script |= err == 0;
	return err == 0 && depth < SCRIPTS ? inspect(program, depth + 1) : 0;
}

int program_find(struct program *program, const char *name)
{
	int err;

	memset(program, 0, sizeof(*program));
	err = search(program->path, name);
	return err ? err : inspect(program, 0);
}

bool program_is_musl(const struct program *program)
{
	return program->known && strstr(program->elf.loader, "/ld-musl");
}

bool program_takes_libraries(const struct program *program)
{
	return !program->known ||
	       (!program->elf.other_bits && !program->elf.machine && !program_is_musl(program));
}
