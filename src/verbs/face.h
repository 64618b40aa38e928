/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the files of the face share: the export mark, and the one place where a negative errno
 * becomes what the manual pages promise.
 *
 * Inside, a failure is a negative errno, and its reason is already recorded. Outside there are four
 * conventions: verbs that return an int return the errno (and set errno, which programs also read),
 * verbs that return a pointer return NULL and set errno, a few old verbs return -1 and set errno,
 * and some return a negative errno.
 */
#ifndef VB_VERBS_FACE_H
#define VB_VERBS_FACE_H

#include <errno.h>
#include <stddef.h>

#include "base/reason.h"
#include "verbs/ops.h"

/* The library hides every symbol without this attribute. */
#define VB_EXPORT __attribute__((visibility("default")))

/* Returns 0 or the positive errno. errno is set on failure only. */
static inline int vb_answer(int err)
{
	if (err < 0)
		errno = -err;
	return -err;
}

/* Returns NULL with errno set. */
static inline void *vb_answer_null(int err)
{
	errno = -err;
	return NULL;
}

/* Returns 0, or -1 with errno set. */
static inline int vb_answer_minus_one(int err)
{
	if (err >= 0)
		return 0;
	errno = -err;
	return -1;
}

/* -EINVAL: an argument that must not be NULL is NULL. */
static inline int vb_refuse_null(const char *verb, const char *argument)
{
	return vb_refuse(EINVAL, VB_REASON_ARG, "%s: %s is NULL", verb, argument);
}

/* -EOPNOTSUPP: no device of verbatim offers the verb. */
static inline int vb_refuse_verb(const char *verb)
{
	return vb_refuse(EOPNOTSUPP, VB_REASON_UNSUPPORTED, "%s: not offered by this device", verb);
}

/*
 * -EOPNOTSUPP unless every bit of `value` is in `known`: for flags that a newer device might have.
 */
static inline int vb_check_flags(const char *verb, const char *field, uint64_t value,
				 uint64_t known)
{
	if (!(value & ~known))
		return 0;
	return vb_refuse(EOPNOTSUPP, VB_REASON_UNSUPPORTED,
			 "%s: %s 0x%llx, unsupported bits 0x%llx", verb, field,
			 (unsigned long long)value, (unsigned long long)(value & ~known));
}

/* -EINVAL unless every bit of `mask` is in `known`. */
static inline int vb_check_mask(const char *verb, const char *field, uint64_t mask, uint64_t known)
{
	if (!(mask & ~known))
		return 0;
	return vb_refuse(EINVAL, VB_REASON_ARG_MASK, "%s: %s 0x%llx, unknown bits 0x%llx", verb,
			 field, (unsigned long long)mask, (unsigned long long)(mask & ~known));
}

#endif
