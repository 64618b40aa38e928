/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What forbids namespaces on this machine. The kernel says EPERM for all of it. */
#include "run/namespace_refused.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <string.h>

#include "seccomp_mode.h"

/* A number in a file; `fallback` where there is none. */
static long number_in(const char *path, long fallback)
{
	FILE *f = fopen(path, "re");
	long number;

	if (!f)
		return fallback;
	if (fscanf(f, "%ld", &number) != 1)
		number = fallback;
	fclose(f);
	return number;
}

/* The setting that is in the way, or NULL. */
static const char *setting(int err)
{
	if (number_in("/proc/sys/user/max_user_namespaces", 1) == 0)
		return "the sysctl user.max_user_namespaces is 0";
	if (err == ENOSPC || err == EUSERS)
		return "this user has as many namespaces as the sysctls user.max_*_namespaces allow, or they are nested "
		       "too deeply";
	if (number_in("/proc/sys/kernel/unprivileged_userns_clone", 1) == 0)
		return "the sysctl kernel.unprivileged_userns_clone is 0";
	if (number_in("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", 0) == 1)
		return "AppArmor restricts user namespaces (the sysctl kernel.apparmor_restrict_unprivileged_userns is 1; an "
		       "AppArmor profile of verbatim with the rule \"userns,\" lifts that)";
	if (seccomp_mode() == SECCOMP_MODE_FILTER)
		return "a seccomp filter forbids namespaces, as those of containers do";
	return NULL;
}

void namespace_refused(char *why, size_t size, enum namespace_step step, int err, const char *where)
{
	static const char *const did[] = {
		[NAMESPACE_CREATE] = "making one failed",
		[NAMESPACE_MAP] = "setting its users failed",
		[NAMESPACE_MOUNT] = "mounting failed at",
	};
	const char *found = NULL;

	if (step == NAMESPACE_MOUNT && err == ENOENT) {
		snprintf(why, size, "there is no directory %s to show them in", where);
		return;
	}
	if (err == EPERM || err == EACCES || err == ENOSPC || err == EUSERS)
		found = setting(err);
	if (!found && err == EINVAL && step == NAMESPACE_CREATE)
		found = "the kernel has no user namespaces";
	if (!found && err == EPERM && step == NAMESPACE_CREATE)
		found = "the kernel refuses to make one, as it does in a chroot";
	if (found)
		snprintf(why, size, "%s", found);
	else
		snprintf(why, size, "%s%s%s: %s", did[step], step == NAMESPACE_MOUNT ? " " : "",
			 step == NAMESPACE_MOUNT ? where : "", strerror(err));
}
