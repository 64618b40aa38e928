/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Writing a tree, for who has the writer's lock of the directory already. */
#ifndef TOOLS_VIEW_WRITE_H
#define TOOLS_VIEW_WRITE_H

/* As view_write(); the directory exists. */
int view_write_locked(const char *dir);

#endif
