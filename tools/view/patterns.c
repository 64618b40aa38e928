/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The values of VERBATIM_DEVICES that a view serves. */
#include "view/patterns.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "view/why.h"

#define NAME ".devices"

/* A value that is cut names other devices: then all are shown. */
static const char *own_value(void)
{
	const char *value = getenv(VIEW_PATTERNS);

	if (!value)
		return "";
	return strlen(value) < VIEW_PATTERN && !strchr(value, '\n') ? value : "*";
}

static bool has(const struct view_patterns *p, const char *value)
{
	for (uint32_t i = 0; i < p->count; i++) {
		if (!strcmp(p->text[i], value))
			return true;
	}
	return false;
}

static void add(struct view_patterns *p, const char *value)
{
	if (p->count == VIEW_PATTERNS_MOST)
		value = strcpy(p->text[--p->count], "*");
	if (has(p, value))
		return;
	snprintf(p->text[p->count++], VIEW_PATTERN, "%s", value);
}

static void read_file(const char *dir, struct view_patterns *p)
{
	char path[PATH_MAX], line[VIEW_PATTERN + 1];
	FILE *f;

	snprintf(path, sizeof(path), "%s/" NAME, dir);
	p->count = 0;
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = '\0';
		add(p, line);
	}
	if (f)
		fclose(f);
}

void view_patterns_read(const char *dir, struct view_patterns *p)
{
	read_file(dir, p);
	if (!p->count)
		add(p, own_value());
}

static int write_file(const char *dir, const struct view_patterns *p)
{
	char path[PATH_MAX], beside[PATH_MAX + 8];
	FILE *f;
	int err;

	snprintf(path, sizeof(path), "%s/" NAME, dir);
	snprintf(beside, sizeof(beside), "%s.new", path);
	f = fopen(beside, "we");
	if (!f)
		return view_fail(-errno, "cannot write %s", beside);
	for (uint32_t i = 0; i < p->count; i++)
		fprintf(f, "%s\n", p->text[i]);
	err = ferror(f) ? -EIO : 0;
	if (fclose(f))
		err = -errno;
	if (!err && rename(beside, path))
		err = -errno;
	if (!err)
		return 0;
	unlink(beside);
	return view_fail(err, "cannot write %s", path);
}

int view_patterns_add(const char *dir)
{
	struct view_patterns p;

	read_file(dir, &p);
	if (has(&p, own_value()))
		return 0;
	add(&p, own_value());
	return write_file(dir, &p);
}
