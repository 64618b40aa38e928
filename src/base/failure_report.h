/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What is said on standard error when a program ends after a failure. */
#ifndef VB_BASE_FAILURE_REPORT_H
#define VB_BASE_FAILURE_REPORT_H

/* Remembers what standard error is, while it is still the one that the program was started with. */
void vb_failure_report_prepare(void);

/*
 * Writes at most five lines, in one write: what failed first, what to do about it, where there is
 * more. Nothing is written if nothing failed, or if the program ends with status 0 and can be
 * expected to have known what it did. Never waits for a reader of standard error, and raises no
 * SIGPIPE. Nothing is written to a descriptor 2 that the program has opened itself.
 */
void vb_failure_report(int status);

#endif
