/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The report at the end of a program: its lines, and how they get out without any wait. */
#include "base/failure_report.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/failure.h"
#include "base/log.h"
#include "base/sys.h"

#define REPORT_BYTES 3072

static struct {
	bool known;
	dev_t device;
	ino_t inode;
} standard_error;

struct report {
	char text[REPORT_BYTES];
	size_t length;
};

static void line(struct report *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void line(struct report *r, const char *fmt, ...)
{
	size_t room = sizeof(r->text) - r->length;
	int head = snprintf(r->text + r->length, room, "verbatim[%d]: ", (int)getpid());
	size_t used = (size_t)head;
	va_list ap;
	int n;

	if (used + 2 > room)
		return;
	va_start(ap, fmt);
	n = vsnprintf(r->text + r->length + used, room - used - 1, fmt, ap);
	va_end(ap);
	if (n < 0)
		return;
	used += (size_t)n < room - used - 1 ? (size_t)n : room - used - 2;
	r->text[r->length + used] = '\n';
	r->length += used + 1;
}

static void line_failure(struct report *r, const char *head, const struct vb_failure_record *f)
{
	if (f->kind == VB_FAILURE_CALL)
		line(r, "%s: %s: %s", head, f->text, strerror(f->value));
	else
		line(r, "%s: %s", head, f->text);
}

static void line_reason(struct report *r, uint32_t reason)
{
	const struct vb_reason_entry *e = vb_reason_entry((enum vb_reason)reason);

	line(r, "    0x%x %s: %s", e->code, e->name, e->cure);
}

static void line_more(struct report *r, const struct vb_failures *f)
{
	if (vb_log_enabled(VB_LOG_DEBUG))
		return;
	if (f->journal)
		line(r, "    more: verbatim explain %d; VERBATIM_LOG=debug tells of each failure",
		     (int)getpid());
	else
		line(r, "    more: VERBATIM_LOG=debug tells of each failure");
}

static void describe_failures(struct report *r, const struct vb_failures *f)
{
	line_failure(r, "failed first", &f->first);
	if (f->detail.number)
		line(r, "    %s", f->detail.text);
	/* A fact of another reason is what is behind it. */
	line_reason(r, f->detail.number ? f->detail.reason : f->first.reason);
	if (f->last.number)
		line_failure(r, "failed last", &f->last);
	line_more(r, f);
}

/* Nothing failed that had to: what was dropped or refused may explain why the program failed. */
static void describe_hints(struct report *r, const struct vb_failures *f)
{
	if (f->drop.number) {
		line(r, "dropped here, for this reason %llu times: %s",
		     (unsigned long long)f->drop.count, f->drop.text);
		line_reason(r, f->drop.reason);
	}
	if (f->probe.number) {
		line_failure(r, "refused last", &f->probe);
		line_reason(r, f->probe.reason);
	}
	if (r->length)
		line_more(r, f);
}

static void describe(struct report *r, const struct vb_failures *f, int status)
{
	bool failed = status & 0xff || vb_report == VB_REPORT_ALWAYS;

	if (f->failures && (failed || f->present))
		describe_failures(r, f);
	else if (failed && !f->failures)
		describe_hints(r, f);
}

/*
 * A pipe or a terminal is opened a second time, so that O_NONBLOCK is not set for the other
 * processes that share the description. Where that fails, it is asked whether there is room.
 */
static int open_again(mode_t mode)
{
	if (!S_ISFIFO(mode) && !S_ISCHR(mode))
		return -1;
	return vb_sys_open("/proc/self/fd/2", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

static void put(const struct report *r, mode_t mode)
{
	int fd = open_again(mode);
	ssize_t n = 0;

	if (S_ISSOCK(mode))
		n = vb_sys_send(STDERR_FILENO, r->text, r->length, MSG_DONTWAIT | MSG_NOSIGNAL);
	else if (fd >= 0)
		n = vb_sys_write(fd, r->text, r->length);
	else if (S_ISREG(mode) || vb_sys_poll_one(STDERR_FILENO, POLLOUT, 0) == 1)
		n = vb_sys_write(STDERR_FILENO, r->text, r->length);
	(void)n;
	if (fd >= 0)
		vb_sys_close(fd);
}

/*
 * A pipe without a reader raises SIGPIPE, and a terminal of another job SIGTTOU. A SIGPIPE that was
 * pending before stays so.
 */
static void put_quietly(const struct report *r, mode_t mode)
{
	const struct timespec now = {0};
	sigset_t quiet, old, pending;
	bool was_pending;

	sigemptyset(&quiet);
	sigaddset(&quiet, SIGPIPE);
	sigaddset(&quiet, SIGTTOU);
	sigpending(&pending);
	was_pending = sigismember(&pending, SIGPIPE);
	pthread_sigmask(SIG_BLOCK, &quiet, &old);
	put(r, mode);
	sigdelset(&quiet, SIGTTOU);
	if (!was_pending)
		(void)syscall(SYS_rt_sigtimedwait, &quiet, NULL, &now, VB_SYS_SIGNALS);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}

void vb_failure_report(int status)
{
	static struct vb_failures failures;
	static struct report report;
	struct stat st;

	if (!vb_failures_get(&failures))
		return;
	describe(&report, &failures, status);
	if (report.length && standard_error.known && !fstat(STDERR_FILENO, &st) &&
	    st.st_dev == standard_error.device && st.st_ino == standard_error.inode)
		put_quietly(&report, st.st_mode);
}

void vb_failure_report_prepare(void)
{
	struct stat st;

	if (fstat(STDERR_FILENO, &st))
		return;
	standard_error.known = true;
	standard_error.device = st.st_dev;
	standard_error.inode = st.st_ino;
}
