/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Devices of real interfaces, in a network namespace of the test's own: the list of devices, and
 * the events of contexts when addresses come and go and the link goes down. Where no such namespace
 * may be made the test is skipped.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <libmnl/libmnl.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include <infiniband/verbs.h>

#define WAIT_MS  5000
#define LOOPBACK 1 /* the index of lo in a new namespace */

/* Sends a request and returns the kernel's answer. */
static int ask(struct nlmsghdr *msg)
{
	struct mnl_socket *sock = mnl_socket_open2(NETLINK_ROUTE, SOCK_CLOEXEC);
	char buf[8192];
	ssize_t n;
	int err = 0;

	assert_non_null(sock);
	msg->nlmsg_flags |= NLM_F_REQUEST | NLM_F_ACK;
	assert_int_equal(mnl_socket_bind(sock, 0, MNL_SOCKET_AUTOPID), 0);
	assert_true(mnl_socket_sendto(sock, msg, msg->nlmsg_len) > 0);
	n = mnl_socket_recvfrom(sock, buf, sizeof(buf));
	if (n < 0 || mnl_cb_run(buf, (size_t)n, 0, 0, NULL, NULL) < 0)
		err = -errno;
	mnl_socket_close(sock);
	return err;
}

static void set_up_link(int index, bool up)
{
	char buf[256] = {0};
	struct nlmsghdr *msg = mnl_nlmsg_put_header(buf);
	struct ifinfomsg *info;

	msg->nlmsg_type = RTM_NEWLINK;
	info = mnl_nlmsg_put_extra_header(msg, sizeof(*info));
	info->ifi_index = index;
	info->ifi_change = IFF_UP;
	info->ifi_flags = up ? IFF_UP : 0;
	assert_int_equal(ask(msg), 0);
}

static void set_up(bool up)
{
	set_up_link(LOOPBACK, up);
}

static int make_link(const char *name, const char *kind)
{
	char buf[512] = {0};
	struct nlmsghdr *msg = mnl_nlmsg_put_header(buf);
	struct nlattr *nest;

	msg->nlmsg_type = RTM_NEWLINK;
	msg->nlmsg_flags = NLM_F_CREATE | NLM_F_EXCL;
	mnl_nlmsg_put_extra_header(msg, sizeof(struct ifinfomsg));
	mnl_attr_put_strz(msg, IFLA_IFNAME, name);
	nest = mnl_attr_nest_start(msg, IFLA_LINKINFO);
	mnl_attr_put_strz(msg, IFLA_INFO_KIND, kind);
	mnl_attr_nest_end(msg, nest);
	return ask(msg);
}

/* An interface without hardware, of a kind that has a carrier and that the kernel knows. */
static int make_dummy(const char *name)
{
	return make_link(name, "dummy") ? make_link(name, "ifb") : 0;
}

static void remove_link(int index)
{
	char buf[256] = {0};
	struct nlmsghdr *msg = mnl_nlmsg_put_header(buf);
	struct ifinfomsg *info;

	msg->nlmsg_type = RTM_DELLINK;
	info = mnl_nlmsg_put_extra_header(msg, sizeof(*info));
	info->ifi_index = index;
	assert_int_equal(ask(msg), 0);
}

static void change_address_of(int index, uint16_t type, const char *text)
{
	char buf[256] = {0};
	struct nlmsghdr *msg = mnl_nlmsg_put_header(buf);
	struct ifaddrmsg *info;
	uint32_t addr;

	assert_int_equal(inet_pton(AF_INET, text, &addr), 1);
	msg->nlmsg_type = type;
	msg->nlmsg_flags = type == RTM_NEWADDR ? NLM_F_CREATE | NLM_F_EXCL : 0;
	info = mnl_nlmsg_put_extra_header(msg, sizeof(*info));
	info->ifa_family = AF_INET;
	info->ifa_prefixlen = 32;
	info->ifa_index = (unsigned int)index;
	mnl_attr_put_u32(msg, IFA_LOCAL, addr);
	mnl_attr_put_u32(msg, IFA_ADDRESS, addr);
	assert_int_equal(ask(msg), 0);
}

static void change_address(uint16_t type, const char *text)
{
	change_address_of(LOOPBACK, type, text);
}

static struct ibv_context *open_lo(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx;

	assert_non_null(list);
	assert_non_null(list[0]);
	assert_null(list[1]);
	assert_string_equal(ibv_get_device_name(list[0]), "vb_lo");
	assert_int_equal(ibv_get_device_index(list[0]), -1);
	ctx = ibv_open_device(list[0]);
	assert_non_null(ctx);
	ibv_free_device_list(list);
	return ctx;
}

static int count_gids(struct ibv_context *ctx)
{
	struct ibv_gid_entry entry[64];

	return (int)ibv_query_gid_table(ctx, entry, 64, 0);
}

