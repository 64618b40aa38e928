/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The fault tap: how its text is read, what each fault does to packets, and that one seed always
 * does the same.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "udp/address.h"
#include "udp/fault.h"
#include "unit/udp/net.h"

#define PORT    5000
#define PACKETS 100
#define BYTES   32

/* What came of PACKETS numbered packets that a process with the tap sent. */
struct arrivals {
	int count;
	int number[2 * PACKETS];
	int turned[2 * PACKETS]; /* bits */
};

static void packet_of(uint8_t data[BYTES], int number)
{
	memset(data, number ^ 0x5a, BYTES);
}

static void send_one(int fd, const union vb_udp_address *to, socklen_t length, int number)
{
	uint8_t data[BYTES];
	uint8_t nothing;
	struct iovec piece[2] = {{data, 5}, {data + 5, BYTES - 5}};
	struct msghdr m = {.msg_name = (void *)to,
			   .msg_namelen = length,
			   .msg_iov = piece,
			   .msg_iovlen = 2,
			   .msg_control = &nothing};

	packet_of(data, number);
	if (!vb_udp_fault_active() || vb_udp_fault_send(fd, &m))
		_exit(1);
}

/* In a process of its own, since the environment is read once. */
static void send_all(void)
{
	union vb_udp_address to;
	uint8_t gid[16];
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	net_gid(true, 1, gid);
	socklen_t length = vb_udp_address_of(&to, gid, PORT, 0);

	for (int i = 0; i < PACKETS; i++)
		send_one(fd, &to, length, i);
	_exit(0);
}

/* Which packet was it, and in how many bits does it differ? */
static void judge(struct arrivals *a, const uint8_t data[BYTES])
{
	uint8_t wanted[BYTES];
	int best = 8 * BYTES + 1;

	for (int number = 0; number < PACKETS; number++) {
		int bits = 0;

		packet_of(wanted, number);
		for (int i = 0; i < BYTES; i++)
			bits += __builtin_popcount(data[i] ^ wanted[i]);
		if (bits < best) {
			best = bits;
			a->number[a->count] = number;
			a->turned[a->count] = bits;
		}
	}
	a->count++;
}

static void run_as(struct arrivals *a, const char *faults, void (*sender)(void))
{
	uint8_t data[BYTES];
	int fd = net_bound(true, PORT);
	int status;

	a->count = 0;
	setenv("VERBATIM_FAULT", faults, 1);
	pid_t child = fork();

	if (!child)
		sender();
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	net_settle();
	while (recv(fd, data, sizeof(data), MSG_DONTWAIT) == BYTES) {
		assert_true(a->count < 2 * PACKETS);
		judge(a, data);
	}
	close(fd);
}

static void run(struct arrivals *a, const char *faults)
{
	run_as(a, faults, send_all);
}

static bool same(const struct arrivals *a, const struct arrivals *b)
{
	return a->count == b->count &&
	       !memcmp(a->number, b->number, (size_t)a->count * sizeof(int)) &&
	       !memcmp(a->turned, b->turned, (size_t)a->count * sizeof(int));
}

static void test_parse(void **state)
{
	static const char *const wrong[] = {
		"drop",           "drop=",   "drop=x", "drop=101%", "drop=-1%", "drop=1.5",
		"drop=5%;dup=1%", "loss=5%", "drop5%", "seed=",     "drop=nan", "drop=5%%",
	};
	struct vb_udp_fault_plan plan;

	(void)state;
	assert_true(
		vb_udp_fault_parse("drop=50%,dup=0.25,reorder=100%,corrupt=0,seed=0x10", &plan));
	assert_int_equal(plan.drop, 1u << 31);
	assert_int_equal(plan.dup, 1u << 30);
	assert_int_equal(plan.reorder, UINT32_MAX);
	assert_int_equal(plan.corrupt, 0);
	assert_int_equal(plan.seed, 16);
	assert_true(vb_udp_fault_parse("", &plan));
	assert_int_equal(plan.seed, 1);
	assert_int_equal(plan.drop | plan.dup | plan.reorder | plan.corrupt, 0);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		if (vb_udp_fault_parse(wrong[i], &plan))
			fail_msg("\"%s\" was understood", wrong[i]);
	}
}

static void test_none(void **state)
{
	struct arrivals a;

	(void)state;
	run(&a, "seed=3");
	assert_int_equal(a.count, PACKETS);
	for (int i = 0; i < PACKETS; i++) {
		assert_int_equal(a.number[i], i);
		assert_int_equal(a.turned[i], 0);
	}
}

