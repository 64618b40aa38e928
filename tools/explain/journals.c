/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Reading journals: whose they are, whether they are sound, what they hold. */
#include "explain/journals.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/runtime_dir.h"

#define START_TIME 22 /* the field of /proc/PID/stat, proc(5) */

struct image {
	struct vb_journal_header header;
	struct vb_failure_record slots[VB_FAILURE_SLOTS];
};

int journals_folder(char *path, size_t size)
{
	int err = vb_runtime_dir(path, size);

	if (err)
		return err;
	if (strlen(path) + sizeof("/" VB_JOURNAL_FOLDER) > size)
		return -ENAMETOOLONG;
	strcat(path, "/" VB_JOURNAL_FOLDER);
	return 0;
}

/* Only the user's own ordinary file of the right size is read; a FIFO would make us wait. */
static int read_image(const char *folder, int pid, struct image *image, time_t *changed)
{
	char path[PATH_MAX];
	struct stat st;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "%s/%d", folder, pid);
	fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return errno == ELOOP ? -EBADMSG : -errno;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_uid != geteuid()) {
		close(fd);
		return -EBADMSG;
	}
	n = read(fd, image, sizeof(*image));
	close(fd);
	*changed = st.st_mtime;
	return n == (ssize_t)sizeof(*image) && image->header.magic == VB_JOURNAL_MAGIC &&
			       image->header.pid == pid
		       ? 0
		       : -EBADMSG;
}

/* 0: there is no such process. */
static uint64_t start_time_of(int pid)
{
	char path[64];
	char text[1024];
	char *at;
	size_t n;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	f = fopen(path, "re");
	if (!f)
		return 0;
	n = fread(text, 1, sizeof(text) - 1, f);
	fclose(f);
	text[n] = '\0';
	at = strrchr(text, ')'); /* the end of field 2, which may hold anything */
	for (int field = 2; at && field < START_TIME; field++)
		at = strchr(at + 1, ' ');
	return at ? strtoull(at, NULL, 10) : 0;
}

/* Terminals obey control characters: none is printed. */
static void make_printable(char *text, size_t size)
{
	text[size - 1] = '\0';
	for (; *text; text++) {
		if (!isprint((unsigned char)*text))
			*text = '?';
	}
}

static int by_number(const void *a, const void *b)
{
	const struct vb_failure_record *x = a, *y = b;

	return (x->number > y->number) - (x->number < y->number);
}

static void take_records(struct journal *j, const struct image *image)
{
	j->count = 0;
	for (unsigned int i = 0; i < VB_FAILURE_SLOTS; i++) {
		struct vb_failure_record *r = &j->records[j->count];

		*r = image->slots[i];
		if (!r->number || r->kind >= VB_FAILURE_KINDS)
			continue;
		make_printable(r->text, sizeof(r->text));
		j->count++;
	}
	qsort(j->records, j->count, sizeof(j->records[0]), by_number);
}

int journal_read(const char *folder, int pid, struct journal *j)
{
	struct image image = {0};
	uint64_t started;
	int err = read_image(folder, pid, &image, &j->changed);

	if (err)
		return err;
	started = start_time_of(pid);
	j->pid = pid;
	j->alive = started && started == image.header.start_time;
	j->ended = image.header.ended;
	memcpy(j->name, image.header.name, sizeof(j->name));
	make_printable(j->name, sizeof(j->name));
	take_records(j, &image);
	return 0;
}

struct found {
	int pid;
	time_t changed;
};

static void insert(struct found found[JOURNALS_MAX], unsigned int *count, struct found one)
{
	unsigned int at = *count < JOURNALS_MAX ? (*count)++ : JOURNALS_MAX - 1;

	if (at == JOURNALS_MAX - 1 && found[at].pid && found[at].changed >= one.changed)
		return;
	for (; at && found[at - 1].changed < one.changed; at--)
		found[at] = found[at - 1];
	found[at] = one;
}

unsigned int journals_list(const char *folder, int pids[JOURNALS_MAX])
{
	struct found found[JOURNALS_MAX] = {{0}};
	unsigned int count = 0;
	const struct dirent *entry;
	DIR *dir = opendir(folder);

	while (dir && (entry = readdir(dir))) {
		char *end;
		long pid = strtol(entry->d_name, &end, 10);
		struct stat st;

		if (*end || pid < 1 || pid > INT_MAX ||
		    fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) ||
		    !S_ISREG(st.st_mode))
			continue;
		insert(found, &count, (struct found){(int)pid, st.st_mtime});
	}
	if (dir)
		closedir(dir);
	for (unsigned int i = 0; i < count; i++)
		pids[i] = found[i].pid;
	return count;
}
