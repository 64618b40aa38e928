/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Printing what failed in processes, from their journals. */
#ifndef TOOLS_EXPLAIN_PROCESSES_H
#define TOOLS_EXPLAIN_PROCESSES_H

#include <stdbool.h>

/* Whether something failed in that process of this user, which may have ended. */
bool process_has_journal(int pid);

/* Prints the failures of one process. EXIT_SUCCESS, or EXIT_FAILURE with the error told. */
int process_explain(int pid);

/* Prints one line for each process that has a journal, the latest first. */
int processes_list(void);

#endif
