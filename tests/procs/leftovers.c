/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Reads /proc and /dev/shm for what processes own. */
#include "procs/leftovers.h"

#include "support/check.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* One line of /proc/net/unix: its inode and its name ("" when it has none). */
static bool next_socket(FILE *table, unsigned long *inode, char *name)
{
	char line[512];

	while (fgets(line, sizeof(line), table)) {
		char path[256] = "";
		int fields = sscanf(line, "%*s %*s %*s %*s %*s %*s %lu %255s", inode, path);

		if (fields < 1)
			continue;
		snprintf(name, LEFTOVERS_NAME, "%.*s", LEFTOVERS_NAME - 1, path);
		return true;
	}
	return false;
}

static void add_if_named(unsigned long wanted, struct names *names)
{
	FILE *table = fopen("/proc/net/unix", "r");
	char name[LEFTOVERS_NAME];
	unsigned long inode;

	CHECK(table);
	while (next_socket(table, &inode, name))
		if (inode == wanted && name[0] == '@' && names->count < LEFTOVERS_NAMES)
			memcpy(names->name[names->count++], name, sizeof(name));
	fclose(table);
}

void names_of_process(pid_t pid, struct names *names)
{
	struct dirent *entry;
	char path[300], link[64];
	unsigned long inode;
	DIR *folder;

	names->count = 0;
	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	folder = opendir(path);
	CHECK_SAY(folder, "%s: errno %d", path, errno);
	while ((entry = readdir(folder))) {
		ssize_t length;

		snprintf(path, sizeof(path), "/proc/%d/fd/%s", (int)pid, entry->d_name);
		length = readlink(path, link, sizeof(link) - 1);
		if (length < 0)
			continue;
		link[length] = '\0';
		if (sscanf(link, "socket:[%lu]", &inode) == 1)
			add_if_named(inode, names);
	}
	closedir(folder);
}

const char *names_still_bound(const struct names *names)
{
	FILE *table = fopen("/proc/net/unix", "r");
	const char *found = NULL;
	char name[LEFTOVERS_NAME];
	unsigned long inode;
	int i;

	CHECK(table);
	while (!found && next_socket(table, &inode, name))
		for (i = 0; i < names->count; i++)
			if (strcmp(name, names->name[i]) == 0)
				found = names->name[i];
	fclose(table);
	return found;
}

const char *shared_file_left(void)
{
	static char found[256];
	struct dirent *entry;
	DIR *folder = opendir("/dev/shm");

	if (!folder)
		return NULL;
	found[0] = '\0';
	while ((entry = readdir(folder)))
		if (strstr(entry->d_name, "verbatim") || strncmp(entry->d_name, "vb_", 3) == 0)
			snprintf(found, sizeof(found), "%s", entry->d_name);
	closedir(folder);
	return found[0] ? found : NULL;
}

int descriptors_open(void)
{
	DIR *folder = opendir("/proc/self/fd");
	int count = 0;

	CHECK(folder);
	while (readdir(folder))
		count++;
	closedir(folder);
	/* Not ".", "..", and the descriptor of the folder itself. */
	return count - 3;
}
