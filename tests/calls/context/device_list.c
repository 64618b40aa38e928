/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Promise: the device list is what ibv_get_device_list(3) says. The list ends with NULL, the count
 * is optional, and a list without devices is empty. Opened devices outlive their list. Interfaces
 * come and go between two calls. A device appears at one address. Where the system gives EPERM,
 * ENOSYS or ENOMEM the call does so. The loopback device is shown where there is no other, unless
 * VERBATIM_DEVICES says otherwise.
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "support/check.h"
#include "support/network.h"

enum { LINK_TRIES = 1000 }; /* of 10 ms */

static bool add_interface(void)
{
	return ip("link add w0 type veth peer name w1 && ip link set w0 addrgenmode none && "
		  "ip addr add 198.51.100.1/24 dev w0 && ip link set w0 up && "
		  "ip link set w1 addrgenmode none && ip link set w1 up");
}

static bool remove_interface(void)
{
	return ip("link del w0");
}

/* A list whose form is right: as many as counted, each with a name, NULL at the end. */
static struct ibv_device **list_devices(int *count)
{
	struct ibv_device **list;
	int n = -1, i = 0;

	list = ibv_get_device_list(&n);
	CHECK(list);
	for (; list[i]; i++)
		EXPECT(strncmp(ibv_get_device_name(list[i]), "vb_", 3) == 0);
	EXPECT_EQ(i, n);
	*count = n;
	return list;
}

static struct ibv_device *find(struct ibv_device **list, const char *name)
{
	for (; *list; list++) {
		if (!strcmp(ibv_get_device_name(*list), name))
			return *list;
	}
	return NULL;
}

static void form(void)
{
	struct ibv_device **list, **again;
	int count;

	expect_case("NULL-terminated, counted");
	list = list_devices(&count);
	EXPECT_EQ(count, 2);
	EXPECT(find(list, "vb_v0") && find(list, "vb_lo"));
	expect_case("the count is optional");
	again = ibv_get_device_list(NULL);
	CHECK(again);
	for (int i = 0; i <= count; i++)
		EXPECT(again[i] == list[i]);
	ibv_free_device_list(again);
	ibv_free_device_list(list);
	expect_case("no list to free");
	ibv_free_device_list(NULL);
	EXPECT(true);
}

static void opened_outlive(void)
{
	struct ibv_device_attr attr;
	struct ibv_device **list, *device;
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	int count;

	expect_case("opened devices outlive the list");
	list = list_devices(&count);
	device = find(list, "vb_v0");
	ctx = ibv_open_device(device);
	CHECK(ctx);
	ibv_free_device_list(list);
	EXPECT(ctx->device == device);
	EXPECT(!strcmp(ibv_get_device_name(ctx->device), "vb_v0"));
	EXPECT(ibv_get_device_guid(ctx->device) != 0);
	EXPECT_EQ(ibv_query_device(ctx, &attr), 0);
	pd = ibv_alloc_pd(ctx);
	CHECK(pd);
	expect_case("the same pointer for the same device");
	for (int i = 0; i < 3; i++) {
		list = list_devices(&count);
		EXPECT(find(list, "vb_v0") == device);
		ibv_free_device_list(list);
	}
	struct ibv_context *second;

	list = list_devices(&count);
	second = ibv_open_device(find(list, "vb_v0"));
	CHECK(second);
	ibv_free_device_list(list);
	EXPECT(second->device == device);
	EXPECT_EQ(ibv_close_device(second), 0);
	EXPECT(!strcmp(ibv_get_device_name(device), "vb_v0"));
	EXPECT_EQ(ibv_dealloc_pd(pd), 0);
	EXPECT_EQ(ibv_close_device(ctx), 0);
}

/* Both lists held, as librdmacm does: it compares pointers to see what came and went. */
static void added_and_removed(void)
{
	struct ibv_device **before, **with, **after, **back;
	struct ibv_device *w0;
	int count;

	before = list_devices(&count);
	EXPECT_EQ(count, 2);
	expect_case("an interface was added between two calls");
	CHECK(add_interface());
	with = list_devices(&count);
	EXPECT_EQ(count, 3);
	w0 = find(with, "vb_w0");
	CHECK(w0);
	EXPECT(find(with, "vb_v0") == find(before, "vb_v0"));
	EXPECT(find(with, "vb_lo") == find(before, "vb_lo"));
	struct ibv_context *ctx = ibv_open_device(w0);

	CHECK(ctx);
	expect_case("an interface was removed between two calls");
	CHECK(remove_interface());
	after = list_devices(&count);
	EXPECT_EQ(count, 2);
	EXPECT(!find(after, "vb_w0"));
	EXPECT(find(after, "vb_v0") == find(before, "vb_v0"));
	EXPECT(!strcmp(ibv_get_device_name(w0), "vb_w0")); /* still held, still readable */
	EXPECT_EQ(ibv_get_device_index(w0), -1);
	expect_case("a context of it cannot be imported");
	EXPECT_NULL(ibv_import_device(ctx->cmd_fd), ENODEV);
	expect_case("it came back while somebody held it");
	CHECK(add_interface());
	ibv_free_device_list(with);
	back = list_devices(&count);
	EXPECT_EQ(count, 3);
	EXPECT(find(back, "vb_w0") == w0);
	ibv_free_device_list(back);
	EXPECT_EQ(ibv_close_device(ctx), 0);
	CHECK(remove_interface());
	ibv_free_device_list(after);
	ibv_free_device_list(before);
}

