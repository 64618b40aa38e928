/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Promise: a process gets another's memory, arena, keys, and the lock of its ATOMICs if the kernel lets
 * it open the other's /proc/PID/mem, and only then. A process that is refused works through rings, with
 * the same results, in both directions. It is given them later, once the kernel's answer has changed.
 * The test asks the kernel by opening that file, and sees what a process was given among that
 * process's own descriptors and mappings. Each row of the table has two processes, and the library
 * asks both for everything that the protocol has.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <dirent.h>
#include <unistd.h>

#include "procs/exercise.h"
#include "support/check.h"
#include "support/clock.h"
#include "support/intruder.h"
#include "support/process.h"

enum {
	USER = INTRUDER_VICTIM,
	OTHER_USER = INTRUDER_STRANGER,
	LATE_MS = 40000,
	QUIET_MS = 300,
	GROWN = 70 << 20
};
enum { MEMORY, ARENA, KEYS, LOCK, GIFTS };

static const char *const gift_names[GIFTS] = {"memory", "arena", "keys", "lock"};

struct census {
	int count[GIFTS];
	int arena_files; /* given to be mapped, and closed then */
};

static void user(void)
{
	user_become(USER);
}

static void other_user(void)
{
	user_become(OTHER_USER);
}

static void dumpable(void)
{
	CHECK_ZERO(prctl(PR_SET_DUMPABLE, 1));
}

static void not_dumpable(void)
{
	CHECK_ZERO(prctl(PR_SET_DUMPABLE, 0));
}

static void dumpable_user(void)
{
	user();
	dumpable();
}

/* Which any user may be, where some have no number. The kernel knows which. */
static void nobody(void)
{
	user_become(65534);
	dumpable();
}

static void dumpable_other_user(void)
{
	other_user();
	dumpable();
}

static void drop_capabilities(void)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct none[2] = {{0}, {0}};

	for (unsigned long cap = 0; prctl(PR_CAPBSET_READ, cap) >= 0; cap++)
		CHECK_ZERO(prctl(PR_CAPBSET_DROP, cap));
	CHECK_ZERO(syscall(SYS_capset, &head, none));
	CHECK_ZERO(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	CHECK_EQ(prctl(PR_GET_DUMPABLE), 1);
}

/* The rest of this process goes on in a new pid namespace, with a /proc of its own. */
static void leave_pids(void)
{
	int status;

	if (unshare(CLONE_NEWPID | CLONE_NEWNS))
		SKIP("no pid namespace here: errno %d", errno);
	CHECK_ZERO(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL));
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (mount("proc", "/proc", "proc", 0, NULL))
			SKIP("no /proc can be mounted here: errno %d", errno);
		return;
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	_exit(WIFEXITED(status) ? WEXITSTATUS(status) : CHECK_EXIT_FAIL);
}

static void container(void)
{
	leave_pids();
	drop_capabilities();
}

/* Where /proc shows an ordinary user its own processes only. */
static void hidepid_user(void)
{
	if (unshare(CLONE_NEWNS))
		SKIP("no mount namespace here: errno %d", errno);
	CHECK_ZERO(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL));
	if (mount("proc", "/proc", "proc", 0, "hidepid=2"))
		SKIP("no /proc with hidepid can be mounted here: errno %d", errno);
	user_become(USER);
	CHECK(access("/proc/1/status", R_OK) != 0);
	dumpable();
}

/* In it this user, like all others, is the overflow user. */
static void unmapped_user(void)
{
	user();
	if (unshare(CLONE_NEWUSER))
		SKIP("no user namespace for this user: errno %d", errno);
	dumpable();
	CHECK_EQ(geteuid(), 65534);
}

static void one_capability_less(void)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2];

	CHECK_ZERO(syscall(SYS_capget, &head, data));
	data[0].permitted &= ~(1u << CAP_NET_RAW | 1u << CAP_SYS_PTRACE);
	data[0].effective = data[0].permitted;
	data[0].inheritable = data[1].inheritable = 0;
	CHECK_ZERO(syscall(SYS_capset, &head, data));
}

static void other_group(void)
{
	CHECK_ZERO(setgroups(0, NULL));
	CHECK_ZERO(setresgid(USER + 1, USER + 1, USER + 1));
	CHECK_ZERO(setresuid(USER, USER, USER));
	dumpable();
}

static void saved_root(void)
{
	CHECK_ZERO(setgroups(0, NULL));
	CHECK_ZERO(setresgid(USER, USER, USER));
	CHECK_ZERO(setresuid(USER, USER, 0));
	dumpable();
}

