/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Where short-lived files of the user are, and whether that place is the user's own. */
#include "base/runtime_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/reason.h"

static bool is_own_dir(const char *path)
{
	struct stat st;

	return path && path[0] == '/' && !stat(path, &st) && S_ISDIR(st.st_mode) &&
	       st.st_uid == geteuid();
}

/* The directory is there: whose it is, and who may enter it. A link is not followed. */
static int check(const char *path)
{
	struct stat st;

	if (lstat(path, &st))
		return -errno;
	if (!S_ISDIR(st.st_mode))
		return vb_refuse(EPERM, VB_REASON_PERMISSION, "%s is a link or no directory", path);
	if (st.st_uid != geteuid())
		return vb_refuse(EPERM, VB_REASON_PERMISSION, "%s belongs to user %u, not to %u",
				 path, st.st_uid, geteuid());
	if (st.st_mode & (S_IRWXG | S_IRWXO))
		return vb_refuse(EPERM, VB_REASON_PERMISSION,
				 "%s has mode %04o: others may enter it (chmod 700)", path,
				 st.st_mode & 07777u);
	return faccessat(AT_FDCWD, path, R_OK | W_OK | X_OK, AT_EACCESS) ? -errno : 0;
}

int vb_private_dir(const char *path)
{
	if (!mkdir(path, S_IRWXU))
		/* The umask may have taken rights of the owner. */
		return chmod(path, S_IRWXU) ? -errno : 0;
	return errno == EEXIST ? check(path) : -errno;
}

static int use(char *path, size_t size, const char *base, const char *name)
{
	int n = snprintf(path, size, "%s/%s", base, name);

	if (n < 0 || (size_t)n >= size)
		return -ENAMETOOLONG;
	return vb_private_dir(path);
}

/* A place where nothing can be made (a read-only or full file system) leads to the next one. */
static bool is_final(int err)
{
	return !err || err == -EPERM || err == -ENAMETOOLONG;
}

static int use_chosen(char *path, size_t size, const char *chosen)
{
	int n;

	if (chosen[0] != '/')
		return vb_refuse(EINVAL, VB_REASON_ARG,
				 "VERBATIM_RUNTIME_DIR=%s is no absolute path", chosen);
	n = snprintf(path, size, "%s", chosen);
	return (size_t)n >= size ? -ENAMETOOLONG : vb_private_dir(path);
}

int vb_runtime_dir(char *path, size_t size)
{
	const char *chosen = secure_getenv("VERBATIM_RUNTIME_DIR");
	const char *session = secure_getenv("XDG_RUNTIME_DIR");
	const char *tmp = secure_getenv("TMPDIR");
	char name[64];
	int err = -ENOENT;

	if (chosen && *chosen)
		return use_chosen(path, size, chosen);
	if (is_own_dir(session))
		err = use(path, size, session, "verbatim");
	snprintf(name, sizeof(name), "/run/user/%u", geteuid());
	if (!is_final(err) && is_own_dir(name))
		err = use(path, size, name, "verbatim");
	snprintf(name, sizeof(name), "verbatim-%u", geteuid());
	if (!is_final(err))
		err = use(path, size, tmp && tmp[0] == '/' ? tmp : "/tmp", name);
	return err;
}
