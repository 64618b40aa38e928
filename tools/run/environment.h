/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The environment that puts this library into a program. */
#ifndef TOOLS_RUN_ENVIRONMENT_H
#define TOOLS_RUN_ENVIRONMENT_H

#include "run/program.h"
#include "run/run.h"

/*
 * Sets the environment of this process. `view`: the directory with the files of the devices, empty
 * if there is none. 0 or a negative errno.
 */
int environment_set(const struct run *run, const struct program *program, const char *libraries,
		    const char *view);

#endif
