/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What programs learn of paths: texts of links, canonical names, the working directory. Whatever
 * of it lies in the view is told under the name that it has for the program.
 */
#include "hook.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

/* Whether the text of a link, perhaps cut short, can be a path in the view. */
static bool may_show_view(const char *text, ssize_t length, size_t size)
{
	size_t known = (size_t)length;

	if (!view.length || length <= 0)
		return false;
	if (known < view.length && known < size)
		return false;
	return !memcmp(text, view.root, known < view.length ? known : view.length);
}

/* Reads the link again, whole, and tells as much as there is room for. */
HOOK_OUTLINE static ssize_t link_told(int dirfd, const char *path, char *to, size_t size,
				      ssize_t told)
{
	int before = errno;
	char other[PATH_MAX];
	char text[PATH_MAX];
	ssize_t length = syscall(SYS_readlinkat, dirfd,
				 view_passes(path) ? path : view_path(dirfd, path, other), text,
				 sizeof(text));
	size_t front = length > 0 ? view_front(text, (size_t)length) : 0;

	errno = before;
	if (!front)
		return told;
	length -= (ssize_t)front;
	if ((size_t)length > size)
		length = (ssize_t)size;
	memcpy(to, text + front, (size_t)length);
	return length;
}

#define HOOK_LINK(name, dir, params, args)                                                  \
	HOOK(ssize_t, name, params);                                                        \
	HOOK_OUTLINE static ssize_t inside_##name params                                    \
	{                                                                                   \
		char room[PATH_MAX];                                                        \
                                                                                            \
		path = view_path(dir, path, room);                                          \
		return REAL(name) args;                                                     \
	}                                                                                   \
	ssize_t hook_##name params                                                          \
	{                                                                                   \
		ssize_t told = view_passes(path) ? REAL(name) args : inside_##name args;    \
                                                                                            \
		return may_show_view(to, told, size) ? link_told(dir, path, to, size, told) \
						     : told;                                \
	}                                                                                   \
	_Static_assert(1, "")

HOOK_LINK(readlink, AT_FDCWD, (const char *path, char *to, size_t size), (path, to, size));
HOOK_LINK(readlinkat, dirfd, (int dirfd, const char *path, char *to, size_t size),
	  (dirfd, path, to, size));
HOOK_LINK(__readlink_chk, AT_FDCWD, (const char *path, char *to, size_t size, size_t room_there),
	  (path, to, size, room_there));
HOOK_LINK(__readlinkat_chk, dirfd,
	  (int dirfd, const char *path, char *to, size_t size, size_t room_there),
	  (dirfd, path, to, size, room_there));

/*
 * A canonical name. Where there is none because a file is missing, the C library leaves the name
 * of that file in the caller's buffer (realpath(3), GNU extension).
 */
static char *name_told(char *name, char *buffer)
{
	if (name)
		view_cut(name);
	else if (buffer && (errno == ENOENT || errno == EACCES) && memchr(buffer, '\0', PATH_MAX))
		view_cut(buffer);
	return name;
}

#define INSIDE_NAME(name, params, args, buffer)            \
	HOOK_OUTLINE static char *inside_##name params     \
	{                                                  \
		char room[PATH_MAX];                       \
                                                           \
		path = view_path(AT_FDCWD, path, room);    \
		return name_told(REAL(name) args, buffer); \
	}                                                  \
	char *hook_##name params                           \
	{                                                  \
		char *got;                                 \
                                                           \
		if (!view_passes(path))                    \
			return inside_##name args;         \
		got = REAL(name) args;                     \
		if (got)                                   \
			view_cut(got);                     \
		return got;                                \
	}                                                  \
	_Static_assert(1, "")

#if HOOK_HAS_OLD
HOOK_OLD(char *, realpath_old, realpath, "GLIBC_2.2.5", (const char *path, char *buffer));
INSIDE_NAME(realpath_old, (const char *path, char *buffer), (path, buffer), buffer);
#endif
HOOK_NOW(char *, realpath_now, realpath, "GLIBC_2.3", (const char *path, char *buffer));
INSIDE_NAME(realpath_now, (const char *path, char *buffer), (path, buffer), buffer);

HOOK(char *, __realpath_chk, (const char *path, char *buffer, size_t room_there));
INSIDE_NAME(__realpath_chk, (const char *path, char *buffer, size_t room_there),
	    (path, buffer, room_there), buffer);
HOOK(char *, canonicalize_file_name, (const char *path));
INSIDE_NAME(canonicalize_file_name, (const char *path), (path), NULL);

/* The working directory where its place has no room in the buffer, but its name may have. */
HOOK_OUTLINE static char *short_directory(char *buffer, size_t size)
{
	int before = errno;
	char text[PATH_MAX];
	long length = syscall(SYS_getcwd, text, sizeof(text));
	size_t front = length > 1 ? view_front(text, (size_t)length - 1) : 0;

	errno = before;
	if (!front || (size_t)length - front > size)
		return NULL;
	memcpy(buffer, text + front, (size_t)length - front);
	return buffer;
}

static char *directory_told(char *got, char *buffer, size_t size)
{
	if (got)
		view_cut(got);
	else if (errno == ERANGE && view.length && buffer)
		got = short_directory(buffer, size);
	return got;
}

HOOK(char *, getcwd, (char *buffer, size_t size));
char *hook_getcwd(char *buffer, size_t size)
{
	return directory_told(REAL(getcwd)(buffer, size), buffer, size);
}

HOOK(char *, __getcwd_chk, (char *buffer, size_t size, size_t room_there));
char *hook___getcwd_chk(char *buffer, size_t size, size_t room_there)
{
	return directory_told(REAL(__getcwd_chk)(buffer, size, room_there), buffer, size);
}

HOOK(char *, getwd, (char *buffer));
char *hook_getwd(char *buffer)
{
	return directory_told(REAL(getwd)(buffer), NULL, 0);
}

HOOK(char *, __getwd_chk, (char *buffer, size_t room_there));
char *hook___getwd_chk(char *buffer, size_t room_there)
{
	return directory_told(REAL(__getwd_chk)(buffer, room_there), NULL, 0);
}

HOOK(char *, get_current_dir_name, (void));
char *hook_get_current_dir_name(void)
{
	return directory_told(REAL(get_current_dir_name)(), NULL, 0);
}
