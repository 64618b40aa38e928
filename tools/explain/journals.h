/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Reading journals of failures (src/base/failure_record.h). Any program of the user can have
 * written what is read: sizes, kinds and texts are checked, and nothing is changed.
 */
#ifndef TOOLS_EXPLAIN_JOURNALS_H
#define TOOLS_EXPLAIN_JOURNALS_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <time.h>

#include "base/failure_record.h"

struct journal {
	int pid;
	bool alive; /* the process that wrote it still runs */
	int ended;  /* its exit status, or VB_JOURNAL_RUNNING: running, or ended by a signal */
	time_t changed;
	char name[64];
	unsigned int count;
	struct vb_failure_record records[VB_FAILURE_SLOTS]; /* in the order of their numbers */
};

/* The directory of journals. 0, or a negative errno. */
int journals_folder(char *path, size_t size);

/* -ENOENT: there is none. -EBADMSG: it is not a journal. Other errors of opening it. */
int journal_read(const char *folder, int pid, struct journal *j);

enum { JOURNALS_MAX = 64 };

/* The numbers of the processes whose journals changed last, the latest first. Their count. */
unsigned int journals_list(const char *folder, int pids[JOURNALS_MAX]);

#endif