/* It could have them again, and has them not now. */
static void no_effective_capability(void)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2];

	CHECK_ZERO(syscall(SYS_capget, &head, data));
	data[0].effective = data[1].effective = 0;
	CHECK_ZERO(syscall(SYS_capset, &head, data));
	CHECK_EQ(prctl(PR_GET_DUMPABLE), 1);
}

/* All capabilities, but in a namespace of its own, where they are worth nothing outside. */
static void namespace_of_its_own(void)
{
	drop_capabilities();
	if (unshare(CLONE_NEWUSER))
		SKIP("no user namespace here: errno %d", errno);
	dumpable();
}

/* Landlock, with a rule that forbids nothing that is done here: it must not trace others all the same. */
static void landlocked_user(void)
{
	struct landlock_ruleset_attr attr = {.handled_access_fs = LANDLOCK_ACCESS_FS_MAKE_BLOCK};

	dumpable_user();
	CHECK_ZERO(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	int rules = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr), 0);

	if (rules < 0)
		SKIP("no Landlock here: errno %d", errno);
	CHECK_ZERO(syscall(SYS_landlock_restrict_self, rules, 0));
	CHECK_ZERO(close(rules));
}

/* What becomes of the victim's arena at last, and of the attacker's mapping of it. */
enum growth { STAYS, GROWS, GROWS_HIDDEN };

struct half {
	void (*before)(void); /* anything was opened */
	void (*after)(void);  /* its queue pair was made */
	void (*late)(void);   /* all was tried */
	enum growth growth;   /* said of the attacker */
	bool is_given;
	bool is_given_late;
	bool blind; /* it cannot see its own descriptors */
	/* decides about what it is given: the other cannot tell that it should agree */
	bool kernel_alone;
};

struct row {
	const char *name;
	struct half victim, attacker;
};

static const struct row rows[] = {
	/* The controls: what is looked for below is there. */
	{"user",
	 {.before = dumpable_user, .is_given = true},
	 {.before = dumpable_user, .is_given = true}},
	{"grown",
	 {.before = dumpable_user, .is_given = true},
	 {.before = dumpable_user, .is_given = true, .growth = GROWS}},
	/* Not dumpable any more: what was given stays, and no more of it is shown. */
	{"grown_hidden",
	 {.before = dumpable_user, .is_given = true},
	 {.before = dumpable_user, .is_given = true, .growth = GROWS_HIDDEN}},
	{"hidepid",
	 {.before = hidepid_user, .is_given = true},
	 {.before = hidepid_user, .is_given = true}},
	{"root", {.is_given = true}, {.is_given = true}},
	{"nobody", {.before = nobody, .is_given = true}, {.before = nobody, .is_given = true}},
	/* uid 0 in a container that shares nothing but the network and the user namespace */
	{"container", {.is_given = true}, {.before = container}},
	{"capabilities", {.is_given = true}, {.before = drop_capabilities}},
	{"less", {.is_given = true}, {.before = one_capability_less}},
	{"effective", {.is_given = true}, {.before = no_effective_capability}},
	{"namespace", {.is_given = true}, {.before = namespace_of_its_own}},
	/* confined, among equals */
	{"landlock", {.before = dumpable_user, .is_given = true}, {.before = landlocked_user}},
	/* a user for whom the victim's user namespace has no number, as it has none for its own */
	{"unmapped", {.before = unmapped_user}, {.before = dumpable_other_user}},
	/* the user who made the namespace may do all in it */
	{"unmapped_same",
	 {.before = unmapped_user},
	 {.before = dumpable_user, .is_given = true, .kernel_alone = true}},
	{"others", {.before = dumpable_user}, {.before = dumpable_other_user}},
	{"group", {.before = dumpable_user}, {.before = other_group}},
	{"saved",
	 {.before = saved_root, .is_given = true, .kernel_alone = true},
	 {.before = dumpable_user}},
	/*
	 * it drops its privileges after its queue pair was made: not dumpable, until it says that
	 * it is
	 */
	{"dropped",
	 {.after = user, .late = dumpable, .is_given = true, .is_given_late = true, .blind = true},
	 {.before = dumpable_user, .is_given_late = true}},
	{"hidden",
	 {.before = dumpable_user, .after = not_dumpable, .is_given = true, .blind = true},
	 {.before = dumpable_user}},
	/* who is called has dropped its privileges after listen(2) */
	{"listener", {.is_given = true}, {.after = dumpable_user}},
	/* both do, and find each other */
	{"daemons",
	 {.after = user, .late = dumpable, .is_given_late = true, .blind = true},
	 {.after = user, .late = dumpable, .is_given_late = true, .blind = true}},
};
enum { ROWS = sizeof(rows) / sizeof(rows[0]) };

