/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Calls every path function that the preloaded library replaces, by its symbol, and prints one line
 * a call: result, errno, and what was read. A run that shows the view by the preload and a run that
 * calls the functions with the files' own paths must print the same.
 *
 * usage: paths inside FRONT    files of the view; FRONT stands before their paths, and is cut from
 *                              every name that is printed
 *        paths outside FILE... other files
 *        paths told            names that the kernel gives of files in the view
 *        paths beside          a list of the directory above, which does not show the view's
 *        paths storm           threads, children of fork(2) and a signal handler on a small stack at once
 *        paths load LIBRARY    the function early_read() of a library that is loaded while it runs
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <ftw.h>
#include <glob.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/time.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TEXT = 65536, STAT_VERSION = 1, LINES = 256 };

static const char *front = "";

typedef void (*any_fn)(void);

/* A function by its symbol, of a version if one is named; errno is 0 when it is called. */
static any_fn symbol(const char *name, const char *version)
{
	void *found = version ? dlvsym(RTLD_DEFAULT, name, version) : dlsym(RTLD_DEFAULT, name);
	any_fn function;

	if (!found) {
		printf("%s %s: not in this C library\n", name, version ? version : "");
		exit(1);
	}
	memcpy(&function, &found, sizeof(function));
	errno = 0;
	return function;
}

/* Calls through a pointer of the function's type. */
#define CALL(name, version, type, ...) (((type)symbol(name, version))(__VA_ARGS__))

/* The text without the front, wherever it stands. */
static const char *without_front(const char *text)
{
	static char out[TEXT];
	size_t length = strlen(front);
	char *to = out;

	while (*text && to < out + sizeof(out) - 1) {
		if (length && !strncmp(text, front, length))
			text += length;
		else
			*to++ = *text++;
	}
	*to = '\0';
	return out;
}

