/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The directory of this user's short-lived files: views, journals, agreements between processes.
 *
 * The first of these that can be used:
 *
 *   $VERBATIM_RUNTIME_DIR          no other is tried when it is set
 *   $XDG_RUNTIME_DIR/verbatim      if $XDG_RUNTIME_DIR is a directory of this user
 *   /run/user/UID/verbatim         if /run/user/UID is a directory of this user
 *   ${TMPDIR:-/tmp}/verbatim-UID
 *
 * UID is the effective user. A program with more rights than its caller (setuid) does not take the
 * environment into account.
 */
#ifndef VB_BASE_RUNTIME_DIR_H
#define VB_BASE_RUNTIME_DIR_H

#include <stddef.h>

/*
 * Writes the path of the directory, which is made if it is not there, with mode 0700. Returns 0,
 * or: -EPERM, it belongs to another user, is a symbolic link or no directory, or others may enter
 * it; -ENAMETOOLONG; the error of mkdir(2).
 */
int vb_runtime_dir(char *path, size_t size);

/*
 * Makes the directory at `path` with mode 0700, or checks that it is one that this user alone may
 * enter. Errors as above.
 */
int vb_private_dir(const char *path);

#endif
