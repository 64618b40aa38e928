/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The failures of this process: the first ones and the last ones, with their texts.
 *
 * They are kept when VERBATIM_REPORT is set to 1 or 2 (`verbatim run` sets 1; secure_getenv(3)) and
 * VERBATIM_LOG is not none. Nothing is done on the way of a call that succeeds. The first failure
 * that is no probe makes a journal (base/journal.h). When the program exits, failure_report.c says
 * what failed first.
 */
#ifndef VB_BASE_FAILURE_H
#define VB_BASE_FAILURE_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/failure_record.h"
#include "base/reason.h"

enum vb_report { VB_REPORT_OFF, VB_REPORT_FAILED, VB_REPORT_ALWAYS };

/* What VERBATIM_REPORT asks for. Constant after the library was loaded. */
extern enum vb_report vb_report;

static inline bool vb_failures_kept(void)
{
	return vb_report != VB_REPORT_OFF;
}

struct vb_failure_origin {
	enum vb_failure_kind kind;
	int value;
};

/*
 * Keeps one failure. `count`: how often the reason has occurred. A reason that occurs often is kept
 * at most a hundred times a second. Keeps errno. May be called under any lock, at any time but from
 * a signal handler.
 */
void vb_failure_add(struct vb_failure_origin origin, enum vb_reason reason, uint64_t count,
		    const char *fmt, va_list ap);

/*
 * The program made a new queue pair: it goes on, and what failed before is in the past if the
 * program ends with status 0.
 */
void vb_failures_past(void);

/* What the report says. Copies: the list may go on changing. */
struct vb_failures {
	struct vb_failure_record first;  /* the first failure that is no probe; number 0: none */
	struct vb_failure_record detail; /* the fact behind it; number 0: none */
	struct vb_failure_record last;   /* the last failure, if its reason is another one */
	struct vb_failure_record probe;  /* the last probe */
	struct vb_failure_record drop;   /* the last datagram or packet that was dropped */
	uint64_t failures;               /* how many were no probes */
	bool journal;                    /* there is a journal that can be read */
	bool present; /* a completion failed for a fault of this program, and it is not past */
};

/* False: nothing has failed in this process (a parent's failures do not count). */
bool vb_failures_get(struct vb_failures *failures);

#endif
