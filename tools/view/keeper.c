/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Keeping a view true: one loop over what the kernel and the processes tell. */
#include "view/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/runtime_dir.h"
#include "view/changes.h"
#include "view/counters_show.h"
#include "view/keeper_end.h"
#include "view/lock.h"
#include "view/users.h"
#include "view/view.h"

enum {
	SETTLE_MS = 20, /* an interface that comes makes several messages */
	BEGIN_MS = 500,
	AGAIN_MS = 1000,  /* after a failure to write */
	COUNT_MS = 100,   /* between sums while they change */
	STILL_MS = 500,   /* between sums while they do not */
	STILL = 10,       /* so many sums without a change */
	LOOK_MS = 10000,  /* between looks for users of which one is known */
	BLIND_MS = 500,   /* where none has a descriptor */
	GRACE_MS = 1000,  /* a script that starts one program after the other keeps its view */
	PARENT_MS = 500,  /* between looks of a standby without a descriptor */
	WRITE_REST = 2,   /* so long, by the time that writing took, nothing is written */
	COUNT_SHARE = 20, /* sums take at most a twentieth of the time */
	NEVER = -1,
	FIXED = 4, /* descriptors besides those of users */
};

struct keeper {
	const char *dir;
	bool removes; /* a user's view, which ends with its users */
	int lock;
	int signals;
	pid_t standby_pid;
	int standby; /* -1: no descriptor */
	struct changes changes;
	struct view_users users;
	/* When it is to be done next, in ms; NEVER. */
	int64_t write_at, count_at, look_at;
	int64_t rested_at;   /* before this the tree is not written again */
	int64_t alone_since; /* NEVER: there are users */
	int still;
};

static int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void sooner(int64_t *at, int64_t then)
{
	if (*at == NEVER || then < *at)
		*at = then;
}

/* Waits until the parent has ended. */
static void wait_for_parent(pid_t parent)
{
	int fd = (int)syscall(SYS_pidfd_open, parent, 0);
	struct pollfd end = {.fd = fd, .events = POLLIN};

	while (getppid() == parent)
		poll(&end, fd >= 0, fd >= 0 ? -1 : PARENT_MS);
}

/* The standby holds the keeper's lock as well, so that nobody comes in between. */
static void be_standby(const char *dir, pid_t keeper)
{
	char *const argv[] = {"verbatim", "view", "--keep", (char *)(size_t)dir, NULL};
	char *const none[] = {NULL};

	prctl(PR_SET_NAME, "vb-view-standby");
	wait_for_parent(keeper);
	execve("/proc/self/exe", argv, none);
	_exit(EXIT_FAILURE);
}

static void standby_begin(struct keeper *k)
{
	sigset_t none;
	pid_t own = getpid();

	k->standby_pid = fork();
	if (!k->standby_pid) {
		sigemptyset(&none);
		sigprocmask(SIG_SETMASK, &none, NULL);
		if (k->lock != KEEPER_LOCK)
			dup2(k->lock, KEEPER_LOCK);
		else
			fcntl(KEEPER_LOCK, F_SETFD, 0);
		be_standby(k->dir, own);
	}
	k->standby = k->standby_pid > 0 ? (int)syscall(SYS_pidfd_open, k->standby_pid, 0) : -1;
	if (k->standby >= 0)
		fcntl(k->standby, F_SETFD, FD_CLOEXEC);
}

static void standby_end(struct keeper *k)
{
	if (k->standby_pid > 0) {
		kill(k->standby_pid, SIGKILL);
		waitpid(k->standby_pid, NULL, 0);
	}
	if (k->standby >= 0)
		close(k->standby);
	k->standby_pid = 0;
	k->standby = -1;
}

/* The standby was killed. */
static void standby_again(struct keeper *k)
{
	standby_end(k);
	standby_begin(k);
}

/*
 * The directory may have been removed, and another view made there: by another keeper, which then
 * goes on alone, or by nobody. False: there is another keeper.
 */
static bool still_ours(struct keeper *k)
{
	int lock;

	if (!k->removes || view_lock_holds(k->lock, k->dir, VIEW_KEEPER))
		return true;
	if (vb_private_dir(k->dir))
		return true; /* cannot be made now; later */
	lock = view_lock(k->dir, VIEW_KEEPER, 0);
	if (lock == -EWOULDBLOCK)
		return false;
	if (lock < 0)
		return true;
	dup3(lock, k->lock, O_CLOEXEC);
	close(lock);
	standby_again(k); /* the standby has the lock that is gone */
	return true;
}

static void write_soon(struct keeper *k)
{
	int64_t at = now_ms() + SETTLE_MS;

	sooner(&k->write_at, at > k->rested_at ? at : k->rested_at);
}

/* False: another keeper has the view. */
static bool write_tree(struct keeper *k)
{
	int64_t begin = now_ms();

	k->write_at = NEVER;
	if (!still_ours(k))
		return false;
	if (view_write(k->dir)) {
		if (!k->removes)
			fprintf(stderr, "verbatim view: %s\n", view_why());
		k->write_at = now_ms() + AGAIN_MS;
	}
	/* Something may have been removed between its writing and its watch: once more. */
	bool again = changes_watch(&k->changes, k->dir);

	k->rested_at = now_ms() + (now_ms() - begin) * WRITE_REST;
	if (again)
		write_soon(k);
	sooner(&k->count_at, now_ms());
	return true;
}

