/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#ifndef TESTS_SUPPORT_FOLDER_H
#define TESTS_SUPPORT_FOLDER_H

#include <stdbool.h>

/*
 * Calls `counts` with the name of each entry of the folder that does not begin with a dot. Returns
 * for how many it was true; 0 also if there is no such folder. `dir` is the folder's descriptor.
 */
int folder_count(const char *path, bool (*counts)(int dir, const char *name));

#endif
