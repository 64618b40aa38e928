/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A view: a directory with the files that the kernel would show for the devices.
 *
 *   sys/class/infiniband, sys/class/infiniband_verbs, sys/bus/pci, sys/devices/pci7662:00
 *   dev/infiniband
 *
 * The values come from the public ibv_query_* calls of this library, so that the files and the
 * calls cannot disagree. The entries of the machine's own adapters stand beside ours as links.
 * Names that begin with a dot, at the top of the directory, are the view's own.
 */
#ifndef TOOLS_VIEW_VIEW_H
#define TOOLS_VIEW_VIEW_H

#include <stddef.h>

/* The environment variable that names the view to the library and to the preloaded library. */
#define VIEW_VARIABLE "VERBATIM_VIEW"

/*
 * Writes the path of the view of this user and network namespace. Makes the view, or brings it up
 * to date, and makes sure that a process keeps it true (the keeper) until no process uses it any
 * more. The calling process counts as one that uses it, also after execve(2), until it ends; other
 * processes count while VIEW_VARIABLE names the view in the environment that they were started
 * with. Returns 0, or a negative errno, and view_why() says what failed.
 *
 * The caller must have no threads: a child process is made, of which nothing is left when this
 * function returns.
 */
int view_prepare(char *dir, size_t size);

/*
 * Writes the tree into a directory, which is made if it is not there, or brings the tree there up
 * to date. Files are replaced one by one, by rename(2), if their content changes. Returns as above.
 */
int view_write(const char *dir);

/* One line, without its end: what failed last. Never NULL. */
const char *view_why(void);

#endif
