/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Starting, stopping, reaping children, and the messages between a test's processes. */
#include "support/process.h"

#include "support/check.h"
#include "support/clock.h"

#include <dirent.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SETTLES_MS = 20 };

/* The children of the process `owner`. A forked child inherits the table but owns none of them. */
static struct {
	pid_t owner;
	int count;
	pid_t pid[PROCESS_MAX];
} children;

static void kill_leftovers(void)
{
	int i;

	if (children.owner != getpid())
		return;
	for (i = 0; i < children.count; i++)
		if (children.pid[i]) {
			kill(children.pid[i], SIGKILL);
			waitpid(children.pid[i], NULL, 0);
		}
	children.count = 0;
}

static void forget(pid_t pid)
{
	int i;

	for (i = 0; i < children.count; i++)
		if (children.pid[i] == pid)
			children.pid[i] = 0;
}

void process_adopt(pid_t pid)
{
	int i;

	if (children.owner != getpid()) {
		/* The handler is inherited by fork: exit() runs it once in each process. */
		if (!children.owner)
			atexit(kill_leftovers);
		children.owner = getpid();
		children.count = 0;
	}
	for (i = 0; i < children.count; i++)
		if (!children.pid[i])
			break;
	CHECK(i < PROCESS_MAX);
	children.pid[i] = pid;
	if (i == children.count)
		children.count++;
}

void process_reap(pid_t pid)
{
	kill(pid, SIGKILL);
	CHECK_EQ(waitpid(pid, NULL, 0), pid);
	forget(pid);
}

/* In the child: runs `run` and exits. The descriptor `foreign` belongs to the other side. */
_Noreturn static void child_run(pid_t parent, int foreign, int sock, process_main run,
				void *argument)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(CHECK_EXIT_FAIL);
	close(foreign);
	watchdog(watchdog_seconds());
	exit(run(sock, argument));
}

/* Forks a child on pair[mine]; the caller keeps both descriptors. */
static pid_t start_on(const int *pair, int mine, process_main run, void *argument)
{
	/*
	 * In a new pid namespace the child sees its parent as pid 0: compare with what the child
	 * will see.
	 */
	pid_t parent = getpid();
	pid_t pid;

	fflush(NULL);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0)
		child_run(getppid() == 0 ? 0 : parent, pair[!mine], pair[mine], run, argument);
	process_adopt(pid);
	return pid;
}

void process_start(struct process *process, process_main run, void *argument)
{
	int pair[2];

	CHECK_ZERO(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair));
	process->pid = start_on(pair, 1, run, argument);
	process->sock = pair[0];
	close(pair[1]);
}

void process_start_pair(struct process *a, process_main run_a, struct process *b,
			process_main run_b, void *argument)
{
	int pair[2];

	CHECK_ZERO(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair));
	a->pid = start_on(pair, 0, run_a, argument);
	b->pid = start_on(pair, 1, run_b, argument);
	a->sock = -1;
	b->sock = -1;
	close(pair[0]);
	close(pair[1]);
}

void process_drop_root(void)
{
	if (geteuid() != 0)
		return;
	CHECK_ZERO(setgroups(0, NULL));
	CHECK_ZERO(setresgid(PROCESS_USER, PROCESS_USER, PROCESS_USER));
	CHECK_ZERO(setresuid(PROCESS_USER, PROCESS_USER, PROCESS_USER));
	/*
	 * Changing the user makes the process not dumpable, which forbids access to its memory
	 * (prctl(2)).
	 */
	CHECK_ZERO(prctl(PR_SET_DUMPABLE, 1));
	/* The change also cleared the signal for the parent's death. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
}

static void check_others(pid_t wanted)
{
	int i;

	if (children.owner != getpid())
		return;
	for (i = 0; i < children.count; i++) {
		siginfo_t info = {.si_pid = 0};
		pid_t pid = children.pid[i];

		/* Looks without reaping: the process that waits for it still gets its status. */
		if (!pid || pid == wanted ||
		    waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) || !info.si_pid)
			continue;
		if (info.si_code == CLD_EXITED && info.si_status == CHECK_EXIT_SKIP)
			exit(CHECK_EXIT_SKIP);
		CHECK_SAY(info.si_code == CLD_EXITED && info.si_status == 0,
			  "process %d ended with %s %d", (int)pid,
			  info.si_code == CLD_EXITED ? "exit" : "signal", info.si_status);
	}
}

void processes_check(void)
{
	check_others(0);
}

int process_wait(struct process *process, int timeout_ms)
{
	uint64_t until = now_ms() + (uint64_t)timeout_ms;
	int status = 0;
	pid_t got;

	CHECK(process->pid > 0);
	while ((got = waitpid(process->pid, &status, WNOHANG)) == 0) {
		CHECK_SAY(now_ms() < until, "process %d did not end within %d ms",
			  (int)process->pid, timeout_ms);
		check_others(process->pid);
		sleep_ms(1);
	}
	CHECK_EQ(got, process->pid);
	forget(process->pid);
	if (process->sock >= 0)
		close(process->sock);
	process->pid = 0;
	process->sock = -1;
	return status;
}

