/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Directories whose names the dynamic loader would take apart. */
#include "run/loader_path.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/runtime_dir.h"

static bool is_plain(const char *path)
{
	return !path[strcspn(path, " :;$\t\n")];
}

static int put(char *path, size_t size, const char *text)
{
	size_t length = strlen(text);

	if (length >= size)
		return -ENAMETOOLONG;
	memcpy(path, text, length + 1);
	return 0;
}

/* FNV-1a: links to different directories have different names. */
static uint64_t name_of(const char *dir)
{
	uint64_t sum = 0xcbf29ce484222325ULL;

	for (; *dir; dir++)
		sum = (sum ^ (unsigned char)*dir) * 0x100000001b3ULL;
	return sum;
}

static bool leads_to(const char *link, const char *dir)
{
	char text[PATH_MAX];
	ssize_t length = readlink(link, text, sizeof(text) - 1);

	if (length < 0)
		return false;
	text[length] = '\0';
	return !strcmp(text, dir);
}

static int link_in(char *path, size_t size, const char *where, const char *dir)
{
	char link[PATH_MAX];
	int n = snprintf(link, sizeof(link), "%s/.lib-%016llx", where,
			 (unsigned long long)name_of(dir));

	if (n < 0 || (size_t)n >= sizeof(link))
		return -ENAMETOOLONG;
	if (!is_plain(link))
		return -EINVAL;
	/* The directory is this user's alone, so a link that is there was made here. */
	if (symlink(dir, link) && (errno != EEXIST || !leads_to(link, dir)))
		return -errno;
	return put(path, size, link);
}

int loader_path(char *path, size_t size, const char *dir, const char *view)
{
	char runtime[PATH_MAX];
	int err;

	if (is_plain(dir))
		return put(path, size, dir);
	if (view && !link_in(path, size, view, dir))
		return 0;
	err = vb_runtime_dir(runtime, sizeof(runtime));
	if (!err)
		err = link_in(path, size, runtime, dir);
	if (err != -EINVAL)
		return err;
	/* The runtime directory has such a name, too. */
	snprintf(runtime, sizeof(runtime), "/tmp/verbatim-%u", (unsigned int)geteuid());
	err = vb_private_dir(runtime);
	return err ? err : link_in(path, size, runtime, dir);
}
