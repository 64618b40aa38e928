/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Old journals: each process that makes one removes those that nobody needs any more. */
#include "base/journal.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define MANY     64
#define TOO_MANY 256
#define DAY      86400
#define MINUTES  600

static bool is_number(const char *name)
{
	if (!*name)
		return false;
	while (isdigit((unsigned char)*name))
		name++;
	return !*name;
}

static unsigned int count_in(DIR *dir)
{
	const struct dirent *entry;
	unsigned int count = 0;

	while ((entry = readdir(dir)))
		count += is_number(entry->d_name);
	rewinddir(dir);
	return count;
}

/*
 * A number that is in use again keeps the journal of its former process for longer, and one of
 * another container's process looks as if it had ended: its journal is lost only where there are
 * many.
 */
static bool has_ended(const char *name)
{
	return kill((pid_t)strtol(name, NULL, 10), 0) && errno == ESRCH;
}

void vb_journal_sweep(const char *folder)
{
	DIR *dir = opendir(folder);
	const struct dirent *entry;
	unsigned int count;
	time_t limit;

	if (!dir)
		return;
	count = count_in(dir);
	limit = count > TOO_MANY ? 0 : count > MANY ? MINUTES : DAY;
	while ((entry = readdir(dir))) {
		struct stat st;

		if (is_number(entry->d_name) && has_ended(entry->d_name) &&
		    !fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) &&
		    time(NULL) - st.st_mtime >= limit)
			unlinkat(dirfd(dir), entry->d_name, 0);
	}
	closedir(dir);
}
