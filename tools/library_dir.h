/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Where the libraries of this program lie. */
#ifndef TOOLS_LIBRARY_DIR_H
#define TOOLS_LIBRARY_DIR_H

#include <stddef.h>

/* What the directory holds. */
#define LIBRARY_VERBS   "libibverbs.so.1"
#define LIBRARY_VIEW    "libverbatim-view.so"
#define LIBRARY_CM      "librdmacm.so.1"
#define LIBRARY_SOCKETS "rsocket/librspreload.so"
#define LIBRARY_MAPPED  "libverbatim-mapped.so"

/*
 * The absolute path of the directory with libibverbs.so.1: lib/ beside this program in a build
 * tree, otherwise the private directory of the installation. 0 or a negative errno: -ENOENT where
 * neither holds the library, -ENAMETOOLONG.
 */
int library_dir(char *dir, size_t size);

#endif
