/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Writes a CDI specification as JSON. */
#include "view/cdi.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "library_dir.h"
#include "view/tree.h"
#include "view/view.h"
#include "view/why.h"

#define VERSION "0.6.0" /* the first one with hostPath of device nodes is 0.5.0 */
#define KIND    "verbatim/hca"
#define FILES   "dev/infiniband"
#define PREFIX  "uverbs_"
#define NODE    "/dev/null"

struct places {
	char view[PATH_MAX];
	char libraries[PATH_MAX];
	char program[PATH_MAX];
};

/* A string of JSON (RFC 8259, 7). */
static void put_string(FILE *to, const char *text)
{
	fputc('"', to);
	for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
		if (*c == '"' || *c == '\\')
			fprintf(to, "\\%c", *c);
		else if (*c < ' ')
			fprintf(to, "\\u%04x", *c);
		else
			fputc(*c, to);
	}
	fputc('"', to);
}

static void put_field(FILE *to, const char *name, const char *value, const char *end)
{
	put_string(to, name);
	fputs(": ", to);
	put_string(to, value);
	fputs(end, to);
}

static void put_variable(FILE *to, const char *name, const char *value, const char *end)
{
	char text[3 * PATH_MAX];

	put_string(to, tree_path(text, sizeof(text), "%s=%s", name, value));
	fputs(end, to);
}

static void put_mount(FILE *to, const char *path, bool writable, const char *end)
{
	fputs("{", to);
	put_field(to, "hostPath", path, ", ");
	put_field(to, "containerPath", path, ", ");
	fprintf(to, "\"options\": [\"rbind\", \"nosuid\", \"nodev\", \"%s\"]}%s",
		writable ? "rw" : "ro", end);
}

static void put_node(FILE *to, const char *file, const char *end)
{
	char path[PATH_MAX];

	fputs("{", to);
	put_field(to, "path", tree_path(path, sizeof(path), "/" FILES "/%s", file), ", ");
	put_field(to, "hostPath", NODE, ", \"type\": \"c\", \"major\": 1, \"minor\": 3, ");
	put_field(to, "permissions", "rw", "}");
	fputs(end, to);
}

/* Letters, digits and a few signs, which are neither first nor last. */
static void put_name(FILE *to, const char *file)
{
	char name[NAME_MAX + 1];
	size_t length = strlen(tree_path(name, sizeof(name), "vb_%s", file + strlen(PREFIX)));

	for (size_t i = 0; i < length; i++) {
		if (!isalnum((unsigned char)name[i]) && !strchr("_.-", name[i]))
			name[i] = '-';
	}
	if (!isalnum((unsigned char)name[length - 1]))
		name[length - 1] = '0';
	put_field(to, "name", name, ", ");
}

/* What each device of the view needs besides its node. */
static void put_view(FILE *to, const struct places *p)
{
	char preload[3 * PATH_MAX + 64];

	fputs("\"mounts\": [", to);
	put_mount(to, p->libraries, false, ", ");
	put_mount(to, p->view, true, "], \"env\": [");
	tree_path(preload, sizeof(preload),
		  "%s/" LIBRARY_VERBS ":%s/" LIBRARY_CM ":%s/" LIBRARY_VIEW, p->libraries,
		  p->libraries, p->libraries);
	put_variable(to, VIEW_VARIABLE, p->view, ", ");
	put_variable(to, "LD_PRELOAD", preload, ", ");
	put_variable(to, "LD_LIBRARY_PATH", p->libraries, "]");
}

static int is_ours(const struct dirent *e)
{
	return !strncmp(e->d_name, PREFIX, strlen(PREFIX));
}

static void put_device(FILE *to, const struct places *p, struct dirent **files, int count)
{
	fputs("\"containerEdits\": {\"deviceNodes\": [", to);
	for (int i = 0; i < count; i++)
		put_node(to, files[i]->d_name, i + 1 < count ? ", " : "");
	fputs("], ", to);
	put_view(to, p);
	fputs("}}", to);
}

static void put_devices(FILE *to, const struct places *p, struct dirent **files, int count)
{
	for (int i = 0; i < count; i++) {
		fputs("    {", to);
		put_name(to, files[i]->d_name);
		put_device(to, p, files + i, 1);
		fputs(",\n", to);
	}
	if (count) {
		fputs("    {\"name\": \"all\", ", to);
		put_device(to, p, files, count);
		fputs(",\n", to);
	}
	fputs("    {\"name\": \"run\", \"containerEdits\": {\"mounts\": [", to);
	put_mount(to, p->program, false, ", ");
	put_mount(to, p->libraries, false, "]}}\n");
}

static int find_places(struct places *p, const char *dir)
{
	ssize_t n = readlink("/proc/self/exe", p->program, sizeof(p->program) - 1);
	int err = library_dir(p->libraries, sizeof(p->libraries));

	if (err)
		return view_fail(err, "no folder with " LIBRARY_VERBS);
	if (n < 0)
		return view_fail(-errno, "cannot read /proc/self/exe");
	p->program[n] = '\0';
	return realpath(dir, p->view) ? 0 : view_fail(-errno, "%s", dir);
}

int cdi_write(FILE *to, const char *dir)
{
	struct places p;
	struct dirent **files = NULL;
	char path[PATH_MAX];
	int err = find_places(&p, dir);
	int count;

	if (err)
		return err;
	count = scandir(tree_path(path, sizeof(path), "%s/" FILES, p.view), &files, is_ours,
			alphasort);
	if (count < 0)
		return view_fail(-errno, "%s", path);
	fprintf(to, "{\n  \"cdiVersion\": \"" VERSION "\",\n  \"kind\": \"" KIND
		    "\",\n  \"devices\": [\n");
	put_devices(to, &p, files, count);
	fputs("  ]\n}\n", to);
	for (int i = 0; i < count; i++)
		free(files[i]);
	free(files);
	return fflush(to) || ferror(to) ? view_fail(-errno, "standard output") : 0;
}
