/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The end of a view. */
#ifndef TOOLS_VIEW_KEEPER_END_H
#define TOOLS_VIEW_KEEPER_END_H

#include <stdbool.h>

/* Removes the view if nobody uses it. The caller has its keeper's lock. Whether it is removed. */
bool keeper_end(const char *dir);

#endif
