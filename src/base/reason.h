/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Every refusal, error completion and drop has a reason: one code, one meaning, a usual cause and a
 * cure, listed in base/reason_table.h and nowhere else.
 *
 * A failed completion carries the code in vendor_err. The log prints the code beside a sentence
 * that is formatted where the fault arises. A code never changes its meaning; a new code goes to
 * the end of its group.
 */
#ifndef VB_BASE_REASON_H
#define VB_BASE_REASON_H

#include <stdint.h>

#include "base/export.h"
#include "base/reason_table.h"

enum vb_reason {
	VB_REASON_NONE = 0,
#define VB_REASON_ENUM(code, name, text, cause, cure) VB_REASON_##name = code,
	VB_REASONS(VB_REASON_ENUM)
#undef VB_REASON_ENUM
};

/* Everything that is known about a reason. */
struct vb_reason_entry {
	enum vb_reason code;
	const char *name;  /* "LKEY_RANGE" */
	const char *text;  /* the meaning */
	const char *cause; /* what is usually behind it */
	const char *cure;
};

/* The entry of a code; for an unknown one that of VB_REASON_NONE, which is the first. */
VB_SHARED const struct vb_reason_entry *vb_reason_entry(enum vb_reason reason);

/* All entries, in the order of their codes; the one of VB_REASON_NONE is not among them. */
VB_SHARED const struct vb_reason_entry *vb_reason_all(unsigned int *count);

/* The name and the meaning of a code; never NULL. */
VB_SHARED const char *vb_reason_name(enum vb_reason reason);
VB_SHARED const char *vb_reason_text(enum vb_reason reason);

/*
 * Each of these counts one occurrence, logs it at level debug, and keeps it in the list of failures
 * (base/failure.h) where that is wanted. Thread-safe, errno is kept; not for the fast path of
 * success.
 *
 * vb_note() is for a drop or a fact, vb_note_failed() for a completion with an error, with its
 * enum ibv_wc_status, vb_note_request() for a peer's request that is refused here, and
 * vb_note_refused() for a call that is refused with the errno `err`.
 */
#define VB_NOTE(from) __attribute__((format(printf, from, (from) + 1), cold))

VB_SHARED void vb_note(enum vb_reason reason, const char *fmt, ...) VB_NOTE(2);
VB_SHARED void vb_note_failed(int status, enum vb_reason reason, const char *fmt, ...) VB_NOTE(3);
VB_SHARED void vb_note_request(enum vb_reason reason, const char *fmt, ...) VB_NOTE(2);
VB_SHARED void vb_note_refused(int err, enum vb_reason reason, const char *fmt, ...) VB_NOTE(3);

/*
 * vb_note_refused() as an expression of the value -err, for
 * `return vb_refuse(err, reason, fmt, ...)`. `err` is evaluated twice.
 */
#define vb_refuse(err, ...) (vb_note_refused((err), __VA_ARGS__), -(err))

/* How often the reason was noted by this process. */
VB_SHARED uint64_t vb_reason_count(enum vb_reason reason);

#endif
