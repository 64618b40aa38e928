/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The log: level and file from the environment, one write per line. */
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/sys.h"

#define LINE_MAX_BYTES 1024

static pthread_once_t once = PTHREAD_ONCE_INIT;
static enum vb_log_level log_level = VB_LOG_NONE;
static char log_file[512];

static const char *const level_names[] = {"none", "error", "warn", "info", "debug"};

static enum vb_log_level level_parse(const char *text)
{
	for (int i = VB_LOG_NONE; i <= VB_LOG_DEBUG; i++) {
		if (strcmp(text, level_names[i]) == 0)
			return (enum vb_log_level)i;
	}
	int n = atoi(text);

	if (n < VB_LOG_NONE)
		return VB_LOG_NONE;
	return n > VB_LOG_DEBUG ? VB_LOG_DEBUG : (enum vb_log_level)n;
}

static void log_setup(void)
{
	const char *text = secure_getenv("VERBATIM_LOG");
	const char *file = secure_getenv("VERBS_LOG_FILE");

	if (!text)
		text = secure_getenv("VERBS_LOG_LEVEL");
	if (text)
		log_level = level_parse(text);
	if (file && strlen(file) < sizeof(log_file))
		strcpy(log_file, file);
}

bool vb_log_enabled(enum vb_log_level level)
{
	pthread_once(&once, log_setup);
	return level <= log_level;
}

bool vb_log_is_silenced(void)
{
	const char *text = secure_getenv("VERBATIM_LOG");

	return text && (!strcmp(text, "none") || !strcmp(text, "0"));
}

/* The file is opened for each line: between lines the program may close every descriptor. */
static void line_write(const char *line, size_t len)
{
	int fd = STDERR_FILENO;

	if (log_file[0]) {
		fd = vb_sys_open(log_file, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC);
		if (fd < 0)
			return;
	}
	ssize_t n = vb_sys_write(fd, line, len);

	(void)n;
	if (log_file[0])
		vb_sys_close(fd);
}

static void line_emit(const char *head, const char *fmt, va_list ap)
{
	char line[LINE_MAX_BYTES];
	int saved = errno;
	int n = snprintf(line, sizeof(line), "verbatim[%d] %s: ", (int)getpid(), head);
	int m = vsnprintf(line + n, sizeof(line) - (size_t)n - 1, fmt, ap);
	size_t len = (size_t)n + (m < 0 ? 0 : (size_t)m);

	if (len > sizeof(line) - 2)
		len = sizeof(line) - 2;
	line[len++] = '\n';
	line_write(line, len);
	errno = saved;
}

void vb_vlog(enum vb_log_level level, const char *fmt, va_list ap)
{
	if (vb_log_enabled(level))
		line_emit(level_names[level], fmt, ap);
}

void vb_log(enum vb_log_level level, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vb_vlog(level, fmt, ap);
	va_end(ap);
}

void vb_log_reason(unsigned int code, const char *name, const char *fmt, va_list ap)
{
	char head[64];

	snprintf(head, sizeof(head), "0x%x %s", code, name);
	line_emit(head, fmt, ap);
}
