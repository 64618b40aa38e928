/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A path that the variables of the dynamic loader can hold. */
#ifndef TOOLS_RUN_LOADER_PATH_H
#define TOOLS_RUN_LOADER_PATH_H

#include <stddef.h>

/*
 * LD_PRELOAD and LD_LIBRARY_PATH separate their entries by spaces, colons and semicolons and know
 * no quotes, and a dollar has a meaning (ld.so(8)). Writes the directory itself if it has none of
 * them, otherwise the path of a symbolic link to it: in the view, with which it goes, or, where
 * there is none, in the runtime directory. 0 or a negative errno.
 */
int loader_path(char *path, size_t size, const char *dir, const char *view);

#endif
