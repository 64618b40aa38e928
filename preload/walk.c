/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Walking through a tree of files. The C library names each file by the directory that the walk
 * started from, thus by its place; the program is given the name without.
 */
#include "hook.h"

#include <fts.h>
#include <ftw.h>
#include <stdlib.h>
#include <string.h>

/* ftw(3): the program's function is called with the other name. */

struct ftw_told {
	__ftw_func_t ftw;
	__nftw_func_t nftw;
};

/*
 * Of this thread's innermost walk, since these functions take no argument of the caller's. After a
 * walk that the function left by an exception, the next walk of the thread sets it anew.
 */
static __thread struct ftw_told told;

static int ftw_tell(const char *path, const struct stat *st, int kind)
{
	return told.ftw(path + view_front(path, strlen(path)), st, kind);
}

static int nftw_tell(const char *path, const struct stat *st, int kind, struct FTW *place)
{
	size_t front = view_front(path, strlen(path));
	struct FTW there = {.base = place->base - (int)front, .level = place->level};

	return told.nftw(path + front, st, kind, &there);
}

#define HOOK_WALK(name, member, tell, params, args)                              \
	HOOK_OUTLINE static int inside_##name params                             \
	{                                                                        \
		struct ftw_told before = told;                                   \
		char room[PATH_MAX];                                             \
		int result;                                                      \
                                                                                 \
		path = view_path(AT_FDCWD, path, room);                          \
		if (path == room && function) {                                  \
			told.member = function;                                  \
			function = tell;                                         \
		}                                                                \
		result = REAL(name) args;                                        \
		told = before;                                                   \
		return result;                                                   \
	}                                                                        \
	int hook_##name params                                                   \
	{                                                                        \
		return view_passes(path) ? REAL(name) args : inside_##name args; \
	}                                                                        \
	_Static_assert(1, "")

HOOK(int, ftw, (const char *path, __ftw_func_t function, int descriptors));
HOOK_WALK(ftw, ftw, ftw_tell, (const char *path, __ftw_func_t function, int descriptors),
	  (path, function, descriptors));
HOOK(int, ftw64, (const char *path, __ftw_func_t function, int descriptors));
HOOK_WALK(ftw64, ftw, ftw_tell, (const char *path, __ftw_func_t function, int descriptors),
	  (path, function, descriptors));

#define NFTW_PARAMS (const char *path, __nftw_func_t function, int descriptors, int flags)
#define NFTW_ARGS   (path, function, descriptors, flags)

#if HOOK_HAS_OLD
HOOK_OLD(int, nftw_old, nftw, "GLIBC_2.2.5", NFTW_PARAMS);
HOOK_WALK(nftw_old, nftw, nftw_tell, NFTW_PARAMS, NFTW_ARGS);
HOOK_OLD(int, nftw64_old, nftw64, "GLIBC_2.2.5", NFTW_PARAMS);
HOOK_WALK(nftw64_old, nftw, nftw_tell, NFTW_PARAMS, NFTW_ARGS);
#endif
HOOK_NOW(int, nftw_now, nftw, "GLIBC_2.3.3", NFTW_PARAMS);
HOOK_WALK(nftw_now, nftw, nftw_tell, NFTW_PARAMS, NFTW_ARGS);
HOOK_NOW(int, nftw64_now, nftw64, "GLIBC_2.3.3", NFTW_PARAMS);
HOOK_WALK(nftw64_now, nftw, nftw_tell, NFTW_PARAMS, NFTW_ARGS);

/*
 * fts(3): the entries belong to the walk, which appends to and cuts from their paths. They are
 * changed when the program gets them, and changed back before the walk goes on. A changed entry is
 * known by its path, which does not start where the walk's buffer does.
 *
 * On machines of 64 bits FTS64 and FTS are the same.
 */

static void entry_show(const FTS *fts, FTSENT *entry)
{
	size_t front;

	if (!entry || entry->fts_path != fts->fts_path)
		return;
	front = view_front(entry->fts_path, entry->fts_pathlen);
	entry->fts_path += front;
	entry->fts_pathlen = (unsigned short)(entry->fts_pathlen - front);
}

static void entry_restore(const FTS *fts, FTSENT *entry)
{
	if (!entry || !view.length || entry->fts_path != fts->fts_path + view.length)
		return;
	entry->fts_path -= view.length;
	entry->fts_pathlen = (unsigned short)(entry->fts_pathlen + view.length);
}

static void walk_restore(FTS *fts)
{
	entry_restore(fts, fts->fts_cur);
	for (FTSENT *entry = fts->fts_child; entry; entry = entry->fts_link)
		entry_restore(fts, entry);
}

typedef int (*fts_compare_fn)(const FTSENT **, const FTSENT **);
typedef FTS *(*fts_open_fn)(char *const *, int, fts_compare_fn);

/*
 * The paths in the view, each in a room of its own. It is allocated, as fts_open(3) itself does.
 */
HOOK_OUTLINE static FTS *open_inside(fts_open_fn real, char *const *paths, size_t count,
				     int options, fts_compare_fn compare)
{
	char(*rooms)[PATH_MAX] = malloc(count * sizeof(*rooms));
	char **other = malloc((count + 1) * sizeof(*other));
	FTS *fts = NULL;

	if (rooms && other) {
		for (size_t i = 0; i < count; i++) {
			const char *path = paths[i];

			if (!view_passes(path))
				path = view_path(AT_FDCWD, path, rooms[i]);
			other[i] = path == rooms[i] ? rooms[i] : paths[i];
		}
		other[count] = NULL;
		fts = real(other, options, compare);
	}
	free(rooms);
	free(other);
	return fts;
}

static FTS *open_through(fts_open_fn real, char *const *paths, int options, fts_compare_fn compare)
{
	bool passes = true;
	size_t count = 0;

	for (; paths && paths[count]; count++)
		passes &= view_passes(paths[count]);
	return passes ? real(paths, options, compare)
		      : open_inside(real, paths, count, options, compare);
}

#define HOOK_FTS(open, read, children)                                                \
	HOOK(FTS *, open, (char *const *paths, int options, fts_compare_fn compare)); \
	FTS *hook_##open(char *const *paths, int options, fts_compare_fn compare)     \
	{                                                                             \
		return open_through(REAL(open), paths, options, compare);             \
	}                                                                             \
	HOOK(FTSENT *, read, (FTS * fts));                                            \
	FTSENT *hook_##read(FTS *fts)                                                 \
	{                                                                             \
		FTSENT *entry;                                                        \
                                                                                      \
		walk_restore(fts);                                                    \
		entry = REAL(read)(fts);                                              \
		entry_show(fts, entry);                                               \
		return entry;                                                         \
	}                                                                             \
	HOOK(FTSENT *, children, (FTS * fts, int options));                           \
	FTSENT *hook_##children(FTS *fts, int options)                                \
	{                                                                             \
		FTSENT *first;                                                        \
                                                                                      \
		walk_restore(fts);                                                    \
		first = REAL(children)(fts, options);                                 \
		entry_show(fts, fts->fts_cur);                                        \
		for (FTSENT *entry = first; entry; entry = entry->fts_link)           \
			entry_show(fts, entry);                                       \
		return first;                                                         \
	}                                                                             \
	_Static_assert(1, "")

HOOK_FTS(fts_open, fts_read, fts_children);
HOOK_FTS(fts64_open, fts64_read, fts64_children);