static void count(struct keeper *k)
{
	int64_t begin = now_ms(), took;
	int64_t rest = COUNT_MS;

	k->still = counters_show(k->dir) ? 0 : k->still + 1;
	took = now_ms() - begin;
	if (k->still >= STILL)
		rest = counters_any(k->dir) || k->changes.notify < 0 ? STILL_MS : NEVER;
	if (rest != NEVER && rest < took * COUNT_SHARE)
		rest = took * COUNT_SHARE;
	k->count_at = rest == NEVER ? NEVER : now_ms() + rest;
}

/* True: the view is removed. */
static bool look_for_users(struct keeper *k)
{
	int64_t now = now_ms();

	view_users_close(&k->users);
	view_users_find(k->dir, &k->users);
	if (!view_users_none(&k->users)) {
		k->alone_since = NEVER;
		k->look_at = now + (k->users.count ? LOOK_MS : BLIND_MS);
		return false;
	}
	if (k->alone_since == NEVER)
		k->alone_since = now;
	if (now - k->alone_since >= GRACE_MS && keeper_end(k->dir))
		return true;
	k->look_at = now + GRACE_MS / 2;
	return false;
}

static int wait_ms(const struct keeper *k)
{
	int64_t at = NEVER, now = now_ms();

	if (k->write_at != NEVER)
		sooner(&at, k->write_at);
	if (k->count_at != NEVER)
		sooner(&at, k->count_at);
	if (k->look_at != NEVER)
		sooner(&at, k->look_at);
	if (at == NEVER)
		return -1;
	return at > now ? (int)(at - now) : 0;
}

static void files_changed(struct keeper *k, struct changes_seen seen)
{
	if (seen.tree)
		write_soon(k);
	if (seen.tree || seen.counters) {
		sooner(&k->count_at, now_ms() + COUNT_MS);
		k->still = 0;
	}
}

/* Waits for the next thing to do, and notes it. False: it is to end. */
static bool wait_for_work(struct keeper *k)
{
	struct pollfd fds[FIXED + VIEW_USERS_SEEN] = {
		{.fd = k->signals, .events = POLLIN},
		{.fd = k->changes.route, .events = POLLIN},
		{.fd = k->changes.notify, .events = POLLIN},
		{.fd = k->standby, .events = POLLIN},
	};
	int n = FIXED + k->users.count;

	for (int i = 0; i < k->users.count; i++)
		fds[FIXED + i] = (struct pollfd){.fd = k->users.fd[i], .events = POLLIN};
	if (poll(fds, (nfds_t)n, wait_ms(k)) <= 0)
		return true;
	if (fds[0].revents)
		return false;
	if (fds[1].revents && changes_route(&k->changes))
		write_soon(k);
	if (fds[2].revents)
		files_changed(k, changes_files(&k->changes));
	if (fds[3].revents)
		standby_again(k);
	for (int i = FIXED; i < n; i++) {
		if (fds[i].revents)
			sooner(&k->look_at, now_ms());
	}
	return true;
}

static bool is_due(int64_t at)
{
	return at != NEVER && now_ms() >= at;
}

/* False: the view is removed, or another keeper's. */
static bool work(struct keeper *k)
{
	if (is_due(k->write_at) && !write_tree(k))
		return false;
	if (is_due(k->count_at))
		count(k);
	return !is_due(k->look_at) || !look_for_users(k);
}

static int open_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC);
}

static void keep(struct keeper *k)
{
	k->signals = open_signals();
	changes_open(&k->changes, k->dir);
	/* Who has started it writes the tree the first time. */
	k->write_at = now_ms() + (k->removes ? BEGIN_MS : 0);
	k->count_at = now_ms();
	k->look_at = k->removes ? now_ms() : NEVER;
	k->alone_since = NEVER;
	while (work(k) && wait_for_work(k))
		;
	view_users_close(&k->users);
	changes_close(&k->changes);
	if (k->signals >= 0)
		close(k->signals);
}

int keeper_run(const char *dir)
{
	struct keeper k = {.dir = dir, .removes = true, .lock = KEEPER_LOCK, .standby = -1};

	if (!view_lock_holds(k.lock, dir, VIEW_KEEPER))
		k.lock = view_lock(dir, VIEW_KEEPER, 0);
	if (k.lock < 0)
		return EXIT_SUCCESS; /* there is one, or nothing to keep */
	fcntl(k.lock, F_SETFD, FD_CLOEXEC);
	prctl(PR_SET_NAME, "vb-view-keeper");
	standby_begin(&k);
	keep(&k);
	standby_end(&k);
	close(k.lock);
	return EXIT_SUCCESS;
}

int keeper_follow(const char *dir)
{
	struct keeper k = {.dir = dir, .lock = -1, .standby = -1};

	keep(&k);
	return EXIT_SUCCESS;
}
