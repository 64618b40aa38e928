/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The view of a user and network namespace. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/runtime_dir.h"
#include "view/patterns.h"
#include "view/view.h"
#include "view/why.h"

/* Where /proc is missing all namespaces are one. */
static unsigned long network_namespace(void)
{
	struct stat st;

	return stat("/proc/self/ns/net", &st) ? 0 : (unsigned long)st.st_ino;
}

static int name_view(char *dir, size_t size)
{
	char runtime[PATH_MAX];
	int err = vb_runtime_dir(runtime, sizeof(runtime));
	int n;

	if (err)
		return view_fail(err, "no directory for the view (%s)", runtime);
	n = snprintf(dir, size, "%s/view-%lu", runtime, network_namespace());
	return (size_t)n < size ? 0 : view_fail(-ENAMETOOLONG, "the view in %s", runtime);
}

int view_prepare(char *dir, size_t size)
{
	int err = name_view(dir, size);

	if (err)
		return err;
	err = vb_private_dir(dir);
	if (err)
		return view_fail(err, "cannot use %s", dir);
	err = view_patterns_add(dir);
	return err ? err : view_write(dir);
}
