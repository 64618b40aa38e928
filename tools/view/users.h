/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Which processes use a view: those that called view_prepare(), which put their names into the
 * folder `.users` and go on as the program; those that were started with VERBATIM_VIEW naming the
 * view, which covers children and daemons, whatever descriptors they close; and those of any PID
 * namespace that have a counter file there.
 */
#ifndef TOOLS_VIEW_USERS_H
#define TOOLS_VIEW_USERS_H

#include <stdbool.h>

/* The calling process uses the view from now on. 0 or -errno. */
int view_users_add(const char *dir);

enum { VIEW_USERS_SEEN = 8 };

/* Some of the users, by descriptors that are readable when the process has ended (pidfd). */
struct view_users {
	int fd[VIEW_USERS_SEEN];
	int count;
	bool others; /* there are users of which there is no descriptor */
};

void view_users_find(const char *dir, struct view_users *users);
void view_users_close(struct view_users *users);

static inline bool view_users_none(const struct view_users *users)
{
	return !users->count && !users->others;
}

#endif
