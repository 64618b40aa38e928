/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Which devices a view shows. Programs with different values of VERBATIM_DEVICES share the view of
 * their user, and each must find its devices there: a view shows what a list has under any of the
 * values that were asked for. The file `.devices` of the view has them, one on a line.
 */
#ifndef TOOLS_VIEW_PATTERNS_H
#define TOOLS_VIEW_PATTERNS_H

#include <stdint.h>

#define VIEW_PATTERNS "VERBATIM_DEVICES"

enum { VIEW_PATTERNS_MOST = 16, VIEW_PATTERN = 256 };

struct view_patterns {
	char text[VIEW_PATTERNS_MOST][VIEW_PATTERN]; /* "": the variable is not set */
	uint32_t count;                              /* at least 1 */
};

/* The values of the view; where it has none, the one of the environment. */
void view_patterns_read(const char *dir, struct view_patterns *patterns);
/* Adds the value of the environment to those of the view. 0 or -errno. */
int view_patterns_add(const char *dir);

#endif
