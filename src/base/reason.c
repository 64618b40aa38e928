/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Reasons: names, meanings, counters, and the log line of each occurrence. */
#include "base/reason.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>

#include "base/log.h"

struct reason_entry {
	enum vb_reason code;
	const char *name;
	const char *text;
};

static const struct reason_entry reasons[] = {{VB_REASON_NONE, "NONE", "no reason recorded"},
#define VB_REASON_ENTRY(code, name, text) {VB_REASON_##name, #name, text},
					      VB_REASONS(VB_REASON_ENTRY)
#undef VB_REASON_ENTRY
};

#define NUM_REASONS (sizeof(reasons) / sizeof(reasons[0]))

static _Atomic uint64_t counts[NUM_REASONS];

static size_t reason_index(enum vb_reason reason)
{
	for (size_t i = 1; i < NUM_REASONS; i++) {
		if (reasons[i].code == reason)
			return i;
	}
	return 0;
}

const char *vb_reason_name(enum vb_reason reason)
{
	return reasons[reason_index(reason)].name;
}

const char *vb_reason_text(enum vb_reason reason)
{
	return reasons[reason_index(reason)].text;
}

uint64_t vb_reason_count(enum vb_reason reason)
{
	return atomic_load_explicit(&counts[reason_index(reason)], memory_order_relaxed);
}

void vb_note(enum vb_reason reason, const char *fmt, ...)
{
	size_t i = reason_index(reason);
	va_list ap;

	atomic_fetch_add_explicit(&counts[i], 1, memory_order_relaxed);
	if (!vb_log_enabled(VB_LOG_DEBUG))
		return;
	va_start(ap, fmt);
	vb_log_reason(reasons[i].code, reasons[i].name, fmt, ap);
	va_end(ap);
}
