/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The mounts that put a view's files where programs look for them. */
#ifndef TOOLS_RUN_MOUNTS_H
#define TOOLS_RUN_MOUNTS_H

/*
 * In a mount namespace of this process's own. 0 or a negative errno, and then `*where` is the
 * directory that could not be changed. `sealed`: what is assembled cannot be written to.
 */
int mounts_make(const char *view, const char **where, int sealed);

#endif
