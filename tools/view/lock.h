/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Locks of a view: files in it, locked by flock(2). A view may be removed and made again under one
 * path; a lock holds for the directory that is there when it is taken.
 */
#ifndef TOOLS_VIEW_LOCK_H
#define TOOLS_VIEW_LOCK_H

#include <stdbool.h>

#define VIEW_WRITER ".writer" /* who changes or removes the view */
#define VIEW_KEEPER ".keeper" /* the process that keeps it true */

/*
 * Takes the lock. `wait_ms`: how long another holder is waited for. A descriptor, or: -EWOULDBLOCK,
 * another process has it; -ENOENT, the view is not there.
 */
int view_lock(const char *dir, const char *name, int wait_ms);

/* Whether the descriptor is still of the file at that path. */
bool view_lock_holds(int fd, const char *dir, const char *name);

#endif