static void count_descriptors(struct census *c)
{
	char path[300], target[300];
	DIR *dir = opendir("/proc/self/fd");

	CHECK(dir);
	for (struct dirent *e; (e = readdir(dir));) {
		snprintf(path, sizeof(path), "/proc/self/fd/%s", e->d_name);
		ssize_t n = readlink(path, target, sizeof(target) - 1);

		if (n < 0)
			continue;
		target[n] = '\0';
		c->count[MEMORY] += n > 4 && !strcmp(target + n - 4, "/mem");
		c->arena_files += strstr(target, "memfd:verbatim-memory") != NULL;
	}
	closedir(dir);
}

static struct census census_take(void)
{
	struct census c = {.arena_files = 0};
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[512];

	CHECK(maps);
	while (fgets(line, sizeof(line), maps)) {
		c.count[KEYS] += strstr(line, "memfd:verbatim-keys") != NULL;
		c.count[LOCK] += strstr(line, "memfd:verbatim-turn") != NULL;
		c.count[ARENA] += strstr(line, "memfd:verbatim-memory") != NULL;
	}
	fclose(maps);
	count_descriptors(&c);
	return c;
}

static bool all_given(const struct census *before)
{
	struct census now = census_take();

	for (int i = 0; i < GIFTS; i++) {
		if (now.count[i] == before->count[i])
			return false;
	}
	return true;
}

static void expect_nothing(const struct census *before)
{
	struct census now = census_take();

	for (int i = 0; i < GIFTS; i++)
		CHECK_SAY(now.count[i] == before->count[i], "it was given the other's %s",
			  gift_names[i]);
	CHECK_EQ(now.arena_files, before->arena_files);
}

static void expect_all(const struct census *before)
{
	uint64_t until = now_ms() + LATE_MS;

	while (!all_given(before)) {
		CHECK_SAY(now_ms() < until, "it was not given the other's memory");
		sleep_ms(5);
	}
}

/* The other process's number here, 0: it has none. The kernel tells of the sender of a byte. */
static pid_t number_of_other(int sock)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(struct ucred))];
	} control = {.room = {0}};
	struct ucred cred = {.pid = 0};
	char byte = 'n';
	struct iovec iov = {&byte, 1};
	struct msghdr m = {.msg_iov = &iov,
			   .msg_iovlen = 1,
			   .msg_control = &control,
			   .msg_controllen = sizeof(control)};
	int on = 1;

	CHECK_ZERO(setsockopt(sock, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)));
	message_meet(sock);
	CHECK_EQ(send(sock, &byte, 1, 0), 1);
	CHECK_EQ(recvmsg(sock, &m, 0), 1);
	CHECK(CMSG_FIRSTHDR(&m) && CMSG_FIRSTHDR(&m)->cmsg_type == SCM_CREDENTIALS);
	memcpy(&cred, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof(cred));
	on = 0;
	CHECK_ZERO(setsockopt(sock, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)));
	message_meet(sock);
	return cred.pid;
}

/* The rule itself. */
static bool kernel_allows(pid_t pid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/mem", (int)pid);
	int fd = pid > 0 ? open(path, O_RDWR | O_CLOEXEC) : -1;

	if (fd >= 0)
		CHECK_ZERO(close(fd));
	return fd >= 0;
}

static int yama_scope(void)
{
	FILE *f = fopen("/proc/sys/kernel/yama/ptrace_scope", "re");
	int scope = 0;

	if (f) {
		CHECK_EQ(fscanf(f, "%d", &scope), 1);
		fclose(f);
	}
	return scope;
}

/*
 * The system lets a process be opened only if that process agrees. It agrees for the moment in which the
 * library gives memory, so the kernel's answer says less.
 */
static bool target_decides(void)
{
	return yama_scope() == 1;
}

static void ask_kernel(pid_t other, bool given, bool after)
{
	if (!target_decides())
		CHECK_SAY(kernel_allows(other) == given, "the row is not what the kernel says");
	else if (after && geteuid())
		CHECK_SAY(!kernel_allows(other), "it can be opened still");
}

