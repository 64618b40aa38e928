/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Whether a directory is where no other user can put something else in its place. Files below such
 * a directory can be named by their paths; in another user's directory any part of a path may be a
 * link by the time that it is used.
 */
#ifndef TOOLS_VIEW_OWN_PLACE_H
#define TOOLS_VIEW_OWN_PLACE_H

#include <stdbool.h>
#include <sys/stat.h>

/* What `st` describes is the caller's, and nobody else may write to it. */
bool own_place_is(const struct stat *st);

/*
 * Makes the directory `dir` if it is not there (not its parents). Returns 0, or a negative errno, and
 * view_why() has the sentence: -EPERM where another user can change what `dir` means, or what is in it.
 */
int own_place_make(const char *dir);

#endif
