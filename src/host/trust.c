/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the kernel compares for ptrace(2), PTRACE_MODE_ATTACH_FSCREDS, asked from the side of the
 * target. The asker's file system ids equal the target's real, effective and saved ones; both are in
 * one user namespace, and the asker's effective capabilities are a superset of the target's permitted
 * ones, or it has CAP_SYS_PTRACE. Here no id may differ on either side (credentials(7)): a program in
 * the middle of changing its user is kin to none. And the asker can name the target at all: same pid
 * namespace (pid_namespaces(7)).
 *
 * A process is known by a number, and numbers are used again: a pidfd from before the message that
 * asks shows that it is still the same process. The message carries its sender's number and real
 * ids, so that a socket in other hands, or one whose maker has become a set-user-ID program since,
 * is not believed: such a program's /proc/PID/status belongs to root (proc(5), "dumpable").
 */
#include "host/trust.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/sys.h"

#ifndef SO_PEERPIDFD /* Linux 6.5 */
#define SO_PEERPIDFD 77
#endif

/* The kernel's built-in values; sysctls may say otherwise (proc_sys_kernel(5)). */
#define NOBODY      65534u
#define EVERY_ID    4294967295u
#define YAMA_PTRACE "/proc/sys/kernel/yama/ptrace_scope"
/* Yama: 1 asks the target to agree (tracer.c); 2 and 3 leave the target no choice. */
#define YAMA_TRACEE 1
#define YAMA_ADMIN  2
#define YAMA_NOBODY 3

/*
 * A process as /proc/PID/status describes it (proc_pid_status(5)), in this process's user
 * namespace.
 */
struct identity {
	unsigned int uid[4], gid[4]; /* real, effective, saved, file system */
	uint64_t permitted, effective;
	/* The second is set for a process in a pid namespace below that of this /proc. */
	unsigned int pid[2];
	int pids;
};

/*
 * Kept with the number of the process that read it, because only a process with a single thread can
 * change its namespace. The value is in the lowest bit.
 */
static _Atomic int64_t every_user_known;

static uint32_t number_of(const char *path, uint32_t fallback)
{
	FILE *f = vb_sys_fopen(path);
	uint32_t number;

	if (!f)
		return fallback;
	if (fscanf(f, "%" SCNu32, &number) != 1)
		number = fallback;
	fclose(f);
	return number;
}

static bool uid_is_nobody(uint32_t uid)
{
	static _Atomic uint32_t overflow;

	if (!atomic_load(&overflow))
		atomic_store(&overflow, number_of("/proc/sys/kernel/overflowuid", NOBODY));
	return uid == UINT32_MAX || uid == NOBODY || uid == atomic_load(&overflow);
}

static bool gid_is_nobody(uint32_t gid)
{
	static _Atomic uint32_t overflow;

	if (!atomic_load(&overflow))
		atomic_store(&overflow, number_of("/proc/sys/kernel/overflowgid", NOBODY));
	return gid == UINT32_MAX || gid == NOBODY || gid == atomic_load(&overflow);
}

static bool map_is_whole(void)
{
	FILE *f = vb_sys_fopen("/proc/self/uid_map");
	uint32_t first = 1, outside = 1, count = 0;

	if (!f)
		return false;
	bool whole = fscanf(f, "%" SCNu32 " %" SCNu32 " %" SCNu32, &first, &outside, &count) == 3;

	fclose(f);
	return whole && !first && !outside && count == EVERY_ID;
}

/*
 * Whether the user namespace of this process has a number for every user. That of the system has.
 */
static bool every_user_has_a_number(void)
{
	int64_t known = atomic_load(&every_user_known), pid = getpid();

	if (known >> 1 != pid) {
		known = pid << 1 | map_is_whole();
		atomic_store(&every_user_known, known);
	}
	return known & 1;
}

bool vb_trust_is_one_user(uid_t uid)
{
	return !uid_is_nobody(uid) || every_user_has_a_number();
}