static void test_drop(void **state)
{
	struct arrivals a;

	(void)state;
	run(&a, "drop=100%");
	assert_int_equal(a.count, 0);
	run(&a, "drop=30%");
	assert_in_range(a.count, PACKETS / 2, PACKETS - PACKETS / 8);
	for (int i = 1; i < a.count; i++)
		assert_true(a.number[i] > a.number[i - 1]);
}

static void test_dup(void **state)
{
	struct arrivals a;

	(void)state;
	run(&a, "dup=100%");
	assert_int_equal(a.count, 2 * PACKETS);
	for (int i = 0; i < a.count; i++)
		assert_int_equal(a.number[i], i / 2);
}

/*
 * Each second one passes the one before it; nothing is lost, for there is an even number of them.
 */
static void test_reorder(void **state)
{
	struct arrivals a;

	(void)state;
	run(&a, "reorder=100%");
	assert_int_equal(a.count, PACKETS);
	for (int i = 0; i < a.count; i++)
		assert_int_equal(a.number[i], i ^ 1);
}

static uint64_t held_until;

static void on_hold(uint64_t until)
{
	held_until = until;
}

static bool is_closed;

static bool is_ours(int fd)
{
	(void)fd;
	return !is_closed;
}

/* A failed step is told by the exit status. */
static void must(bool ok, int step)
{
	if (!ok)
		_exit(step);
}

static void send_and_pause(void)
{
	static const struct vb_udp_fault_host host = {on_hold, is_ours};
	union vb_udp_address to;
	uint8_t gid[16];
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	net_gid(true, 1, gid);
	socklen_t length = vb_udp_address_of(&to, gid, PORT, 0);

	vb_udp_fault_join(&host);
	must(vb_udp_fault_serve(UINT64_MAX) == 0, 2);
	send_one(fd, &to, length, 0);
	must(held_until != 0 && vb_udp_fault_serve(held_until - 1) == held_until, 3);
	/* The next one comes in time. */
	send_one(fd, &to, length, 1);
	must(vb_udp_fault_serve(UINT64_MAX) == 0, 4);
	/* None comes. */
	send_one(fd, &to, length, 2);
	must(vb_udp_fault_serve(held_until) == 0, 5);
	/* It is not sent again; the next one is held back as the first was. */
	send_one(fd, &to, length, 3);
	must(vb_udp_fault_serve(held_until) == 0, 6);
	/* The program has put a file of its own under the number. */
	send_one(fd, &to, length, 4);
	is_closed = true;
	must(vb_udp_fault_serve(held_until) == 0, 7);
	_exit(0);
}

/* A packet that is held back goes by itself where no other follows. */
static void test_hold_has_an_end(void **state)
{
	static const int order[] = {1, 0, 2, 3};
	struct arrivals a;

	(void)state;
	run_as(&a, "reorder=100%", send_and_pause);
	assert_int_equal(a.count, 4);
	for (int i = 0; i < 4; i++)
		assert_int_equal(a.number[i], order[i]);
}

static void test_corrupt(void **state)
{
	struct arrivals a;

	(void)state;
	run(&a, "corrupt=1");
	assert_int_equal(a.count, PACKETS);
	for (int i = 0; i < a.count; i++) {
		assert_int_equal(a.number[i], i);
		assert_int_equal(a.turned[i], 1);
	}
}

static void test_seed_is_replay(void **state)
{
	struct arrivals first, again, other;

	(void)state;
	run(&first, "drop=10%,dup=10%,reorder=10%,corrupt=10%,seed=7");
	run(&again, "seed=7,corrupt=10%,reorder=10%,dup=10%,drop=10%");
	run(&other, "drop=10%,dup=10%,reorder=10%,corrupt=10%,seed=8");
	assert_true(same(&first, &again));
	assert_false(same(&first, &other));
}

/* Another share leaves the other faults where they were. */
static void test_shares_apart(void **state)
{
	struct arrivals plain, with;
	bool came[PACKETS] = {false};

	(void)state;
	run(&plain, "drop=20%,seed=5");
	run(&with, "drop=20%,corrupt=50%,seed=5");
	for (int i = 0; i < plain.count; i++)
		came[plain.number[i]] = true;
	assert_int_equal(with.count, plain.count);
	for (int i = 0; i < with.count; i++)
		assert_true(came[with.number[i]]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parse),
		cmocka_unit_test(test_none),
		cmocka_unit_test(test_drop),
		cmocka_unit_test(test_dup),
		cmocka_unit_test(test_reorder),
		cmocka_unit_test(test_corrupt),
		cmocka_unit_test(test_hold_has_an_end),
		cmocka_unit_test(test_seed_is_replay),
		cmocka_unit_test(test_shares_apart),
	};

	net_enter();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