static void names_listed(char names[256])
{
	int count;
	struct ibv_device **list = list_devices(&count);

	names[0] = '\0';
	for (int i = 0; i < count; i++) {
		strcat(names, i ? " " : "");
		strcat(names, ibv_get_device_name(list[i]));
	}
	ibv_free_device_list(list);
}

/*
 * The kernel tells of a link that comes or goes within a second or so, later on a crowded machine.
 */
static void expect_listed(const char *patterns, const char *expected)
{
	char names[256];

	if (patterns)
		setenv("VERBATIM_DEVICES", patterns, 1);
	else
		unsetenv("VERBATIM_DEVICES");
	names_listed(names);
	for (int i = 0; i < LINK_TRIES && strcmp(names, expected); i++) {
		usleep(10000);
		names_listed(names);
	}
	EXPECT_SAY(!strcmp(names, expected), "VERBATIM_DEVICES=%s: listed '%s', not '%s'",
		   patterns ? patterns : "(unset)", names, expected);
}

/* A context of a device that no list shows: it is the same device, and can be imported. */
static void hidden_import(void)
{
	setenv("VERBATIM_DEVICES", "*", 1);
	int count;
	struct ibv_device **list = list_devices(&count);
	struct ibv_context *ctx = ibv_open_device(find(list, "vb_lo"));

	CHECK(ctx);
	ibv_free_device_list(list);
	unsetenv("VERBATIM_DEVICES");
	struct ibv_context *imported = ibv_import_device(ctx->cmd_fd);

	CHECK(imported);
	EXPECT(imported->device == ctx->device);
	EXPECT_EQ(ibv_close_device(imported), 0);
	EXPECT_EQ(ibv_close_device(ctx), 0);
}

static void which_are_shown(void)
{
	expect_case("loopback is not listed where another device has a running link");
	expect_listed(NULL, "vb_v0");
	expect_listed("", "vb_v0");
	expect_case("an import finds it nevertheless");
	hidden_import();
	expect_case("VERBATIM_DEVICES: the last pattern that matches decides");
	expect_listed("*", "vb_v0 vb_lo");
	expect_listed("vb_lo", "vb_lo");
	expect_listed(" vb_v* , vb_lo ", "vb_v0 vb_lo");
	expect_listed("vb_lo,!vb_l*", "");
	expect_listed("*,!vb_v0", "vb_lo");
	expect_listed("!vb_v0,*", "vb_v0 vb_lo");
	expect_listed("vb_w0,,!", "");
	expect_case("VERBATIM_DEVICES: what is only left out leaves the default for the rest");
	expect_listed("!vb_docker*", "vb_v0");
	expect_listed("!vb_v0", "vb_lo");
	expect_listed("!vb_lo,!vb_v0", "");
	expect_case("loopback is listed where the others have no link, or are gone");
	CHECK(ip("link set v1 down"));
	expect_listed(NULL, "vb_v0 vb_lo");
	CHECK(ip("link set v0 down"));
	expect_listed(NULL, "vb_lo");
	CHECK(ip("link set v0 up && ip link set v1 up"));
	expect_listed(NULL, "vb_v0");
	setenv("VERBATIM_DEVICES", "*", 1);
}

static void empty(void)
{
	struct ibv_device **list;
	int count = -1;

	expect_case("no device: an empty list");
	CHECK(ip("link set v0 down && ip link set lo down"));
	errno = 0;
	list = ibv_get_device_list(&count);
	CHECK(list);
	EXPECT_EQ(count, 0);
	EXPECT(!list[0]);
	ibv_free_device_list(list);
	list = ibv_get_device_list(NULL);
	CHECK(list);
	EXPECT(!list[0]);
	ibv_free_device_list(list);
	CHECK(ip("link set lo up && ip link set v0 up"));
	list = list_devices(&count);
	EXPECT_EQ(count, 2);
	ibv_free_device_list(list);
}

/* From here on the process gets no netlink socket, but this error. */
static bool refuse_netlink(int err)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_NETLINK, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (uint32_t)err),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof(code) / sizeof(code[0]), code};

	return !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
	       !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

enum { NO_FILTER = 255, GAVE_A_LIST = 254, COUNT_NOT_ZERO = 253 };

/* The errno of the call in a process of its own. */
static int listing_where(int err)
{
	int status = 0;
	pid_t child = fork();

	if (child == 0) {
		int count = 7;

		if (!refuse_netlink(err))
			_exit(NO_FILTER);
		errno = 0;
		if (ibv_get_device_list(&count))
			_exit(GAVE_A_LIST);
		_exit(count ? COUNT_NOT_ZERO : errno);
	}
	CHECK(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void errors(void)
{
	static const struct {
		int system, answer;
	} row[] = {
		{EPERM, EPERM},
		{EACCES, EPERM},
		{ENOSYS, ENOSYS},
		{EAFNOSUPPORT, ENOSYS},
		{EPROTONOSUPPORT, ENOSYS},
		{ENOMEM, ENOMEM},
		/* No errno of the page says it; it says itself. */
		{ENOBUFS, ENOMEM},
		{EMFILE, EMFILE},
	};

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		expect_case("the system answers %s", strerror(row[i].system));
		int got = listing_where(row[i].system);

		if (got == NO_FILTER)
			return; /* seccomp(2) is not to be had: nothing can be refused here */
		EXPECT_EQ(got, row[i].answer);
	}
}

int main(void)
{
	network_with_pair();
	errors(); /* before this process has devices */
	form();
	opened_outlive();
	added_and_removed();
	which_are_shown();
	empty();
	return expect_done();
}
