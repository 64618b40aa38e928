/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The process that keeps a view true: it follows interfaces and addresses, writes sums of counters,
 * repairs what is removed, and in the end removes the view of a user when nobody uses it any more.
 */
#ifndef TOOLS_VIEW_KEEPER_H
#define TOOLS_VIEW_KEEPER_H

/*
 * Starts a keeper of the view, unless one runs: a process without a terminal, that is no child of
 * this one and shares no descriptor with it. 0 or -errno.
 */
int keeper_start(const char *dir);

/* Where keeper_start() puts the descriptor of the keeper's lock. */
enum { KEEPER_LOCK = 3 };

/*
 * Is the keeper of a user's view until nobody uses the view, or until SIGTERM. Beside it there is a
 * second process, the standby, which continues its work if it is killed; and it replaces the standby if
 * that is killed. Returns the exit status.
 */
int keeper_run(const char *dir);

/* Keeps the tree in a directory of the caller's true until SIGTERM or SIGINT. */
int keeper_follow(const char *dir);

/* Removes views whose keeper and users were all killed. `runtime`: the folder of the views. */
void keeper_sweep(const char *runtime);

#endif
