/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The sockets of the link to other hosts: which processes share the port and which are refused,
 * what a process keeps when it leaves, and from which port senders send.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/reason.h"
#include "udp/address.h"
#include "udp/socket.h"
#include "unit/udp/net.h"
#include "wire/packet.h"

#define FLOWS 64

static int open_receiver(bool ipv4)
{
	uint32_t buffer = 0;
	int fd = vb_udp_open_receiver(ipv4, &buffer);

	assert_true(fd >= 0);
	assert_true(buffer > 0);
	return fd;
}

static int open_sender(bool ipv4, uint16_t *port)
{
	int fd = vb_udp_open_sender(ipv4, port);

	assert_true(fd >= 0);
	return fd;
}

/* One byte from `fd` to the port of this host. */
static void send_byte(int fd, bool ipv4, uint16_t port)
{
	union vb_udp_address to;
	uint8_t gid[16];

	net_gid(ipv4, 1, gid);
	socklen_t length = vb_udp_address_of(&to, gid, port, 0);

	assert_int_equal(sendto(fd, "x", 1, 0, &to.any, length), 1);
}

static int count(int fd)
{
	uint8_t byte;
	int n = 0;

	net_settle();
	while (recv(fd, &byte, 1, MSG_DONTWAIT) >= 0)
		n++;
	return n;
}

static void test_shared_by_one_user(void **state)
{
	(void)state;
	for (int ipv4 = 0; ipv4 < 2; ipv4++) {
		int a = open_receiver(ipv4);
		int b = open_receiver(ipv4);

		for (int i = 0; i < FLOWS; i++) {
			uint16_t port = 0;
			int fd = open_sender(ipv4, &port);

			send_byte(fd, ipv4, VB_UDP_PORT);
			close(fd);
		}
		assert_int_equal(count(a) + count(b), FLOWS);
		close(a);
		close(b);
	}
}

static void test_taken(void **state)
{
	(void)state;
	for (int ipv4 = 0; ipv4 < 2; ipv4++) {
		uint64_t before = vb_reason_count(VB_REASON_PORT_TAKEN);
		int holder = net_bound(ipv4, VB_UDP_PORT);
		uint32_t buffer;
		int next = open(".", O_RDONLY | O_CLOEXEC);

		close(next);
		assert_int_equal(vb_udp_open_receiver(ipv4, &buffer), -EADDRINUSE);
		assert_int_equal(vb_reason_count(VB_REASON_PORT_TAKEN), before);
		assert_int_equal(vb_udp_refuse_port(ipv4, ""), -EADDRINUSE);
		assert_int_equal(vb_reason_count(VB_REASON_PORT_TAKEN), before + 1);
		int after = open(".", O_RDONLY | O_CLOEXEC); /* no descriptor was left behind */

		assert_int_equal(after, next);
		close(after);
		close(holder);
		close(open_receiver(ipv4));
	}
}

static const char *defect_of(int fd, bool ipv4)
{
	const char *defect = NULL;
	uint32_t buffer;

	assert_int_equal(vb_udp_take_receiver(fd, ipv4, &buffer, &defect), -EBADMSG);
	close(fd);
	return defect;
}

/* What another process gives is looked at: a socket that would not do is refused. */
static void test_taken_over(void **state)
{
	struct sock_filter nothing = BPF_STMT(BPF_RET | BPF_K, 0);
	struct sock_fprog filter = {.len = 1, .filter = &nothing};

	(void)state;
	for (int ipv4 = 0; ipv4 < 2; ipv4++) {
		const char *defect = NULL;
		uint32_t buffer = 0;
		uint16_t port = 0;
		int fd = open_receiver(ipv4);

		vb_udp_mute(fd);
		assert_int_equal(vb_udp_take_receiver(fd, ipv4, &buffer, &defect), 0);
		assert_true(buffer > 0);
		int sender = open_sender(ipv4, &port);

		send_byte(sender, ipv4, VB_UDP_PORT);
		close(sender);
		assert_int_equal(count(fd), 1);
		/* What it sends would be sent in the name of the one that opened it. */
		assert_int_equal(send(fd, "", 1, MSG_NOSIGNAL), -1);
		vb_udp_leave(fd, ipv4);
		assert_int_equal(send(fd, "", 1, MSG_NOSIGNAL), -1);
		assert_int_equal(errno, EPIPE);
		close(fd);
		assert_string_equal(defect_of(open_receiver(!ipv4), ipv4),
				    "it is no UDP socket of this family");
		assert_string_equal(defect_of(open("/dev/null", O_RDWR | O_CLOEXEC), ipv4),
				    "it is no UDP socket of this family");
		assert_string_equal(defect_of(open_sender(ipv4, &port), ipv4),
				    "it is not bound to the port at the wildcard address");
		fd = open_receiver(ipv4);
		vb_udp_leave(fd, ipv4);
		assert_string_equal(defect_of(fd, ipv4),
				    "it is not bound to the port at the wildcard address");
		fd = open_receiver(ipv4);
		assert_int_equal(
			setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof(filter)), 0);
		assert_string_equal(defect_of(fd, ipv4), "it has a filter");
	}
}

