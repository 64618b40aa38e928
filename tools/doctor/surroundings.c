/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The runtime directory, /proc, user namespaces, and whether processes reach each other's memory. */
#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/runtime_dir.h"
#include "doctor/apart.h"
#include "doctor/checks.h"
#include "doctor/finding.h"
#include "reach.h"

#define SECONDS 5

static void check_runtime_dir(void)
{
	char dir[PATH_MAX];
	int err = vb_runtime_dir(dir, sizeof(dir));

	if (!err)
		finding_ok("runtime directory: %s", dir);
	else
		finding_note(
			"set VERBATIM_RUNTIME_DIR to a directory that only this user may enter (mode 0700)",
			"runtime directory: none can be used: %s; transfers work, but `verbatim run` cannot show "
			"the files of the devices, and no journal of failures is kept",
			strerror(-err));
}

static void check_proc(void)
{
	if (access("/proc/self/stat", R_OK))
		finding_note(
			"mount -t proc proc /proc (as root)",
			"/proc: it is not mounted; processes do not reach each other's memory directly");
}

static int try_namespace(void *unused)
{
	(void)unused;
	return unshare(CLONE_NEWUSER | CLONE_NEWNS) ? errno : 0;
}

static void check_namespaces(void)
{
	int err = geteuid() ? apart_run(try_namespace, NULL, SECONDS) : 0;

	if (!err)
		finding_ok("user namespaces: allowed, so `verbatim run --view=namespace` works");
	else
		finding_note(
			"sysctl kernel.apparmor_restrict_unprivileged_userns=0 or user.max_user_namespaces=10000 (as root), or a "
			"seccomp profile that allows unshare(2)",
			"user namespaces: refused (%s); only `verbatim run --view=namespace` needs them, for static programs and Go",
			err < 0 ? "killed" : strerror(err));
}

static int probe_reach(void *why)
{
	return reach_probe(why, REACH_TEXT) ? 1 : 0;
}

static int say_reach(void *unused)
{
	char why[REACH_TEXT] = "";

	(void)unused;
	if (!probe_reach(why))
		finding_ok("memory: processes of this user reach each other's memory directly");
	else
		finding_note(
			NULL,
			"memory: processes of this user do not reach each other's memory directly: %s; everything works, with "
			"one copy more",
			why);
	return 0;
}

void check_surroundings(void)
{
	check_runtime_dir();
	check_proc();
	check_namespaces();
	apart_run(say_reach, NULL, SECONDS);
}