void process_expect_success(struct process *process, int timeout_ms)
{
	pid_t pid = process->pid;
	int status = process_wait(process, timeout_ms);

	if (WIFEXITED(status) && WEXITSTATUS(status) == CHECK_EXIT_SKIP)
		exit(CHECK_EXIT_SKIP);
	CHECK_SAY(WIFEXITED(status) && WEXITSTATUS(status) == 0,
		  "process %d ended with %s %d, expected exit 0", (int)pid,
		  WIFSIGNALED(status) ? "signal" : "exit",
		  WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
}

void *memory_shared(size_t size)
{
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	CHECK(memory != MAP_FAILED);
	return memory;
}

void process_stop(struct process *process)
{
	int status = 0;

	CHECK_ZERO(kill(process->pid, SIGSTOP));
	CHECK_EQ(waitpid(process->pid, &status, WUNTRACED), process->pid);
	CHECK_SAY(WIFSTOPPED(status), "process %d ended (status 0x%x) instead of stopping",
		  (int)process->pid, (unsigned int)status);
}

void process_continue(struct process *process)
{
	CHECK_ZERO(kill(process->pid, SIGCONT));
}

void process_kill(struct process *process)
{
	if (process->pid <= 0)
		return;
	kill(process->pid, SIGKILL);
	process_wait(process, PROCESS_PATIENCE_MS);
}

static bool has_memory_of(pid_t pid)
{
	char wanted[64], path[300], link[64];
	DIR *dir = opendir("/proc/self/fd");
	bool found = false;

	CHECK(dir);
	snprintf(wanted, sizeof(wanted), "/proc/%d/mem", (int)pid);
	for (struct dirent *e = readdir(dir); e && !found; e = readdir(dir)) {
		snprintf(path, sizeof(path), "/proc/self/fd/%s", e->d_name);
		ssize_t n = readlink(path, link, sizeof(link) - 1);

		link[n > 0 ? n : 0] = '\0';
		found = !strcmp(link, wanted);
	}
	closedir(dir);
	return found;
}

void process_await_memory(const struct process *process)
{
	const uint64_t until = now_ms() + PROCESS_PATIENCE_MS;

	while (!has_memory_of(process->pid)) {
		CHECK_SAY(now_ms() < until, "process %d has not given its memory",
			  (int)process->pid);
		sleep_ms(2);
	}
	sleep_ms(SETTLES_MS); /* what came in the same message is taken up */
}

void message_send(int sock, const void *data, size_t length)
{
	const char *from = data;

	while (length) {
		ssize_t sent = send(sock, from, length, MSG_NOSIGNAL);

		if (sent < 0 && errno == EINTR)
			continue;
		CHECK_SAY(sent > 0, "the other process is gone (send: errno %d)", errno);
		from += sent;
		length -= (size_t)sent;
	}
}

bool message_try_receive(int sock, void *data, size_t length, int timeout_ms)
{
	uint64_t until = now_ms() + (uint64_t)timeout_ms;
	char *to = data;

	while (length) {
		struct pollfd readable = {.fd = sock, .events = POLLIN};
		uint64_t now = now_ms();
		ssize_t got;

		if (poll(&readable, 1, now < until ? (int)(until - now) : 0) == 0)
			return false;
		got = recv(sock, to, length, MSG_DONTWAIT);
		if (got < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (got <= 0)
			return false;
		to += got;
		length -= (size_t)got;
	}
	return true;
}

void message_receive(int sock, void *data, size_t length)
{
	CHECK_SAY(message_try_receive(sock, data, length, PROCESS_PATIENCE_MS),
		  "the other process is gone or silent");
}

void message_swap(int sock, const void *mine, void *theirs, size_t length)
{
	message_send(sock, mine, length);
	message_receive(sock, theirs, length);
}

void message_relay(int a, int b, size_t length)
{
	unsigned char from_a[512], from_b[512];

	CHECK(length <= sizeof(from_a));
	message_receive(a, from_a, length);
	message_receive(b, from_b, length);
	message_send(a, from_b, length);
	message_send(b, from_a, length);
}

void message_say(int sock)
{
	message_send(sock, "x", 1);
}

void message_hear(int sock)
{
	char word;

	message_receive(sock, &word, 1);
}

void message_meet(int sock)
{
	char mine = 'm', theirs = 0;

	message_swap(sock, &mine, &theirs, 1);
	CHECK_EQ(theirs, 'm');
}

void descriptor_send(int sock, int fd)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} rights = {.head = {.cmsg_len = CMSG_LEN(sizeof(int)),
			     .cmsg_level = SOL_SOCKET,
			     .cmsg_type = SCM_RIGHTS}};
	char byte = 1;
	struct iovec iov = {&byte, 1};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = &rights,
			     .msg_controllen = sizeof(rights.room)};

	memcpy(CMSG_DATA(&rights.head), &fd, sizeof(fd));
	CHECK_EQ(sendmsg(sock, &msg, 0), 1);
}

int descriptor_receive(int sock)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} rights;
	char byte = 0;
	struct iovec iov = {&byte, 1};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = &rights,
			     .msg_controllen = sizeof(rights.room)};
	int fd;

	CHECK_EQ(recvmsg(sock, &msg, MSG_CMSG_CLOEXEC), 1);
	CHECK(CMSG_FIRSTHDR(&msg));
	memcpy(&fd, CMSG_DATA(&rights.head), sizeof(fd));
	return fd;
}