/* IPv6 sockets take no IPv4: who holds the one does not hold the other. */
static void test_families_apart(void **state)
{
	int v4 = net_bound(true, VB_UDP_PORT);
	int v6 = open_receiver(false);

	(void)state;
	close(v4);
	v4 = open_receiver(true);
	uint16_t port = 0;
	int sender = open_sender(true, &port);

	send_byte(sender, true, VB_UDP_PORT);
	assert_int_equal(count(v6), 0);
	assert_int_equal(count(v4), 1);
	close(sender);
	close(v4);
	close(v6);
}

/*
 * A process that goes: new packets are for the others, and what it got before is still there to be
 * passed on.
 */
static void test_leave(void **state)
{
	(void)state;
	for (int ipv4 = 0; ipv4 < 2; ipv4++) {
		int senders[FLOWS];
		int stays = open_receiver(ipv4);
		int goes = open_receiver(ipv4);
		int before;

		for (int i = 0; i < FLOWS; i++) {
			uint16_t port = 0;

			senders[i] = open_sender(ipv4, &port);
			send_byte(senders[i], ipv4, VB_UDP_PORT);
		}
		before = count(stays);
		vb_udp_leave(goes, ipv4);
		for (int i = 0; i < FLOWS; i++) {
			send_byte(senders[i], ipv4, VB_UDP_PORT);
			close(senders[i]);
		}
		assert_int_equal(count(stays), FLOWS);
		assert_int_equal(count(goes), FLOWS - before);
		close(goes);
		close(stays);
	}
}

/*
 * A sender gets the port that it asks for or the next free one, always one of those that RoCEv2
 * leaves to senders.
 */
static void test_sender_ports(void **state)
{
	(void)state;
	for (int ipv4 = 0; ipv4 < 2; ipv4++) {
		uint16_t first = 0xc123 - VB_UDP_SOURCE_LEAST;
		uint16_t second = first;
		uint16_t last = 0xffff - VB_UDP_SOURCE_LEAST;
		uint16_t wrapped = last;
		int a = open_sender(ipv4, &first);
		int b = open_sender(ipv4, &second);
		int c = open_sender(ipv4, &last);
		int d = open_sender(ipv4, &wrapped);

		assert_int_equal(first, 0xc123);
		assert_int_equal(second, 0xc124);
		assert_int_equal(last, 0xffff);
		assert_int_equal(wrapped, VB_UDP_SOURCE_LEAST);
		close(a);
		close(b);
		close(c);
		close(d);
	}
}

/* No thread reads from a sender: packets to it must not stay there and take memory. */
static void test_sender_is_deaf(void **state)
{
	(void)state;
	for (int ipv4 = 0; ipv4 < 2; ipv4++) {
		uint16_t port = 0;
		uint16_t other = 0;
		int deaf = open_sender(ipv4, &port);
		int fd = open_sender(ipv4, &other);

		send_byte(fd, ipv4, port);
		assert_int_equal(count(deaf), 0);
		close(deaf);
		close(fd);
	}
}

static void test_buffer_held_down(void **state)
{
	uint32_t buffer = 0;

	(void)state;
	setenv("VERBATIM_UDP_BUFFER", "212992", 1);
	int fd = vb_udp_open_receiver(true, &buffer);

	unsetenv("VERBATIM_UDP_BUFFER");
	assert_true(fd >= 0);
	assert_int_equal(buffer, 212992);
	close(fd);
}

/* A program that the process starts gets none of them. */
static void test_not_inherited(void **state)
{
	uint16_t port = 0;
	int fds[2] = {open_receiver(true), open_sender(true, &port)};

	(void)state;
	for (int i = 0; i < 2; i++) {
		assert_true(fcntl(fds[i], F_GETFD) & FD_CLOEXEC);
		close(fds[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shared_by_one_user),
		cmocka_unit_test(test_taken),
		cmocka_unit_test(test_taken_over),
		cmocka_unit_test(test_families_apart),
		cmocka_unit_test(test_leave),
		cmocka_unit_test(test_sender_ports),
		cmocka_unit_test(test_sender_is_deaf),
		cmocka_unit_test(test_buffer_held_down),
		cmocka_unit_test(test_not_inherited),
	};

	net_enter();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
