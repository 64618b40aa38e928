/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What the other end of a connection knows about a failure: its journal, if it is on this host. */
#ifndef TOOLS_EXPLAIN_OTHER_SIDE_H
#define TOOLS_EXPLAIN_OTHER_SIDE_H

#include "explain/journals.h"

/*
 * Prints the refusals of processes of this user that were answers to this failed completion of
 * process `pid`.
 */
void other_side_print(int pid, const struct vb_failure_record *completion);

#endif
