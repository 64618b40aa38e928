/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "support/folder.h"

#include <dirent.h>
#include <stddef.h>

int folder_count(const char *path, bool (*counts)(int dir, const char *name))
{
	DIR *dir = opendir(path);
	int count = 0;

	for (struct dirent *e = dir ? readdir(dir) : NULL; e; e = readdir(dir))
		count += e->d_name[0] != '.' && counts(dirfd(dir), e->d_name);
	if (dir)
		closedir(dir);
	return count;
}
