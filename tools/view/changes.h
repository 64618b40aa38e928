/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What a kept view has to follow: interfaces and addresses (netlink), and what others do to the
 * view's own files (inotify).
 */
#ifndef TOOLS_VIEW_CHANGES_H
#define TOOLS_VIEW_CHANGES_H

#include <stdbool.h>

struct changes {
	int route;    /* -1: none; the view is then written anew from time to time */
	int notify;   /* -1: none */
	int counters; /* the watch of the folder of counters */
	int latest;   /* the highest watch so far; the kernel counts upwards */
};

void changes_open(struct changes *changes, const char *dir);
void changes_close(struct changes *changes);
/* Reads what there is. Whether the kernel told of an interface. */
bool changes_route(struct changes *changes);
/* Whether something of the tree was removed; whether a process began or ended to count. */
struct changes_seen {
	bool tree, counters;
};
struct changes_seen changes_files(struct changes *changes);
/*
 * Watches the folders anew: they may be others than before. True: some are. What was removed from
 * those before they were watched is not told.
 */
bool changes_watch(struct changes *changes, const char *dir);

#endif
