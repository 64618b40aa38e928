/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The machine's own adapters: their entries stand in a view as links to the real ones. A real entry
 * is never hidden: of two entries with one name the real one is shown.
 */
#ifndef TOOLS_VIEW_REAL_H
#define TOOLS_VIEW_REAL_H

#include <stdbool.h>

#define REAL_SYS        "/sys"
#define REAL_DEV        "/dev/infiniband"

/* The vendor of devices that this library shows: their entries are no real ones. */
#define REAL_OUR_VENDOR "0x7662"

struct tree;

/*
 * Whether the entry below /sys is one of a view, which this process sees in place of the machine's
 * (`verbatim run` within `verbatim run`, a container with a view).
 */
bool real_is_ours(const char *path);

/* Whether the machine has an adapter's entry of this name in the class. */
bool real_has(const char *class, const char *name);

/* Adds links to the machine's own entries. 0 or -errno. */
int real_merge(struct tree *tree);

#endif
