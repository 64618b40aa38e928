/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Occurrences of reasons: their counters, their log lines, and the list of failures. */
#include "base/reason.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>

#include "base/failure.h"
#include "base/log.h"

/* One for each entry of the table, VB_REASON_NONE included. */
#define VB_REASON_ONE(code, name, text, cause, cure) +1
static _Atomic uint64_t counts[1 VB_REASONS(VB_REASON_ONE)];
#undef VB_REASON_ONE

static size_t reason_index(enum vb_reason reason)
{
	return (size_t)(vb_reason_entry(reason) - vb_reason_entry(VB_REASON_NONE));
}

uint64_t vb_reason_count(enum vb_reason reason)
{
	return atomic_load_explicit(&counts[reason_index(reason)], memory_order_relaxed);
}

static void note(struct vb_failure_origin origin, enum vb_reason reason, const char *fmt,
		 va_list ap)
{
	const struct vb_reason_entry *entry = vb_reason_entry(reason);
	uint64_t before =
		atomic_fetch_add_explicit(&counts[reason_index(reason)], 1, memory_order_relaxed);

	if (vb_failures_kept()) {
		va_list again;

		va_copy(again, ap);
		vb_failure_add(origin, entry->code, before + 1, fmt, again);
		va_end(again);
	}
	if (vb_log_enabled(VB_LOG_DEBUG))
		vb_log_reason(entry->code, entry->name, fmt, ap);
}

void vb_note(enum vb_reason reason, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	note((struct vb_failure_origin){VB_FAILURE_FACT, 0}, reason, fmt, ap);
	va_end(ap);
}

void vb_note_failed(int status, enum vb_reason reason, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	note((struct vb_failure_origin){VB_FAILURE_COMPLETION, status}, reason, fmt, ap);
	va_end(ap);
}

void vb_note_request(enum vb_reason reason, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	note((struct vb_failure_origin){VB_FAILURE_REQUEST, 0}, reason, fmt, ap);
	va_end(ap);
}

void vb_note_refused(int err, enum vb_reason reason, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	note((struct vb_failure_origin){VB_FAILURE_CALL, err}, reason, fmt, ap);
	va_end(ap);
}
