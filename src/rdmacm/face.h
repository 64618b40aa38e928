/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the files of this room share: the export mark, and the one place where a negative errno
 * becomes what the manual pages promise. Inside, a failure is a negative errno.
 */
#ifndef VB_RDMACM_FACE_H
#define VB_RDMACM_FACE_H

#include <errno.h>
#include <stddef.h>

/* The library hides every symbol without this attribute. */
#define VB_EXPORT __attribute__((visibility("default")))

/* Returns 0, or -1 with errno set. */
static inline int vb_cm_answer(int err)
{
	if (err >= 0)
		return 0;
	errno = -err;
	return -1;
}

/* Returns NULL with errno set. */
static inline void *vb_cm_answer_null(int err)
{
	errno = -err;
	return NULL;
}

#endif
