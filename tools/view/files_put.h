/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Names a file below a directory, with a content that is formatted here. */
#ifndef TOOLS_VIEW_FILES_PUT_H
#define TOOLS_VIEW_FILES_PUT_H

#include <limits.h>
#include <stdio.h>

#include "view/tree.h"

enum { PUT_TEXT = 1024 };

#define put_text(tree, dir, name, ...)                                                     \
	do {                                                                               \
		char put_path[PATH_MAX], put_content[PUT_TEXT];                            \
                                                                                           \
		snprintf(put_content, sizeof(put_content), __VA_ARGS__);                   \
		tree_file(tree, tree_path(put_path, sizeof(put_path), "%s/%s", dir, name), \
			  put_content);                                                    \
	} while (0)

#endif
