/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A directory stands for the users who may enter it, by its mode, owner and group. It must be one
 * that no other user can have put there: where everybody may make directories, another user could
 * be first, and would then choose who is in the domain.
 */
#include "host/domain.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/sys.h"
#include "host/trust.h"

#ifndef SO_PEERGROUPS /* Linux 4.13 */
#define SO_PEERGROUPS 59
#endif

/* Supplementary groups beyond these are not looked at. */
#define GROUPS 1024

/* The ids of a process, as far as they open a directory. */
struct person {
	uid_t uid;
	gid_t gid;
	gid_t group[GROUPS];
	uint32_t groups;
};

static const char *named(void)
{
	return secure_getenv("VERBATIM_DOMAIN");
}

bool vb_domain_is_named(void)
{
	const char *name = named();

	return name && *name;
}

static void self_read(struct person *p)
{
	int n = getgroups(GROUPS, p->group);

	p->uid = geteuid();
	p->gid = getegid();
	p->groups = n < 0 ? 0 : (uint32_t)n;
}

static bool peer_read(int sock, struct person *p)
{
	struct ucred cred;
	socklen_t length = sizeof(cred);

	if (getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &cred, &length) || cred.uid == (uid_t)-1)
		return false;
	p->uid = cred.uid;
	p->gid = cred.gid;
	length = sizeof(p->group);
	if (getsockopt(sock, SOL_SOCKET, SO_PEERGROUPS, p->group, &length))
		length = 0;
	p->groups = length / (uint32_t)sizeof(gid_t);
	return true;
}

static bool is_in(const struct person *p, gid_t gid)
{
	bool in = p->gid == gid;

	for (uint32_t i = 0; i < p->groups && !in; i++)
		in = p->group[i] == gid;
	return in && vb_trust_is_one_group(gid);
}

/* As the kernel decides for a directory: the owner's rights are the owner's, whatever its groups. */
static bool admits(const struct vb_domain *d, const struct person *p)
{
	if (d->uid == p->uid && vb_trust_is_one_user(p->uid))
		return d->owner;
	return d->members && is_in(p, d->gid);
}

static const char *say(char *text, size_t size, const char *what)
{
	snprintf(text, size, "VERBATIM_DOMAIN=%.80s: %s", named(), what);
	return text;
}

/* The group's number, or -1. A name is looked for in /etc/group only: no service is asked. */
static int64_t group_number(const char *name)
{
	size_t length = strlen(name);
	int64_t gid = -1;
	bool begins = true;
	char line[512], *end;
	FILE *f;

	if (strspn(name, "0123456789") == length)
		return strtoll(name, NULL, 10) < UINT32_MAX ? strtoll(name, NULL, 10) : -1;
	f = vb_sys_fopen("/etc/group");
	if (!f)
		return -1;
	while (gid < 0 && fgets(line, sizeof(line), f)) {
		char *number = begins && !strncmp(line, name, length) && line[length] == ':'
				       ? strchr(line + length + 1, ':')
				       : NULL;

		if (number) {
			gid = strtoll(number + 1, &end, 10);
			if (end == number + 1 || gid < 0 || gid >= UINT32_MAX)
				gid = -1;
		}
		begins = strchr(line, '\n') != NULL; /* the list of members may be long */
	}
	fclose(f);
	return gid;
}

/* NULL, or what is wrong with the group. */
static const char *group_read(const char *name, struct vb_domain *d)
{
	int64_t gid = group_number(name);

	if (gid < 0)
		return "there is no such group in /etc/group, and it is no absolute path";
	d->members = true;
	d->gid = (gid_t)gid;
	d->uid = (uid_t)-1;
	return NULL;
}

/* NULL, or what is wrong with the directory. */
static const char *directory_defect(const struct stat *dir, const struct stat *around,
				    const struct person *self)
{
	if (dir->st_mode & S_IRWXO)
		return "every user has rights to this directory (chmod o-rwx)";
	if (!dir->st_uid || (dir->st_uid == self->uid && vb_trust_is_one_user(self->uid)))
		return NULL;
	if (!is_in(self, dir->st_gid))
		return "the directory belongs to neither root, nor this user, nor a group of it";
	if (around->st_mode & S_IWOTH)
		return "another user has made this directory where every user can make one";
	return NULL;
}

static const char *directory_read(const char *path, const struct person *self, struct vb_domain *d)
{
	struct stat dir, around;
	int fd = vb_sys_open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0 && (errno == ENOTDIR || errno == ELOOP))
		return "it is no directory, or a symbolic link";
	/* The way to the parent leads through the directory. */
	bool read = fd >= 0 && !fstat(fd, &dir) && !fstatat(fd, "..", &around, 0);
	const char *why = read              ? directory_defect(&dir, &around, self)
			  : errno == EACCES ? "this process may not enter the directory"
					    : strerror(errno);

	if (fd < 0)
		return why;

	vb_sys_close(fd);
	if (why)
		return why;
	d->owner = dir.st_mode & S_IXUSR;
	d->uid = dir.st_uid;
	d->members = dir.st_mode & S_IXGRP;
	d->gid = dir.st_gid;
	return NULL;
}

static const char *domain_read(const struct person *self, struct vb_domain *d)
{
	const char *name = named();
	const char *why;

	memset(d, 0, sizeof(*d));
	if (!name || !*name)
		return "it is not set";
	why = *name == '/' ? directory_read(name, self, d) : group_read(name, d);
	if (!why && !admits(d, self))
		why = *name == '/' ? "this process may not enter the directory"
				   : "this process is not in the group";
	return why;
}

const char *vb_domain_defect(char *text, size_t size)
{
	struct person self;
	struct vb_domain d;

	self_read(&self);
	const char *why = domain_read(&self, &d);

	return why ? say(text, size, why) : NULL;
}

bool vb_domain_read(struct vb_domain *d)
{
	struct person self;

	if (!vb_domain_is_named())
		return false;
	self_read(&self);
	return !domain_read(&self, d);
}

bool vb_domain_admits(const struct vb_domain *d, int sock)
{
	struct person peer;

	return peer_read(sock, &peer) && admits(d, &peer);
}

bool vb_domain_has(int sock)
{
	struct vb_domain d;

	return vb_domain_read(&d) && vb_domain_admits(&d, sock);
}
