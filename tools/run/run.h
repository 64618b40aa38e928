/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What `verbatim run` was asked to do, and how it speaks. */
#ifndef TOOLS_RUN_RUN_H
#define TOOLS_RUN_RUN_H

#include <stdbool.h>

/* How the program is shown the files of the devices. */
enum run_view { RUN_VIEW_PRELOAD, RUN_VIEW_NAMESPACE, RUN_VIEW_NONE };

struct run {
	enum run_view view;
	bool quiet;
	bool rsockets; /* its sockets become rsockets */
	bool mapped;   /* its large blocks of memory are ones that peers map */
	bool verbose;
	char **argv; /* the program and its arguments */
};

/* One line on standard error, unless the run is quiet. */
void run_say(const struct run *run, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
