/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * One failure as it is kept in memory and in the journal, and the form of the journal.
 *
 * A journal is the file RUNTIME/failures/PID (base/runtime_dir.h) of a process that uses the
 * library: one header and VB_FAILURE_SLOTS failures, each in a place of its own. The places of the
 * first failures are never used again, the others are reused in turn. `verbatim explain` reads it,
 * and trusts no byte of it: any program of the user may have written it.
 */
#ifndef VB_BASE_FAILURE_RECORD_H
#define VB_BASE_FAILURE_RECORD_H

#include <stdint.h>

#define VB_JOURNAL_FOLDER  "failures"
#define VB_JOURNAL_MAGIC   0x316c6e7275426256ull /* "VbBurnl1" */
#define VB_FAILURE_FIRST   8                     /* places that keep the first failures */
#define VB_FAILURE_SLOTS   32
#define VB_FAILURE_TEXT    472
#define VB_JOURNAL_RUNNING (-1)

enum vb_failure_kind {
	VB_FAILURE_FACT,       /* a drop, or something that is worth knowing */
	VB_FAILURE_CALL,       /* a refused call: the value is its errno */
	VB_FAILURE_COMPLETION, /* a failed completion: the value is its status */
	VB_FAILURE_REQUEST,    /* a peer's request that was refused here */
	VB_FAILURE_KINDS
};

struct vb_failure_record {
	uint64_t number;  /* counted from 1; 0: nothing is here */
	uint64_t when_ns; /* CLOCK_REALTIME */
	uint64_t count;   /* how often the reason had occurred by then, this time included */
	uint32_t reason;
	uint16_t kind;
	uint16_t value;
	uint32_t probe; /* 1: programs make such calls to find out what a device offers */
	uint32_t unused;
	char text[VB_FAILURE_TEXT];
};

struct vb_journal_header {
	uint64_t magic;
	uint64_t start_time; /* of the process, in clock ticks since boot: field 22 of proc(5) */
	uint64_t pid_namespace;
	int32_t pid;
	int32_t ended; /* the status of exit(3), or VB_JOURNAL_RUNNING */
	char name[64];
	char unused[416];
};

_Static_assert(sizeof(struct vb_failure_record) == 512, "one place of the journal");
_Static_assert(sizeof(struct vb_journal_header) == 512, "and its header");

#endif
