/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What of a program is out of reach. */
#ifndef TOOLS_RUN_UNREACHED_H
#define TOOLS_RUN_UNREACHED_H

#include "run/program.h"
#include "run/run.h"

/* Says in one line what this program will not see, and the cure; nothing where it sees all. */
void unreached_say(const struct run *run, const struct program *program);

#endif
