/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Promise: processes of one user with equal rights share the table of an XRC domain. A process of
 * uid 0 without capabilities (a container with the host's network and the same file) does not share
 * it, also where it has all of them in a user namespace of its own, or has put them aside; nor does
 * the user that stands for everybody without a number in the victim's user namespace. Daemons that
 * have dropped their privileges since do, and find each other's seats. A process that is refused is
 * told so without delay. Another user has a domain of its own on the file, and its log names the
 * first one. The test sees that a table is shared by its inode among the mappings of a process.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "support/check.h"
#include "support/clock.h"
#include "support/endpoint.h"
#include "support/intruder.h"
#include "support/process.h"

enum { PATIENCE_S = 10 };

static int file;

static void capabilities_keep(uint32_t kept)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {{.effective = kept, .permitted = kept}, {0}};

	CHECK_ZERO(syscall(SYS_capset, &head, data));
	CHECK_ZERO(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
}

static void drop_capabilities(void)
{
	capabilities_keep(0);
}

static void effective_none(void)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2];

	CHECK_ZERO(syscall(SYS_capget, &head, data));
	data[0].effective = data[1].effective = 0;
	CHECK_ZERO(syscall(SYS_capset, &head, data));
}

/* It is uid 0 inside as well, for which it needs the one capability, and has all of them there. */
static void namespace_of_its_own(void)
{
	static const char map[] = "0 0 1\n";

	capabilities_keep(1u << CAP_SETFCAP);
	if (unshare(CLONE_NEWUSER))
		SKIP("no user namespace here: errno %d", errno);
	CHECK_ZERO(prctl(PR_SET_DUMPABLE, 1));
	int fd = open("/proc/self/uid_map", O_WRONLY | O_CLOEXEC);

	CHECK(fd >= 0 && write(fd, map, sizeof(map) - 1) == (ssize_t)sizeof(map) - 1);
	CHECK_ZERO(close(fd));
	CHECK_EQ(geteuid(), 0);
}

static void hidden_namespace(void)
{
	namespace_of_its_own();
	CHECK_ZERO(prctl(PR_SET_DUMPABLE, 0));
}

static void capable_of_little(void)
{
	drop_capabilities();
	CHECK_ZERO(prctl(PR_SET_DUMPABLE, 0));
}

static void unmapped_user(void)
{
	user_become(INTRUDER_VICTIM);
	if (unshare(CLONE_NEWUSER))
		SKIP("no user namespace for this user: errno %d", errno);
}

static void other_user(void)
{
	user_become(INTRUDER_STRANGER);
}

static void user(void)
{
	user_become(INTRUDER_VICTIM);
}

static void nothing(void)
{
}

static const struct row {
	const char *name;
	void (*owner)(void); /* before it opens the domain */
	void (*owner_later)(void);
	void (*other)(void);
	void (*other_later)(void); /* when both have it open */
	bool shared;
	bool told; /* the other: that another user has a domain of the file */
} rows[] = {
	{"root", nothing, nothing, nothing, nothing, true, false},
	{"user", user, nothing, user, nothing, true, false},
	{"capabilities", nothing, nothing, drop_capabilities, nothing, false, false},
	{"effective", nothing, nothing, effective_none, nothing, false, false},
	{"namespace", nothing, nothing, namespace_of_its_own, nothing, false, false},
	/* Neither can look at the other; the owner has no capability that the other lacks. */
	{"hidden_namespace", capable_of_little, nothing, hidden_namespace, nothing, false, false},
	{"hidden", capable_of_little, nothing, capable_of_little, nothing, true, false},
	{"unmapped", unmapped_user, nothing, other_user, nothing, false, false},
	{"others", user, nothing, other_user, nothing, false, true},
	{"daemons", nothing, user, nothing, user, true, false},
};
enum { ROWS = sizeof(rows) / sizeof(rows[0]) };

/* Of the table that is mapped here; 0: none. */
static unsigned long long table_inode(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	unsigned long long inode = 0;
	char line[512];

	CHECK(maps);
	while (!inode && fgets(line, sizeof(line), maps)) {
		if (strstr(line, "memfd:verbatim-commons"))
			CHECK_EQ(sscanf(line, "%*s %*s %*s %*s %llu", &inode), 1);
	}
	fclose(maps);
	return inode;
}

/* The library writes its log there from its first line on. */
static int log_begin(void)
{
	int fd = memfd_create("log", MFD_CLOEXEC);
	char path[32];

	CHECK(fd >= 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	setenv("VERBATIM_LOG", "debug", 1);
	setenv("VERBS_LOG_FILE", path, 1);
	return fd;
}

static bool log_has(int fd, const char *words)
{
	static char text[1 << 16];
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);

	CHECK(n >= 0);
	text[n] = '\0';
	return strstr(text, words) != NULL;
}

static struct ibv_xrcd *domain_open(struct resources *resources)
{
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = file,
		.oflags = O_CREAT,
	};
	uint64_t begun = now_ms();

	struct ibv_xrcd *domain = ibv_open_xrcd(resources->context, &attr);

	CHECK_SAY(now_ms() - begun < PATIENCE_S * 1000, "it took %llu ms",
		  (unsigned long long)(now_ms() - begun));
	return domain;
}

static int owner(int sock, void *argument)
{
	const struct row *row = argument;
	struct resources resources;
	unsigned long long inode;

	promise(row->name);
	row->owner();
	resources_open(&resources, 16, false);
	struct ibv_xrcd *domain = domain_open(&resources);

	CHECK(domain);
	inode = table_inode();
	CHECK(inode);
	message_send(sock, &inode, sizeof(inode));
	message_meet(sock); /* the other has tried */
	row->owner_later();
	message_meet(sock);
	CHECK_ZERO(ibv_close_xrcd(domain));
	domain = NULL;
	if (row->shared) /* again, now as this user: the other one still has it */
		message_meet(sock);
	resources_close(&resources);
	return 0;
}

static int other(int sock, void *argument)
{
	const struct row *row = argument;
	unsigned long long inode, mine;
	struct resources resources;
	char words[64];

	promise(row->name);
	message_receive(sock, &inode, sizeof(inode));
	row->other();
	int log = log_begin();

	resources_open(&resources, 16, false);
	struct ibv_xrcd *domain = domain_open(&resources);

	mine = table_inode();
	if (row->shared)
		CHECK_SAY(domain && mine == inode, "the domain is not shared");
	else
		CHECK_SAY(mine != inode, "the table of the domain was given");
	if (row->told)
		CHECK(domain);
	snprintf(words, sizeof(words), "user %u has a domain of this file", INTRUDER_VICTIM);
	CHECK_EQ(log_has(log, words), row->told);
	message_meet(sock);
	row->other_later();
	message_meet(sock);
	if (row->shared)
		message_meet(sock);
	if (domain)
		CHECK_ZERO(ibv_close_xrcd(domain));
	resources_close(&resources);
	return 0;
}

int main(void)
{
	char path[] = "/tmp/verbatim-xrc-XXXXXX";
	struct process a, b;

	watchdog(100);
	network_leave();
	file = mkostemp(path, O_CLOEXEC);
	CHECK(file >= 0);
	CHECK_ZERO(unlink(path));
	for (int i = 0; i < ROWS; i++) {
		process_start_pair(&a, owner, &b, other, (void *)(uintptr_t)&rows[i]);
		process_expect_success(&a, 40000);
		process_expect_success(&b, 40000);
	}
	return 0;
}