static void say(const char *function, const char *path, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static void say(const char *function, const char *path, const char *format, ...)
{
	char text[TEXT];
	int err = errno;
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	printf("%s(%s): ", function, without_front(path ? path : "NULL"));
	printf("%s, errno %d\n", without_front(text), err);
}

static int compare_lines(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Lines in the order of the alphabet, since directories have none. */
struct lines {
	char *line[LINES];
	size_t count;
};

static void lines_add(struct lines *lines, const char *text)
{
	if (lines->count < LINES)
		lines->line[lines->count++] = strdup(text);
}

static const char *lines_text(struct lines *lines)
{
	static char text[TEXT];

	text[0] = '\0';
	qsort(lines->line, lines->count, sizeof(lines->line[0]), compare_lines);
	for (size_t i = 0; i < lines->count; i++) {
		if (strlen(text) + strlen(lines->line[i]) + 2 < sizeof(text)) {
			strcat(text, " ");
			strcat(text, lines->line[i]);
		}
		free(lines->line[i]);
	}
	lines->count = 0;
	return text;
}

static void say_fd(const char *function, const char *path, int fd)
{
	char text[64] = "";
	int err = errno;
	ssize_t length;

	if (fd < 0) {
		say(function, path, "-1");
		return;
	}
	length = read(fd, text, sizeof(text) - 1);
	if (length < 0)
		snprintf(text, sizeof(text), "error %d", errno);
	close(fd);
	errno = err;
	say(function, path, "opened, \"%s\"", text);
}

static void say_file(const char *function, const char *path, FILE *file)
{
	char text[64] = "";
	int err = errno;

	if (!file) {
		say(function, path, "NULL");
		return;
	}
	if (!fgets(text, sizeof(text), file))
		text[0] = '\0';
	fclose(file);
	errno = err;
	say(function, path, "opened, \"%s\"", text);
}

typedef int (*open_fn)(const char *, int, ...);
typedef int (*openat_fn)(int, const char *, int, ...);

static void try_open(const char *path)
{
	static const char *const plain[] = {"open", "open64", "__open_2", "__open64_2"};
	static const char *const at[] = {"openat", "openat64", "__openat_2", "__openat64_2"};
	static const char *const streams[] = {"fopen", "fopen64"};
	static const char *const again[] = {"freopen", "freopen64"};

	for (size_t i = 0; i < 4; i++) {
		say_fd(plain[i], path, CALL(plain[i], NULL, open_fn, path, O_RDONLY | O_CLOEXEC));
		say_fd(at[i], path,
		       CALL(at[i], NULL, openat_fn, AT_FDCWD, path, O_RDONLY | O_CLOEXEC));
	}
	say_fd("open, to write", path, CALL("open", NULL, open_fn, path, O_WRONLY | O_CLOEXEC));
	for (size_t i = 0; i < 2; i++) {
		say_file(streams[i], path,
			 CALL(streams[i], NULL, FILE * (*)(const char *, const char *), path,
			      "re"));
		say_file(again[i], path,
			 CALL(again[i], NULL, FILE * (*)(const char *, const char *, FILE *), path,
			      "re", fopen("/dev/null", "re")));
	}
}

static void say_stat(const char *function, const char *path, int ret, const struct stat *st)
{
	if (ret)
		say(function, path, "%d", ret);
	else
		say(function, path, "mode %o, size %lld, inode %llu, device %llx", st->st_mode,
		    (long long)st->st_size, (unsigned long long)st->st_ino,
		    (unsigned long long)st->st_rdev);
}

typedef int (*stat_fn)(const char *, struct stat *);
typedef int (*fstatat_fn)(int, const char *, struct stat *, int);
typedef int (*xstat_fn)(int, const char *, struct stat *);
typedef int (*fxstatat_fn)(int, int, const char *, struct stat *, int);

static void try_stat(const char *path)
{
	static const char *const plain[] = {"stat", "stat64", "lstat", "lstat64"};
	static const char *const old[] = {"__xstat", "__xstat64", "__lxstat", "__lxstat64"};
	static const char *const at[] = {"fstatat", "fstatat64"};
	static const char *const old_at[] = {"__fxstatat", "__fxstatat64"};
	struct statx stx;
	struct stat st;
	int ret;

	for (size_t i = 0; i < 4; i++) {
		ret = CALL(plain[i], NULL, stat_fn, path, &st);
		say_stat(plain[i], path, ret, &st);
		ret = CALL(old[i], NULL, xstat_fn, STAT_VERSION, path, &st);
		say_stat(old[i], path, ret, &st);
	}
	for (size_t i = 0; i < 2; i++) {
		ret = CALL(at[i], NULL, fstatat_fn, AT_FDCWD, path, &st, AT_SYMLINK_NOFOLLOW);
		say_stat(at[i], path, ret, &st);
		ret = CALL(old_at[i], NULL, fxstatat_fn, STAT_VERSION, AT_FDCWD, path, &st, 0);
		say_stat(old_at[i], path, ret, &st);
	}
	ret = CALL("statx", NULL, int (*)(int, const char *, int, unsigned int, struct statx *),
		   AT_FDCWD, path, 0, STATX_BASIC_STATS, &stx);
	if (ret)
		say("statx", path, "%d", ret);
	else
		say("statx", path, "mode %o, inode %llu", stx.stx_mode,
		    (unsigned long long)stx.stx_ino);
}

static void try_access(const char *path)
{
	static const char *const names[] = {"access", "eaccess", "euidaccess"};

	for (int mode = F_OK; mode <= R_OK; mode++) {
		for (size_t i = 0; i < 3; i++)
			say(names[i], path, "mode %d: %d", mode,
			    CALL(names[i], NULL, int (*)(const char *, int), path, mode));
		say("faccessat", path, "mode %d: %d", mode,
		    CALL("faccessat", NULL, int (*)(int, const char *, int, int), AT_FDCWD, path,
			 mode, AT_EACCESS));
	}
}

static void try_about(const char *path)
{
	static const char *const fs[] = {"statfs", "statfs64"};
	static const char *const vfs[] = {"statvfs", "statvfs64"};
	struct statfs sfs;
	struct statvfs svfs;
	char value[256];
	int watch = inotify_init1(IN_CLOEXEC);
	long ret;

	for (size_t i = 0; i < 2; i++) {
		ret = CALL(fs[i], NULL, int (*)(const char *, struct statfs *), path, &sfs);
		say(fs[i], path, "%ld, type %lx", ret, ret ? 0 : (long)sfs.f_type);
		ret = CALL(vfs[i], NULL, int (*)(const char *, struct statvfs *), path, &svfs);
		say(vfs[i], path, "%ld, names of %lu", ret, ret ? 0 : svfs.f_namemax);
	}
	say("pathconf", path, "%ld",
	    CALL("pathconf", NULL, long (*)(const char *, int), path, _PC_NAME_MAX));
	say("getxattr", path, "%zd",
	    CALL("getxattr", NULL, ssize_t(*)(const char *, const char *, void *, size_t), path,
		 "user.none", value, sizeof(value)));
	say("lgetxattr", path, "%zd",
	    CALL("lgetxattr", NULL, ssize_t(*)(const char *, const char *, void *, size_t), path,
		 "user.none", value, sizeof(value)));
	say("listxattr", path, "%zd",
	    CALL("listxattr", NULL, ssize_t(*)(const char *, char *, size_t), path, value,
		 sizeof(value)));
	say("llistxattr", path, "%zd",
	    CALL("llistxattr", NULL, ssize_t(*)(const char *, char *, size_t), path, value,
		 sizeof(value)));
	say("inotify_add_watch", path, "%d",
	    CALL("inotify_add_watch", NULL, int (*)(int, const char *, uint32_t), watch, path,
		 IN_MODIFY));
	close(watch);
}

static void say_name(const char *function, const char *path, const char *name)
{
	say(function, path, "%s", name ? name : "NULL");
}

static void try_names(const char *path)
{
	char room[PATH_MAX];
	char *made;
	ssize_t n;

	memset(room, 0, sizeof(room));
	say_name("realpath", path,
		 CALL("realpath", "GLIBC_2.3", char *(*)(const char *, char *), path, room));
	say("realpath, buffer", path, "%s", errno == ENOENT ? room : "");
	memset(room, 0, sizeof(room));
	say_name("realpath, old", path,
		 CALL("realpath", "GLIBC_2.2.5", char *(*)(const char *, char *), path, room));
	say_name("__realpath_chk", path,
		 CALL("__realpath_chk", NULL, char *(*)(const char *, char *, size_t), path, room,
		      sizeof(room)));
	made = CALL("realpath", "GLIBC_2.3", char *(*)(const char *, char *), path, NULL);
	say_name("realpath of NULL", path, made);
	free(made);
	made = CALL("canonicalize_file_name", NULL, char *(*)(const char *), path);
	say_name("canonicalize_file_name", path, made);
	free(made);
	n = CALL("readlink", NULL, ssize_t(*)(const char *, char *, size_t), path, room,
		 sizeof(room));
	say("readlink", path, "%zd %.*s", n, n < 0 ? 0 : (int)n, room);
	n = CALL("__readlink_chk", NULL, ssize_t(*)(const char *, char *, size_t, size_t), path,
		 room, 7, sizeof(room));
	say("__readlink_chk", path, "%zd %.*s", n, n < 0 ? 0 : (int)n, room);
	n = CALL("readlinkat", NULL, ssize_t(*)(int, const char *, char *, size_t), AT_FDCWD, path,
		 room, sizeof(room));
	say("readlinkat", path, "%zd %.*s", n, n < 0 ? 0 : (int)n, room);
	n = CALL("__readlinkat_chk", NULL, ssize_t(*)(int, const char *, char *, size_t, size_t),
		 AT_FDCWD, path, room, sizeof(room), sizeof(room));
	say("__readlinkat_chk", path, "%zd %.*s", n, n < 0 ? 0 : (int)n, room);
}

static void say_list(const char *function, const char *path, int count, struct dirent **list)
{
	struct lines lines = {.count = 0};
	int err = errno;

	for (int i = 0; i < count; i++) {
		lines_add(&lines, list[i]->d_name);
		free(list[i]);
	}
	if (count >= 0)
		free(list);
	errno = err;
	say(function, path, "%d%s", count, lines_text(&lines));
}

typedef int (*scan_fn)(const char *, struct dirent ***, void *, void *);
typedef int (*scanat_fn)(int, const char *, struct dirent ***, void *, void *);

static void try_list(const char *path)
{
	static const char *const plain[] = {"scandir", "scandir64"};
	static const char *const at[] = {"scandirat", "scandirat64"};
	struct lines lines = {.count = 0};
	struct dirent **list = NULL;
	DIR *dir = CALL("opendir", NULL, DIR * (*)(const char *), path);
	int count;

	if (!dir) {
		say("opendir", path, "NULL");
	} else {
		const struct dirent *entry;

		while ((entry = readdir(dir)))
			lines_add(&lines, entry->d_name);
		closedir(dir);
		say("opendir", path, "opened%s", lines_text(&lines));
	}
	for (size_t i = 0; i < 2; i++) {
		count = CALL(plain[i], NULL, scan_fn, path, &list, NULL, NULL);
		say_list(plain[i], path, count, list);
		count = CALL(at[i], NULL, scanat_fn, AT_FDCWD, path, &list, NULL, NULL);
		say_list(at[i], path, count, list);
	}
}

static struct lines walked;

static int walked_ftw(const char *path, const struct stat *st, int kind)
{
	char text[PATH_MAX + 64];

	(void)st;
	snprintf(text, sizeof(text), "%s:%d", path, kind);
	lines_add(&walked, without_front(text));
	return 0;
}

static int walked_nftw(const char *path, const struct stat *st, int kind, struct FTW *place)
{
	char text[PATH_MAX + 64];

	(void)st;
	snprintf(text, sizeof(text), "%s:%d:%s:%d", path, kind, path + place->base, place->level);
	lines_add(&walked, without_front(text));
	return 0;
}

typedef int (*ftw_fn)(const char *, __ftw_func_t, int);
typedef int (*nftw_fn)(const char *, __nftw_func_t, int, int);
typedef FTS *(*fts_open_fn)(char *const *, int, void *);

static void try_fts(const char *path, const char *open_name, const char *read_name,
		    const char *children_name)
{
	char *paths[] = {(char *)(uintptr_t)path, NULL};
	FTS *fts = CALL(open_name, NULL, fts_open_fn, paths, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
	FTSENT *entry;
	char text[PATH_MAX + 64];

	if (!fts) {
		say(open_name, path, "NULL");
		return;
	}
	while ((entry = CALL(read_name, NULL, FTSENT * (*)(FTS *), fts))) {
		snprintf(text, sizeof(text), "%s:%d:%zu", without_front(entry->fts_path),
			 entry->fts_info,
			 entry->fts_pathlen - (strncmp(entry->fts_path, front, strlen(front))
						       ? 0
						       : strlen(front)));
		lines_add(&walked, text);
		if (entry->fts_info != FTS_D)
			continue;
		for (FTSENT *child =
			     CALL(children_name, NULL, FTSENT * (*)(FTS *, int), fts, FTS_NAMEONLY);
		     child; child = child->fts_link) {
			snprintf(text, sizeof(text), "child:%s", child->fts_name);
			lines_add(&walked, text);
		}
	}
	fts_close(fts);
	errno = 0;
	say(open_name, path, "walked%s", lines_text(&walked));
}

static void try_walk(const char *path)
{
	static const char *const plain[] = {"ftw", "ftw64"};
	static const char *const with_place[] = {"nftw", "nftw64"};
	static const char *const versions[] = {"GLIBC_2.2.5", "GLIBC_2.3.3"};
	int ret;

	for (size_t i = 0; i < 2; i++) {
		ret = CALL(plain[i], NULL, ftw_fn, path, walked_ftw, 8);
		say(plain[i], path, "%d%s", ret, lines_text(&walked));
		for (size_t v = 0; v < 2; v++) {
			ret = CALL(with_place[i], versions[v], nftw_fn, path, walked_nftw, 8,
				   FTW_PHYS);
			say(with_place[i], path, "%d%s", ret, lines_text(&walked));
			ret = CALL(with_place[i], versions[v], nftw_fn, path, walked_nftw, 8,
				   FTW_PHYS | FTW_CHDIR);
			say(with_place[i], path, "changing directory: %d%s", ret,
			    lines_text(&walked));
		}
	}
	try_fts(path, "fts_open", "fts_read", "fts_children");
	try_fts(path, "fts64_open", "fts64_read", "fts64_children");
}

typedef int (*glob_fn)(const char *, int, int (*)(const char *, int), glob_t *);

static void try_glob(const char *pattern, int flags)
{
	static const char *const names[] = {"glob", "glob64"};
	static const char *const versions[] = {"GLIBC_2.2.5", "GLIBC_2.27"};

	for (size_t i = 0; i < 2; i++) {
		for (size_t v = 0; v < 2; v++) {
			struct lines lines = {.count = 0};
			glob_t found;
			int ret =
				CALL(names[i], versions[v], glob_fn, pattern, flags, NULL, &found);

			for (size_t n = 0; !ret && n < found.gl_pathc; n++)
				lines_add(&lines, found.gl_pathv[n]);
			if (!ret)
				globfree(&found);
			errno = 0;
			say(names[i], pattern, "%s: %d%s", versions[v], ret, lines_text(&lines));
		}
	}
}

/* A directory as the working one, what lies in it by relative names, and the way back. */
static void try_chdir(const char *path)
{
	char room[PATH_MAX];
	int before = open(".", O_PATH | O_CLOEXEC);
	int ret = CALL("chdir", NULL, int (*)(const char *), path);
	char *made;

	say("chdir", path, "%d", ret);
	if (!ret) {
		say_name("getcwd", path,
			 CALL("getcwd", NULL, char *(*)(char *, size_t), room, sizeof(room)));
		say_name("__getcwd_chk", path,
			 CALL("__getcwd_chk", NULL, char *(*)(char *, size_t, size_t), room,
			      sizeof(room), sizeof(room)));
		say_name("getwd", path, CALL("getwd", NULL, char *(*)(char *), room));
		say_name("__getwd_chk", path,
			 CALL("__getwd_chk", NULL, char *(*)(char *, size_t), room, sizeof(room)));
		made = CALL("get_current_dir_name", NULL, char *(*)(void));
		say_name("get_current_dir_name", path, made);
		free(made);
		say_name("realpath of .", path,
			 CALL("realpath", "GLIBC_2.3", char *(*)(const char *, char *), ".", room));
		try_list(".");
		try_list("./");
		try_open("vendor");
		try_open("ports/1/state");
		try_open("device/vendor");
		try_open("../vendor");
		try_list("../infiniband");
	}
	if (before >= 0 && (fchdir(before) || close(before)))
		exit(1);
}

/* Files by names that are relative to an open directory. */
static void try_at(const char *path)
{
	static const char *const names[] = {
		".", "vendor", "ports/1/state", "device/vendor", "../vendor", "none", ""};
	int dir = CALL("open", NULL, open_fn, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char room[PATH_MAX];
	struct stat st;
	ssize_t n;
	int ret;

	for (size_t i = 0; dir >= 0 && i < sizeof(names) / sizeof(names[0]); i++) {
		say_fd("openat", names[i],
		       CALL("openat", NULL, openat_fn, dir, names[i], O_RDONLY | O_CLOEXEC));
		ret = CALL("fstatat", NULL, fstatat_fn, dir, names[i], &st, AT_EMPTY_PATH);
		say_stat("fstatat", names[i], ret, &st);
		n = CALL("readlinkat", NULL, ssize_t(*)(int, const char *, char *, size_t), dir,
			 names[i], room, sizeof(room));
		say("readlinkat", names[i], "%zd %.*s", n, n < 0 ? 0 : (int)n, room);
	}
	if (dir >= 0)
		close(dir);
}

static void try_all(const char *path)
{
	try_open(path);
	try_stat(path);
	try_access(path);
	try_about(path);
	try_names(path);
	try_list(path);
}

static const char *fronted(const char *path)
{
	static char text[PATH_MAX];

	snprintf(text, sizeof(text), "%s%s", front, path);
	return text;
}

static int run_inside(void)
{
	static const char *const files[] = {
		"/sys/class/infiniband",
		"/sys/class/infiniband/",
		"/sys/class/infiniband/vb_test0",
		"/sys/class/infiniband/vb_test0/ports/1/state",
		"/sys/class/infiniband/vb_test0/ports/1/state/x",
		"/sys/class/infiniband/vb_test0/device",
		"/sys/class/infiniband/vb_test0/device/",
		"/sys/class/infiniband/vb_test0/../..",
		"/sys/class/infiniband/vb_test0/none",
		"/sys/class/infiniband/none",
		"/sys//class/./infiniband//vb_test0/./ports",
		"/sys/class/infiniband_verbs/uverbs_test0/ibdev",
		"/sys/class/infiniband_verbs/abi_version",
		"/sys/devices/pci7662:00",
		"/sys/devices/pci7662:00/7662:02:00.0/vendor",
		"/sys/bus/pci/devices/7662:02:00.0",
		"/sys/bus/pci/devices/7662:02:00.0/vendor",
		"/dev/infiniband",
		"/dev/infiniband/uverbs_test0",
		"/dev/infiniband/none",
	};
	static const char *const dirs[] = {"/sys/class/infiniband",
					   "/sys/class/infiniband/vb_test0",
					   "/sys/devices/pci7662:00/7662:02:00.0",
					   "/dev/infiniband"};
	static const char *const patterns[] = {
		"/sys/class/infiniband/*",     "/sys/class/infiniband/vb_*/ports/*/state",
		"/sys/class/infiniband/none*", "/sys/bus/pci/devices/7662*/vendor",
		"/dev/infiniband/uverbs*",     "/sys/class/infiniband/{vb_test0,none}/ports",
	};

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		try_all(fronted(files[i]));
	for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++) {
		try_walk(fronted(dirs[i]));
		try_chdir(fronted(dirs[i]));
		try_at(fronted(dirs[i]));
	}
	for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++)
		try_glob(fronted(patterns[i]), GLOB_BRACE | GLOB_MARK);
	return 0;
}

static int run_outside(char **files)
{
	for (; *files; files++) {
		try_all(*files);
		try_glob(*files, 0);
	}
	try_chdir("/");
	try_chdir("/none");
	try_at("/");
	/* No addresses of strings. */
	for (uintptr_t at = 0; at < 3; at++) {
		const char *bad = (const char *)(at == 2 ? UINTPTR_MAX : at);
		struct stat st;

		say_fd("open", "", CALL("open", NULL, open_fn, bad, O_RDONLY));
		say("access", "", "%d",
		    CALL("access", NULL, int (*)(const char *, int), bad, F_OK));
		say("stat", "", "%d", CALL("stat", NULL, stat_fn, bad, &st));
		say("chdir", "", "%d", CALL("chdir", NULL, int (*)(const char *), bad));
	}
	return 0;
}

static int faults;

static void expect(const char *what, const char *got, const char *want)
{
	if (!got || strcmp(got, want) != 0) {
		printf("%s: %s, expected %s\n", what, got ? got : "NULL", want);
		faults++;
	}
}

/* The working directory by a link of the kernel's, into buffers of every size. */
static void told_in_parts(const char *want)
{
	char room[PATH_MAX];
	char part[PATH_MAX];

	for (size_t size = 1; size < 256; size++) {
		ssize_t n = readlink("/proc/self/cwd", room, size);
		size_t length = strlen(want) < size ? strlen(want) : size;

		snprintf(part, sizeof(part), "%.*s", (int)(n < 0 ? 0 : n), room);
		if (n != (ssize_t)length || strncmp(part, want, length) != 0) {
			printf("readlink of %zu bytes: %zd %s\n", size, n, part);
			faults++;
		}
	}
	for (size_t size = 1; size < 256; size++) {
		const char *got = getcwd(room, size);

		if (size > strlen(want) ? !got || strcmp(got, want) : got || errno != ERANGE) {
			printf("getcwd of %zu bytes: %s, errno %d\n", size, got ? got : "NULL",
			       errno);
			faults++;
		}
	}
}

static int run_told(void)
{
	static const char dir[] = "/sys/devices/pci7662:00/7662:02:00.0";
	char room[PATH_MAX];
	struct stat st;
	int fd;

	/* Out of the view by the directories above, and into it from there. */
	if (chdir("/sys/class/infiniband/vb_test0/device"))
		return 1;
	told_in_parts(dir);
	expect("realpath(..)", realpath("..", room), "/sys/devices/pci7662:00");
	expect("realpath(../..)", realpath("../..", room), "/sys/devices");
	expect("realpath(../../../class)", realpath("../../../class", room), "/sys/class");
	fd = open("../../../class/infiniband/vb_test0/ports/1/state", O_RDONLY);
	if (fd < 0 || close(fd) || chdir("../..") || !getcwd(room, sizeof(room)))
		faults++;
	expect("getcwd after chdir(../..)", room, "/sys/devices");
	if (chdir("pci7662:00") || !getcwd(room, sizeof(room)))
		faults++;
	expect("getcwd after chdir(pci7662:00)", room, "/sys/devices/pci7662:00");
	if (chdir("/") || stat("sys/class/infiniband/vb_test0/ports", &st)) {
		printf("relative to /: errno %d\n", errno);
		faults++;
	}
	fd = open("/sys/class", O_RDONLY | O_DIRECTORY);
	if (fd < 0 || fstatat(fd, "infiniband/vb_test0/ports", &st, 0) || close(fd)) {
		printf("relative to /sys/class: errno %d\n", errno);
		faults++;
	}
	expect("realpath(/sys/class/infiniband/..)", realpath("/sys/class/infiniband/..", room),
	       "/sys/class");
	expect("realpath(/sys/class/infiniband/../net)",
	       realpath("/sys/class/infiniband/../net", room), "/sys/class/net");
	return faults != 0;
}

static int run_beside(void)
{
	glob_t found;

	return glob("/sys/class/infiniban[d]/vb_test0", 0, NULL, &found) != GLOB_NOMATCH;
}

/* Opens and reads the state of the port; any thread, child or signal handler may. */
static bool state_is_read(void)
{
	char text[16] = "";
	int fd = open("/sys/class/infiniband/vb_test0/ports/1/state", O_RDONLY | O_CLOEXEC);
	bool read_it = fd >= 0 && read(fd, text, sizeof(text) - 1) > 0 &&
		       !strcmp(text, "4: ACTIVE\n");

	if (fd >= 0)
		close(fd);
	return read_it;
}

enum { STORM_THREADS = 4, STORM_OPENS = 2000, STORM_CHILDREN = 50, SMALL_STACK = 16384 };

static volatile sig_atomic_t signals_seen, signals_failed;
static atomic_int opens_failed;

static void on_signal(int signal_number)
{
	int before = errno;

	(void)signal_number;
	signals_seen++;
	signals_failed |= !state_is_read();
	errno = before;
}

static void *open_often(void *argument)
{
	stack_t stack = {.ss_sp = malloc(SMALL_STACK), .ss_size = SMALL_STACK};
	struct stat st;

	(void)argument;
	sigaltstack(&stack, NULL);
	for (int i = 0; i < STORM_OPENS; i++) {
		if (!state_is_read() || stat("/etc/passwd", &st) || access("/none", F_OK) != -1)
			atomic_fetch_add(&opens_failed, 1);
	}
	stack.ss_flags = SS_DISABLE;
	sigaltstack(&stack, NULL);
	free(stack.ss_sp);
	return NULL;
}

static int run_storm(void)
{
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK | SA_RESTART};
	struct itimerval often = {.it_interval = {.tv_usec = 500}, .it_value = {.tv_usec = 500}};
	struct itimerval never = {.it_value = {.tv_usec = 0}};
	pthread_t threads[STORM_THREADS];
	int failed = 0;

	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	for (int i = 0; i < STORM_THREADS; i++)
		failed |= pthread_create(&threads[i], NULL, open_often, NULL);
	for (int i = 0; i < STORM_CHILDREN; i++) {
		pid_t child = fork();
		int status;

		if (!child)
			_exit(!state_is_read());
		while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
			;
		failed |= child < 0 || status;
	}
	for (int i = 0; i < STORM_THREADS; i++)
		pthread_join(threads[i], NULL);
	while (!signals_seen)
		pause();
	setitimer(ITIMER_REAL, &never, NULL);
	printf("children %s, %d opens failed, in the signal handler %s\n",
	       failed ? "failed" : "read it", atomic_load(&opens_failed),
	       signals_failed ? "too" : "none");
	return failed || opens_failed || signals_failed;
}

static int run_load(const char *library, int flags)
{
	void *handle = dlopen(library, RTLD_NOW | flags);
	void *found = handle ? dlsym(handle, "early_read") : NULL;
	void (*early_read)(const char *);

	if (!found) {
		printf("%s\n", dlerror());
		return 1;
	}
	memcpy(&early_read, &found, sizeof(early_read));
	early_read("loaded: ");
	return 0;
}

int main(int argc, char **argv)
{
	static char buffer[BUFSIZ];
	const char *what = argc > 1 ? argv[1] : "";

	setvbuf(stdout, buffer, _IOLBF, sizeof(buffer));
	if (!strcmp(what, "inside") && argc == 3) {
		front = argv[2];
		return run_inside();
	}
	if (!strcmp(what, "outside"))
		return run_outside(argv + 2);
	if (!strcmp(what, "told"))
		return run_told();
	if (!strcmp(what, "storm"))
		return run_storm();
	if (!strcmp(what, "beside"))
		return run_beside();
	if (!strcmp(what, "load") && argc == 3)
		return run_load(argv[2], RTLD_LOCAL);
	if (!strcmp(what, "load-deep") && argc == 3)
		return run_load(argv[2], RTLD_LOCAL | RTLD_DEEPBIND);
	return 0;
}