static void judge(const struct census *before, bool given, bool sees)
{
	if (!sees)
		return;
	if (given)
		expect_all(before);
	else
		expect_nothing(before);
}

static uint64_t arena_bytes(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	unsigned long long from, to;
	uint64_t bytes = 0;
	char line[512];

	CHECK(maps);
	while (fgets(line, sizeof(line), maps)) {
		if (strstr(line, "memfd:verbatim-memory") &&
		    sscanf(line, "%llx-%llx", &from, &to) == 2)
			bytes += to - from;
	}
	fclose(maps);
	return bytes;
}

static void expect_growth(uint64_t bytes, enum growth growth)
{
	uint64_t until = now_ms() + (growth == GROWS ? LATE_MS : QUIET_MS);

	while (arena_bytes() == bytes && now_ms() < until)
		sleep_ms(5);
	CHECK_SAY((arena_bytes() != bytes) == (growth == GROWS), "it was %s more of the arena",
		  growth == GROWS ? "not shown" : "shown");
}

/* The victim takes more memory that peers map than what they have mapped so far. */
static void grow(struct resources *resources, int sock, enum growth growth, bool attacks)
{
	uint64_t bytes = arena_bytes();
	struct ibv_buf *buf = NULL;

	message_meet(sock);
	if (!attacks && growth == GROWS_HIDDEN)
		not_dumpable();
	if (!attacks)
		CHECK(ibv_alloc_buf(resources->pd, GROWN, &buf));
	message_meet(sock);
	if (attacks)
		expect_growth(bytes, growth);
	message_meet(sock);
	if (buf)
		ibv_free_buf(buf);
}

static void play(struct endpoint *ep, int sock, bool first)
{
	if (first)
		exercise_initiate(ep, sock, 1);
	else
		exercise_serve(ep, sock, 1);
	if (first)
		exercise_serve(ep, sock, 1);
	else
		exercise_initiate(ep, sock, 1);
	message_meet(sock);
}

static int run(int sock, const struct row *row, bool attacks)
{
	const struct half *half = attacks ? &row->attacker : &row->victim;
	struct ibv_alloc_dm_attr dm_attr = {.length = 4096};
	struct resources resources;
	struct census before;
	struct ibv_dm *dm;
	struct endpoint ep;

	promise(row->name);
	if (half->before)
		half->before();
	resources_open(&resources, 256, false);
	ep_open_on(&ep, &resources, NULL, NULL, EXERCISE_SIZE);
	/* Memory that is not in use is not mapped by any process. */
	dm = ibv_alloc_dm(resources.context, &dm_attr);
	CHECK(dm);
	before = census_take();
	if (half->after)
		half->after();
	pid_t other = number_of_other(sock);

	ask_kernel(other, half->is_given, false);
	ep_exchange(&ep, sock);
	play(&ep, sock, attacks);
	judge(&before, half->is_given, !half->blind);
	message_meet(sock);
	if (half->late)
		half->late();
	message_meet(sock);
	ask_kernel(other, half->is_given || half->is_given_late, false);
	judge(&before, half->is_given || half->is_given_late, !half->blind || half->late);
	message_meet(sock);
	ask_kernel(other, half->is_given || half->is_given_late, true);
	message_meet(sock);
	if (row->attacker.growth)
		grow(&resources, sock, row->attacker.growth, attacks);
	play(&ep, sock, attacks);
	CHECK_ZERO(ibv_free_dm(dm));
	ep_close(&ep);
	resources_close(&resources);
	return 0;
}

static int victim(int sock, void *row)
{
	return run(sock, row, false);
}

static int attacker(int sock, void *row)
{
	return run(sock, row, true);
}

int main(int argc, char **argv)
{
	struct process a, b;
	bool found = false;

	watchdog(150);
	network_leave();
	if (yama_scope() > 1)
		SKIP("Yama's ptrace_scope %d refuses all", yama_scope());
	for (int i = 0; i < ROWS; i++) {
		if (argc > 1 && strcmp(argv[1], rows[i].name))
			continue;
		found = true;
		if (target_decides() &&
		    (rows[i].victim.kernel_alone || rows[i].attacker.kernel_alone))
			SKIP("with Yama's ptrace_scope 1 no process agrees here");
		process_start_pair(&a, attacker, &b, victim, (void *)(uintptr_t)&rows[i]);
		process_expect_success(&a, 120000);
		process_expect_success(&b, PROCESS_PATIENCE_MS);
	}
	CHECK_SAY(found, "no row %s", argv[1]);
	return 0;
}