bool vb_trust_is_one_group(gid_t gid)
{
	return !gid_is_nobody(gid);
}

bool vb_trust_same_user(uid_t uid)
{
	return uid == geteuid() && vb_trust_is_one_user(uid);
}

bool vb_trust_says_uid(void)
{
	const char *text = secure_getenv("VERBATIM_TRUST");

	return text && !strcmp(text, "uid");
}

static bool begins(const char *line, const char *label)
{
	return !strncmp(line, label, strlen(label));
}

static void line_read(const char *line, struct identity *id, int *lines)
{
	unsigned int *u = id->uid, *g = id->gid;
	bool read = false;

	if (begins(line, "Uid:"))
		read = sscanf(line + 4, "%u %u %u %u", &u[0], &u[1], &u[2], &u[3]) == 4;
	else if (begins(line, "Gid:"))
		read = sscanf(line + 4, "%u %u %u %u", &g[0], &g[1], &g[2], &g[3]) == 4;
	else if (begins(line, "CapPrm:"))
		read = sscanf(line + 7, "%" SCNx64, &id->permitted) == 1;
	else if (begins(line, "CapEff:"))
		read = sscanf(line + 7, "%" SCNx64, &id->effective) == 1;
	else if (begins(line, "NSpid:"))
		read = (id->pids = sscanf(line + 6, "%u %u", &id->pid[0], &id->pid[1])) > 0;
	*lines += read;
}

/* The whole lines in the text. Returns what comes after them. */
static char *lines_read(char *text, struct identity *id, int *lines)
{
	char *end;

	for (; (end = strchr(text, '\n')); text = end + 1) {
		*end = '\0';
		line_read(text, id, lines);
	}
	return text;
}

/*
 * Without stdio(3), which allocates: want of memory would make strangers of kin. A line may be longer
 * than this (groups). Its other parts begin with no name.
 */
static bool identity_read(const char *path, struct identity *id)
{
	int fd = vb_sys_open(path, O_RDONLY | O_CLOEXEC);
	size_t have = 0, most;
	char text[1024], *rest;
	int lines = 0;
	ssize_t n;

	memset(id, 0, sizeof(*id));
	if (fd < 0)
		return false;
	while (most = sizeof(text) - 1 - have, (n = vb_sys_read(fd, text + have, most)) > 0) {
		have += (size_t)n;
		text[have] = '\0';
		rest = lines_read(text, id, &lines);
		have -= (size_t)(rest - text);
		if (have == sizeof(text) - 1)
			have = 0;
		memmove(text, rest, have);
	}
	vb_sys_close(fd);
	return lines == 5;
}

static bool all_are(const unsigned int ids[4], unsigned int id)
{
	return ids[0] == id && ids[1] == id && ids[2] == id && ids[3] == id;
}

/*
 * Of the calling thread: a program may have changed the capabilities of its other threads and not
 * of this one.
 */
static uint64_t own_permitted(void)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {{0}, {0}};

	if (syscall(SYS_capget, &head, data))
		return UINT64_MAX;
	return (uint64_t)data[1].permitted << 32 | data[0].permitted;
}

/*
 * What this process knows of itself. A process that comes into contact with hundreds of others is
 * asked as often, so what was read stands for a moment: as if the question had come so much earlier.
 * A change of ids or capabilities by this process counts at once.
 */
#define STANDS_NS 10000000ull

struct own {
	pid_t pid;
	uid_t uid[3]; /* real, effective, saved */
	gid_t gid[3];
	uint64_t permitted; /* of the calling thread */
	uint64_t at;        /* CLOCK_MONOTONIC ns */
	bool ours;          /* this /proc shows the pid namespace of this process */
	struct identity identity;
	uint32_t yama;
};

static void own_keys(struct own *own)
{
	own->pid = getpid();
	(void)getresuid(&own->uid[0], &own->uid[1], &own->uid[2]);
	(void)getresgid(&own->gid[0], &own->gid[1], &own->gid[2]);
	own->permitted = own_permitted();
}

