/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Starting the keeper of a view. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/auxv.h>
#include <sys/wait.h>
#include <unistd.h>

#include "view/keeper.h"
#include "view/lock.h"
#include "view/why.h"

enum { DESCRIPTORS_MOST = 65536 };

static void close_above(int last)
{
#ifdef SYS_close_range
	if (!syscall(SYS_close_range, last + 1, ~0u, 0))
		return;
#endif
	long most = sysconf(_SC_OPEN_MAX);

	for (int fd = last + 1; fd < most && fd < DESCRIPTORS_MOST; fd++)
		close(fd);
}

static void plain_signals(void)
{
	sigset_t none;

	for (int i = 1; i < NSIG; i++)
		signal(i, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

static void plain_descriptors(int lock)
{
	int nothing = open("/dev/null", O_RDWR);

	/* A process without standard descriptors may have got the lock at one of those numbers. */
	lock = fcntl(lock, F_DUPFD, KEEPER_LOCK + 1);
	for (int fd = 0; fd < KEEPER_LOCK; fd++) {
		if (nothing < 0 || dup2(nothing, fd) < 0)
			close(fd);
	}
	dup2(lock, KEEPER_LOCK);
	close_above(KEEPER_LOCK);
}

/* In a process of its own; the program itself anew, so that it has no state of this one. */
static void become_keeper(const char *dir, int lock)
{
	char *const argv[] = {"verbatim", "view", "--keep", (char *)(size_t)dir, NULL};
	char *const none[] = {NULL};

	plain_signals();
	plain_descriptors(lock);
	umask(S_IRWXG | S_IRWXO);
	if (chdir("/"))
		_exit(EXIT_FAILURE);
	execve("/proc/self/exe", argv, none);
	execve((const char *)getauxval(AT_EXECFN), argv, none); /* where /proc is not mounted */
	_exit(EXIT_FAILURE);
}

int keeper_start(const char *dir)
{
	int lock = view_lock(dir, VIEW_KEEPER, 0);
	int status;
	pid_t pid;

	if (lock < 0)
		return lock == -EWOULDBLOCK ? 0 : view_fail(lock, "no keeper for %s", dir);
	pid = fork();
	if (pid < 0) {
		int err = -errno;

		close(lock);
		return view_fail(err, "no keeper for %s", dir);
	}
	if (!pid) {
		setsid();
		if (!fork())
			become_keeper(dir, lock);
		_exit(EXIT_SUCCESS);
	}
	close(lock);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return 0;
}
