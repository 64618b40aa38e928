/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the verbs interface itself has names for: statuses of completions, asynchronous events, and
 * the errno of a refused call. Each has a meaning, the usual cause and what to do.
 */
#ifndef TOOLS_EXPLAIN_TERMS_H
#define TOOLS_EXPLAIN_TERMS_H

#include <stddef.h>

enum term_kind { TERM_STATUS, TERM_EVENT, TERM_ERRNO, TERM_KINDS };

struct term {
	enum term_kind kind;
	int value;
	const char *name; /* "IBV_WC_REM_ACCESS_ERR", "IBV_EVENT_QP_FATAL", "ENOMEM" */
	const char *text;
	const char *cause;
	const char *cure;
};

/* All terms, each kind in one piece, with growing values. */
const struct term *terms_all(size_t *count);

/* "completion status", "asynchronous event", "errno of a call". */
const char *term_kind_name(enum term_kind kind);

/* The name without IBV_WC_ or IBV_EVENT_ in front. */
const char *term_short_name(const struct term *term);

#endif