static bool own_stands(const struct own *known, const struct own *now)
{
	return known->at && now->at - known->at < STANDS_NS && known->pid == now->pid &&
	       known->permitted == now->permitted &&
	       !memcmp(known->uid, now->uid, sizeof(now->uid)) &&
	       !memcmp(known->gid, now->gid, sizeof(now->gid));
}

/*
 * /proc shows the main thread's credentials, which the kernel would compare, where it shows the pid
 * namespace of this process.
 */
static const struct own *own_read(void)
{
	static _Thread_local struct own known;
	struct own now = {.at = vb_clock_ns()};

	own_keys(&now);
	if (own_stands(&known, &now))
		return &known;
	now.ours = identity_read("/proc/self/status", &now.identity) && now.identity.pids == 1 &&
		   now.identity.pid[0] == (unsigned int)now.pid;
	now.identity.permitted |= now.permitted;
	now.yama = number_of(YAMA_PTRACE, 0);
	known = now;
	return &known;
}

/* At most 340 lines (user_namespaces(7)), of which more than a few are rare. 0: not readable, or longer. */
static size_t map_read(const char *path, char *text, size_t size)
{
	int fd = vb_sys_open(path, O_RDONLY | O_CLOEXEC);
	size_t have = 0;
	ssize_t n = 0;

	while (fd >= 0 && have < size && (n = vb_sys_read(fd, text + have, size - have)) > 0)
		have += (size_t)n;
	if (fd >= 0)
		vb_sys_close(fd);
	return n || have == size ? 0 : have;
}

/*
 * A process that is not dumpable, or not confined as this one is, cannot be looked at by its equals
 * (PTRACE_MODE_READ_FSCREDS), but all can read which users its namespace has. In a namespace below
 * this one, the same users have been given to it by a process with CAP_SETUID here.
 */
static bool same_user_namespace(pid_t pid)
{
	char path[64], own[2048], its[2048];
	struct stat ours, theirs;
	size_t n;

	snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)pid);
	if (!stat(path, &theirs))
		return !stat("/proc/self/ns/user", &ours) && ours.st_dev == theirs.st_dev &&
		       ours.st_ino == theirs.st_ino;
	if (errno != EACCES)
		return false;
	snprintf(path, sizeof(path), "/proc/%d/uid_map", (int)pid);
	n = map_read("/proc/self/uid_map", own, sizeof(own));
	return n && map_read(path, its, sizeof(its)) == n && !memcmp(own, its, n);
}

static bool may_trace(const struct identity *its)
{
	return its->effective >> CAP_SYS_PTRACE & 1;
}

static const char *yama_obstacle(const struct identity *its, uint32_t scope)
{
	if (scope >= YAMA_NOBODY || (scope == YAMA_ADMIN && !may_trace(its)))
		return "the system's administrator forbids it (Yama's ptrace_scope)";
	return NULL;
}

/* poll(2) of a pidfd: readable when the process has ended. */
static bool still_there(const struct vb_asker *who)
{
	return who->pidfd >= 0 && vb_sys_poll_one(who->pidfd, POLLIN, 0) == 0;
}

/*
 * In another user namespace the same capabilities are worth less: every process may make one, and
 * has all of them there (user_namespaces(7)). Where the kernel does not say, the answer is no.
 */
static const char *kin_obstacle(pid_t pid, const struct identity *own, const struct identity *its)
{
	if (!all_are(own->uid, getuid()) || !all_are(own->gid, getgid()))
		return "this process has the ids of more than one user or group";
	if (!all_are(its->uid, own->uid[0]) || !all_are(its->gid, own->gid[0]))
		return "it has the ids of another user or group";
	if (!same_user_namespace(pid))
		return "it is in another user namespace";
	if ((own->permitted & ~its->effective) && !may_trace(its))
		return "it lacks capabilities that this process has";
	return NULL;
}

