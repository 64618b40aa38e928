/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Where files may not grow (RLIMIT_FSIZE) a write ends the program by SIGXFSZ. Between these two
 * calls it fails with EFBIG instead. The program that is executed later has the signal as it was.
 */
#ifndef TOOLS_VIEW_FILE_SIZE_H
#define TOOLS_VIEW_FILE_SIZE_H

#include <signal.h>

static inline void file_size_begin(struct sigaction *former)
{
	const struct sigaction ignore = {.sa_handler = SIG_IGN};

	sigaction(SIGXFSZ, &ignore, former);
}

static inline void file_size_end(const struct sigaction *former)
{
	sigaction(SIGXFSZ, former, NULL);
}

#endif