/* The index of the IPv4 address in the port's table, or -1. */
static int index_of(struct ibv_context *ctx, const char *text)
{
	for (int i = 0; i < 64; i++) {
		uint8_t want[16] = {[10] = 0xff, [11] = 0xff};
		union ibv_gid gid;

		inet_pton(AF_INET, text, want + 12);
		assert_int_equal(ibv_query_gid(ctx, 1, i, &gid), 0);
		if (!memcmp(gid.raw, want, sizeof(want)))
			return i;
	}
	return -1;
}

static void expect_event(struct ibv_context *ctx, enum ibv_event_type type)
{
	struct pollfd p = {.fd = ctx->async_fd, .events = POLLIN};
	struct ibv_async_event event;

	assert_int_equal(poll(&p, 1, WAIT_MS), 1);
	assert_int_equal(ibv_get_async_event(ctx, &event), 0);
	assert_int_equal(event.event_type, type);
	assert_int_equal(event.element.port_num, 1);
	ibv_ack_async_event(&event);
}

static void expect_silence(struct ibv_context *ctx)
{
	struct pollfd p = {.fd = ctx->async_fd, .events = POLLIN};

	assert_int_equal(poll(&p, 1, 50), 0);
}

static void let_snapshots_age(void)
{
	usleep(20000);
}

/* Runs first: without anything that monitors, a query notices and raises. */
static void noticed_by_queries(void **state)
{
	struct ibv_context *ctx = open_lo();

	(void)state;
	assert_int_equal(index_of(ctx, "127.0.0.1"), 0);
	expect_silence(ctx);
	change_address(RTM_NEWADDR, "10.99.0.1");
	let_snapshots_age();
	assert_true(index_of(ctx, "10.99.0.1") > 0);
	expect_event(ctx, IBV_EVENT_GID_CHANGE);
	change_address(RTM_DELADDR, "10.99.0.1");
	let_snapshots_age();
	assert_int_equal(index_of(ctx, "10.99.0.1"), -1);
	expect_event(ctx, IBV_EVENT_GID_CHANGE);
	expect_silence(ctx);
	assert_int_equal(ibv_close_device(ctx), 0);
}

/* After the first look for events, changes come by themselves, to every context of the device. */
static void told_without_asking(void **state)
{
	struct ibv_context *ctx = open_lo(), *other = open_lo();
	struct ibv_async_event event;
	int gids = count_gids(ctx);

	(void)state;
	assert_true(ctx->device == other->device);
	fcntl(ctx->async_fd, F_SETFL, fcntl(ctx->async_fd, F_GETFL) | O_NONBLOCK);
	assert_int_equal(ibv_get_async_event(ctx, &event), -1);
	assert_int_equal(errno, EAGAIN);
	change_address(RTM_NEWADDR, "10.99.0.2");
	expect_event(ctx, IBV_EVENT_GID_CHANGE);
	expect_event(other, IBV_EVENT_GID_CHANGE);
	assert_int_equal(count_gids(ctx), gids + 1);
	change_address(RTM_NEWADDR, "10.99.0.3");
	expect_event(ctx, IBV_EVENT_GID_CHANGE);
	change_address(RTM_DELADDR, "10.99.0.2");
	expect_event(ctx, IBV_EVENT_GID_CHANGE);
	assert_int_equal(count_gids(ctx), gids + 1); /* 10.99.0.3 kept its place */
	change_address(RTM_DELADDR, "10.99.0.3");
	expect_event(ctx, IBV_EVENT_GID_CHANGE);
	assert_int_equal(ibv_close_device(ctx), 0);
	assert_int_equal(ibv_close_device(other), 0);
}

static void port_goes_down_and_up(void **state)
{
	struct ibv_context *ctx = open_lo();
	struct ibv_port_attr port;
	struct ibv_async_event event;
	bool active = false;

	(void)state;
	assert_int_equal(ibv_query_port(ctx, 1, &port), 0);
	assert_int_equal(port.state, IBV_PORT_ACTIVE);
	set_up(false);
	let_snapshots_age();
	assert_int_equal(ibv_query_port(ctx, 1, &port), 0);
	assert_int_equal(port.state, IBV_PORT_DOWN);
	/* The IPv6 address may go with the link, in a message of its own. */
	do {
		assert_int_equal(ibv_get_async_event(ctx, &event), 0);
		ibv_ack_async_event(&event);
	} while (event.event_type == IBV_EVENT_GID_CHANGE);
	assert_int_equal(event.event_type, IBV_EVENT_PORT_ERR);
	set_up(true);
	while (!active) {
		assert_int_equal(ibv_get_async_event(ctx, &event), 0);
		active = event.event_type == IBV_EVENT_PORT_ACTIVE;
		ibv_ack_async_event(&event);
	}
	assert_int_equal(ibv_query_port(ctx, 1, &port), 0);
	assert_int_equal(port.state, IBV_PORT_ACTIVE);
	assert_int_equal(ibv_close_device(ctx), 0);
}

