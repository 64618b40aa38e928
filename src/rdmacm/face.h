/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the files of this room share: the export mark, and the one place where a negative errno
 * becomes what the manual pages promise. Inside, a failure is a negative errno, and its reason is
 * recorded.
 */
#ifndef VB_RDMACM_FACE_H
#define VB_RDMACM_FACE_H

#include <errno.h>
#include <stddef.h>

#include "base/reason.h"

/* The library hides every symbol without this attribute. */
#define VB_EXPORT __attribute__((visibility("default")))

/* Returns 0, or -1 with errno set. */
static inline int vb_cma_answer(int err)
{
	if (err >= 0)
		return 0;
	errno = -err;
	return -1;
}

/* Returns NULL with errno set. */
static inline void *vb_cma_answer_null(int err)
{
	errno = -err;
	return NULL;
}

/* -EINVAL: an argument that must not be NULL is NULL. */
static inline int vb_cma_refuse_null(const char *call, const char *argument)
{
	return vb_refuse(EINVAL, VB_REASON_ARG, "%s: %s is NULL", call, argument);
}

static inline int vb_cma_refuse_memory(const char *call)
{
	return vb_refuse(ENOMEM, VB_REASON_NO_MEMORY, "%s: no memory", call);
}

#endif
