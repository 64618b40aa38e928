/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Why a namespace could not be entered. */
#ifndef TOOLS_RUN_NAMESPACE_REFUSED_H
#define TOOLS_RUN_NAMESPACE_REFUSED_H

#include <stddef.h>

enum namespace_step { NAMESPACE_CREATE, NAMESPACE_MAP, NAMESPACE_MOUNT };

/* One line: the setting of this machine that forbids the step, where one is found. */
void namespace_refused(char *why, size_t size, enum namespace_step step, int err,
		       const char *where);

#endif