static void down_is_not_listed(void **state)
{
	struct ibv_device **list;
	int count = -1;

	(void)state;
	set_up(false);
	list = ibv_get_device_list(&count);
	assert_non_null(list);
	assert_int_equal(count, 0);
	assert_null(list[0]);
	ibv_free_device_list(list);
	set_up(true);
}

static void same_pointer_while_held(void **state)
{
	struct ibv_device **a = ibv_get_device_list(NULL), **b = ibv_get_device_list(NULL);
	struct ibv_context *ctx;

	(void)state;
	assert_true(a[0] == b[0]);
	ctx = ibv_open_device(a[0]);
	ibv_free_device_list(a);
	ibv_free_device_list(b);
	a = ibv_get_device_list(NULL);
	assert_true(ctx->device == a[0]);
	ibv_free_device_list(a);
	assert_string_equal(ibv_get_device_name(ctx->device), "vb_lo");
	ibv_close_device(ctx);
}

static struct ibv_context *open_listed(int position, const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx;

	assert_non_null(list[0]);
	assert_non_null(list[1]);
	assert_null(list[2]);
	assert_string_equal(ibv_get_device_name(list[position]), name);
	ctx = ibv_open_device(list[position]);
	assert_non_null(ctx);
	ibv_free_device_list(list);
	return ctx;
}

static void expect_events_until(struct ibv_context *ctx, enum ibv_event_type last)
{
	struct pollfd p = {.fd = ctx->async_fd, .events = POLLIN};
	struct ibv_async_event event;

	do {
		assert_int_equal(poll(&p, 1, WAIT_MS), 1);
		assert_int_equal(ibv_get_async_event(ctx, &event), 0);
		ibv_ack_async_event(&event);
	} while (event.event_type != last);
}

/* A second interface comes, stands before lo, goes with its device in use, and comes back. */
static void interface_comes_and_goes(void **state)
{
	struct ibv_device **old;
	struct ibv_context *ctx;
	struct ibv_port_attr port;

	(void)state;
	if (make_dummy("vbtest0"))
		skip();
	set_up_link((int)if_nametoindex("vbtest0"), true);
	change_address_of((int)if_nametoindex("vbtest0"), RTM_NEWADDR, "10.98.0.1");
	ctx = open_listed(0, "vb_vbtest0");
	assert_true(ibv_get_device_guid(ctx->device) != 0);
	assert_int_equal(index_of(ctx, "10.98.0.1"), 0);
	assert_int_equal(ibv_query_port(ctx, 1, &port), 0);
	assert_int_equal(port.state, IBV_PORT_ACTIVE);
	old = ibv_get_device_list(NULL);
	assert_non_null(old);
	remove_link((int)if_nametoindex("vbtest0"));
	errno = 0;
	assert_null(ibv_open_device(old[0]));
	assert_int_equal(errno, ENODEV);
	ibv_free_device_list(old);
	expect_events_until(ctx, IBV_EVENT_DEVICE_FATAL);
	assert_int_equal(ibv_query_port(ctx, 1, &port), 0);
	assert_int_equal(port.state, IBV_PORT_DOWN);
	assert_int_equal(index_of(ctx, "10.98.0.1"), -1);
	assert_int_equal(ibv_get_device_index(ctx->device), -1);
	ibv_close_device(open_lo()); /* the only one that is listed now */
	assert_int_equal(make_dummy("vbtest0"), 0);
	set_up_link((int)if_nametoindex("vbtest0"), true);
	change_address_of((int)if_nametoindex("vbtest0"), RTM_NEWADDR, "10.98.0.1");
	expect_events_until(ctx, IBV_EVENT_PORT_ACTIVE);
	let_snapshots_age();
	assert_int_equal(index_of(ctx, "10.98.0.1"), 0);
	assert_int_equal(ibv_close_device(ctx), 0);
	remove_link((int)if_nametoindex("vbtest0"));
}

/* A namespace of our own, as root or through one of users. */
static int enter_namespace(void)
{
	if (!unshare(CLONE_NEWNET))
		return 0;
	return unshare(CLONE_NEWUSER | CLONE_NEWNET);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(noticed_by_queries),
		cmocka_unit_test(told_without_asking),
		cmocka_unit_test(port_goes_down_and_up),
		cmocka_unit_test(down_is_not_listed),
		cmocka_unit_test(same_pointer_while_held),
		cmocka_unit_test(interface_comes_and_goes),
	};

	setenv("VERBATIM_DEVICES", "*", 1);
	if (enter_namespace()) {
		fprintf(stderr, "no network namespace: %s\n", strerror(errno));
		return 77;
	}
	set_up(true);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
