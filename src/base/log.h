/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The log, which is off unless the environment asks for it.
 *
 * VERBATIM_LOG=none|error|warn|info|debug (or rdma-core's VERBS_LOG_LEVEL=1..4) chooses the level, and
 * VERBS_LOG_FILE the file, which is appended to (default: standard error). Both are read once, with
 * secure_getenv(3). Each line is one write(2).
 */
#ifndef VB_BASE_LOG_H
#define VB_BASE_LOG_H

#include <stdarg.h>
#include <stdbool.h>

#include "base/export.h"
enum vb_log_level {
	VB_LOG_NONE,
	VB_LOG_ERROR,
	VB_LOG_WARN,
	VB_LOG_INFO,
	VB_LOG_DEBUG,
};

/*
 * Whether lines of this level are written. The first call reads the environment; later calls are
 * cheap.
 */
VB_SHARED bool vb_log_enabled(enum vb_log_level level);

/* Whether the environment asks for silence by name: VERBATIM_LOG=none. */
VB_SHARED bool vb_log_is_silenced(void);

/* Writes one line. Thread-safe; keeps errno. */
VB_SHARED void vb_log(enum vb_log_level level, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
VB_SHARED void vb_vlog(enum vb_log_level level, const char *fmt, va_list ap);

/* Writes a debug line that starts with a reason's code and name (base/reason.h). */
VB_SHARED void vb_log_reason(unsigned int code, const char *name, const char *fmt, va_list ap);

#endif