/* One of the two cannot see the other. Everything that could be seen was as it should be. */
static const char *unseen_obstacle(const struct vb_asker *who)
{
	if (!vb_trust_says_uid() || !who->says_uid)
		return "in /proc one does not see the other (VERBATIM_TRUST: verbatim(7))";
	return who->opened.uid == getuid() && who->opened.gid == getgid()
		       ? NULL
		       : "it has the ids of another user or group";
}

/*
 * What speaks against it among what can be seen. *unseen: one of the two cannot see the other, so
 * that is not much.
 */
static const char *obstacle(const struct vb_asker *who, bool memory, bool *unseen)
{
	pid_t pid = who->opened.pid;
	const struct own *own;
	struct identity its;
	char path[64];

	*unseen = true;
	if (who->sent.uid != getuid() || who->sent.gid != getgid() || !vb_trust_same_user(getuid()))
		return "it has the ids of another user or group";
	if (who->sent.pid != pid)
		return "who speaks is not who made the connection";
	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	own = pid > 0 ? own_read() : NULL;
	if (!own || !own->ours || !identity_read(path, &its))
		return unseen_obstacle(who);
	if (!still_there(who))
		return "it has ended, or this kernel cannot tell";
	const char *why = kin_obstacle(pid, &own->identity, &its);

	if (!why && memory)
		why = yama_obstacle(&its, own->yama);
	/*
	 * A process in a pid namespace below this one is seen here and does not see this process.
	 */
	*unseen = its.pids != 1;
	if (!why && *unseen)
		why = unseen_obstacle(who);
	if (!why && !still_there(who))
		why = "it has ended meanwhile";
	return why;
}

const char *vb_trust_obstacle(const struct vb_asker *who, bool *by_uid)
{
	const char *why;

	*by_uid = false;
	if (prctl(PR_GET_DUMPABLE) != 1)
		return "this process is not dumpable";
	why = obstacle(who, true, by_uid);
	*by_uid = *by_uid && !why;
	return why;
}

bool vb_trust_is_kin(const struct vb_asker *who)
{
	bool unseen;

	return obstacle(who, false, &unseen) == NULL;
}

bool vb_trust_asks_tracee(void)
{
	return own_read()->yama == YAMA_TRACEE;
}

int vb_trust_pidfd(int sock, pid_t pid)
{
	int fd = -1;
	socklen_t length = sizeof(fd);

	if (!getsockopt(sock, SOL_SOCKET, SO_PEERPIDFD, &fd, &length))
		return fd;
	/* When the process has ended, another one may have its number by now. */
	return errno == ENOPROTOOPT && pid > 0 ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;
}

bool vb_trust_socket_names(int sock)
{
	static _Atomic int known; /* 1: yes, -1: no */
	socklen_t length = sizeof(int);
	int fd;

	if (!atomic_load(&known)) {
		if (!getsockopt(sock, SOL_SOCKET, SO_PEERPIDFD, &fd, &length)) {
			vb_sys_close(fd);
			atomic_store(&known, 1);
		} else if (errno == ENOPROTOOPT) {
			atomic_store(&known, -1);
		}
	}
	return atomic_load(&known) == 1;
}

bool vb_trust_socket_is_kin(int sock, bool caller)
{
	struct vb_asker who = {.says_uid = true};
	socklen_t length = sizeof(who.opened);

	if (getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &who.opened, &length))
		return false;
	who.sent = who.opened;
	/*
	 * A process that listens did not identify itself just now. It may have had more rights then
	 * than now; /proc tells.
	 */
	if (!caller && who.opened.pid > 0) {
		who.sent.uid = getuid();
		who.sent.gid = getgid();
	}
	who.pidfd = vb_trust_pidfd(sock, who.opened.pid);
	bool kin = vb_trust_is_kin(&who);

	if (who.pidfd >= 0)
		vb_sys_close(who.pidfd);
	return kin;
}
