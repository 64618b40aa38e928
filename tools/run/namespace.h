/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The files of the devices in a mount namespace. */
#ifndef TOOLS_RUN_NAMESPACE_H
#define TOOLS_RUN_NAMESPACE_H

#include <stddef.h>

enum { NAMESPACE_WHY = 320 };

/*
 * Moves this process, and with it the program that it executes, into a mount namespace in which
 * /sys and /dev have the files of the view. Process id, user, groups, session, working directory
 * and descriptors stay the same. Without CAP_SYS_ADMIN two user namespaces are entered for it: one
 * to mount in, and one in which the process has its own ids again, and no rights over the mounts.
 *
 * 0; or a negative errno, with nothing changed and one line that says what is in the way.
 */
int namespace_enter(const char *view, char *why, size_t size);

#endif
