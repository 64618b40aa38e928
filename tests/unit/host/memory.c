/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Direct access to another process's memory: content, order of the tail, faults, marks and the
 * atomic lock.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cmocka.h>

#include "host/guard.h"
#include "host/private.h"
#include "unit/host/end.h"

#define AREA (1u << 20)

struct area {
	uint8_t bytes[AREA];

	uint64_t counter;
};

/*
 * What the last WRITE asked of the kernel: the copies that it makes one after the other, by the end
 * that receives (the tests are linked with --wrap).
 */
static struct iovec asked[VB_PEER_IOV + 1];
static int num_asked;
/* Pieces of the receiver's memory that it named. */
static int num_targets;

ssize_t __real_vb_guard_call(const struct vb_guard *guard, long number, const long argument[6]);
ssize_t __wrap_vb_guard_call(const struct vb_guard *guard, long number, const long argument[6]);

ssize_t __wrap_vb_guard_call(const struct vb_guard *guard, long number, const long argument[6])
{
	const struct iovec *iov = (const struct iovec *)argument[1];
	char *remote = (char *)argument[3];

	if (number != SYS_process_vm_writev && number != SYS_pwritev)
		return __real_vb_guard_call(guard, number, argument);
	num_asked = (int)argument[2];
	num_targets = 1;
	if (number == SYS_process_vm_writev) {
		num_targets = (int)argument[4];
		remote = ((const struct iovec *)argument[3])->iov_base;
	}
	for (int i = 0; num_targets == 1 && i < num_asked; i++) {
		asked[i] = (struct iovec){remote, iov[i].iov_len};
		remote += iov[i].iov_len;
	}
	return __real_vb_guard_call(guard, number, argument);
}

static struct area *area_map(int flags)
{
	struct area *area =
		mmap(NULL, sizeof(*area), PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);

	return area == MAP_FAILED ? NULL : area;
}

enum { END, SUM, WATCH, ADD };

/*
 * The target's main thread obeys: SUM of the area's bytes; WATCH: looks for a last word that is
 * ahead of the words before it, until the last word is -1, and answers the number of such sights.
 */
static uint64_t watch(volatile uint64_t *words, size_t count)
{
	uint64_t last = 0, early = 0;

	for (;;) {
		uint64_t now = words[count - 1];

		if (now == UINT64_MAX)
			return early;
		if (now == last)
			continue;
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		for (size_t i = 0; i < count - 1; i++) {
			if (words[i] < now) {
				early++;
				break;
			}
		}
		last = now;
	}
}

static uint64_t sum(const uint8_t *bytes)
{
	uint64_t s = 0;

	for (size_t i = 0; i < AREA; i++)
		s += (uint64_t)bytes[i] * (i % 251 + 1);
	return s;
}

static int target(int sock, void *arg)
{
	struct area *area = area_map(MAP_PRIVATE);
	static struct end end; /* its thread outlives this function */

	if (!area)
		return 2;
	if (arg)
		prctl(PR_SET_DUMPABLE, 0);
	end_start(&end);
	tell(sock, end_qp(&end, end_engine(&end), NULL));
	tell(sock, (uintptr_t)area);
	for (;;) {
		switch (hear(sock)) {
		case END:
			return 0;
		case SUM:
			tell(sock, sum(area->bytes));
			break;
		case WATCH: {
			size_t count = hear(sock);

			memset(area->bytes, 0, AREA);
			tell(sock, 0);
			tell(sock, watch((volatile uint64_t *)area->bytes, count));
			break;
		}
		case ADD:
			for (int i = 0; i < 20000; i++) {
				uint64_t old;

				if (vb_node_atomic(end.node, (uintptr_t)&area->counter, false,
						   &(struct vb_atomic){false, 1, 0}, &old))
					return 3;
			}
			tell(sock, 0);
			break;
		default:
			return 1;
		}
	}
}

#define HELPERS 40

struct fixture {
	struct end end;
	struct child child;
	struct child helper[HELPERS];
	int helpers;
	struct vb_channel *ch;
	uint64_t area;
	uint32_t engine;
	uint32_t qpn;
};

static struct fixture *make(int (*helper)(int sock, void *arg), int helpers)
{
	struct fixture *f = calloc(1, sizeof(*f));
	enum vb_contact why;

	child_start(&f->child, target, NULL);
	for (f->helpers = 0; f->helpers < helpers; f->helpers++)
		child_start(&f->helper[f->helpers], helper, NULL);
	end_start(&f->end);
	f->engine = end_engine(&f->end);
	f->qpn = (uint32_t)hear(f->child.sock);
	f->area = hear(f->child.sock);
	f->ch = end_find(&f->end, f->engine, f->qpn, END_PATIENCE_MS, &why);
	assert_true(f->ch && vb_peer_reachable(f->ch->peer));
	return f;
}

static int set_up(void **state)
{
	*state = make(NULL, 0);
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	tell(f->child.sock, END);
	child_join(&f->child);
	end_close(&f->end, f->ch);
	end_stop(&f->end);
	free(f);
	return 0;
}

static void fill(uint8_t *bytes, size_t n, unsigned int seed)
{
	for (size_t i = 0; i < n; i++)
		bytes[i] = (uint8_t)((i * 2654435761u + seed) >> 13);
}

/* Cuts [bytes, +length) into elements of odd sizes. */
static int cut(uint8_t *bytes, size_t length, struct iovec *iov)
{
	int n = 0;

	while (length) {
		size_t part = n == VB_PEER_IOV - 1 ? length : 1 + (size_t)n * 37 % 4099;

		if (part > length)
			part = length;
		iov[n++] = (struct iovec){bytes, part};
		bytes += part;
		length -= part;
	}
	return n;
}

#define SEEN (128u * 1024u) /* what is compared: more than the longest copy and where it begins */

/*
 * Whatever the alignment of both sides, the number of elements, and whether the tail comes apart:
 * the same bytes, none beside them.
 */
static void copies(struct vb_peer *peer, uint64_t area)
{
	static uint8_t src[SEEN], dst[SEEN], want[SEEN];
	const size_t sizes[] = {1,  2,  7,  8,    9,    15,   16,    17,
				63, 64, 65, 4095, 4096, 4097, 65536, 100000};
	struct iovec iov[VB_PEER_IOV];

	for (unsigned int i = 0; i < sizeof(sizes) / sizeof(sizes[0]) * 8; i++) {
		size_t n = sizes[i / 8], from = i * 7 % 13, to = 4000 + i * 11 % 17;

		memset(want, 0xee, sizeof(want));
		iov[0] = (struct iovec){want, SEEN};
		assert_int_equal(vb_peer_write(peer, area, iov, 1, SEEN, false, NULL), 0);
		fill(src, sizeof(src), i);
		assert_int_equal(vb_peer_write(peer, area + to, iov, cut(src + from, n, iov), n,
					       i & 1, NULL),
				 0);
		memset(want, 0xee, sizeof(want));
		memcpy(want + to, src + from, n);
		memset(dst, 0, sizeof(dst));
		assert_int_equal(vb_peer_read(peer, area, iov, cut(dst, SEEN, iov), SEEN, NULL), 0);
		assert_memory_equal(dst, want, SEEN);
	}
	assert_int_equal(vb_peer_write(peer, area, iov, 0, 0, true, NULL), 0);
	assert_int_equal(vb_peer_read(peer, area, iov, 0, 0, NULL), 0);
}

static void test_copies(void **state)
{
	static uint8_t src[AREA];
	struct fixture *f = *state;
	struct iovec iov = {src, AREA};

	copies(f->ch->peer, f->area);
	/* Long ones by descriptor too, as where process numbers do not reach (bulk.c). */
	atomic_store(&f->ch->peer->thread, 0);
	copies(f->ch->peer, f->area);
	/* The target sees what was written. */
	fill(src, AREA, 99);
	assert_int_equal(vb_peer_write(f->ch->peer, f->area, &iov, 1, AREA, true, NULL), 0);
	tell(f->child.sock, SUM);
	assert_int_equal(hear(f->child.sock), sum(src));
}

/*
 * The last element of each transfer is the last aligned word that the range touches, or what of it
 * lies in the range.
 */
static void test_tail_is_apart(void **state)
{
	static uint8_t src[AREA];
	const size_t sizes[] = {9, 15, 16, 17, 64, 512, 4096, 4099, 16384, 65537, 300000};
	struct fixture *f = *state;
	pid_t thread = atomic_load(&f->ch->peer->thread);
	struct iovec iov[VB_PEER_IOV];

	for (int i = 0; i < 2 * 11 * 16; i++) {
		size_t n = sizes[i % 11], to = 4096 + (size_t)i / 11 % 16;
		uint64_t end = f->area + to + n, word = (end - 1) & ~7ull;

		atomic_store(&f->ch->peer->thread, i < 11 * 16 ? thread : 0);
		assert_int_equal(vb_peer_write(f->ch->peer, f->area + to, iov, cut(src, n, iov), n,
					       true, NULL),
				 0);
		assert_true(num_asked > 1);
		assert_int_equal(num_targets, 1); /* each costs a search of the receiver's memory */
		assert_int_equal(asked[0].iov_base, f->area + to);
		for (int k = 1; k < num_asked; k++)
			assert_ptr_equal(asked[k].iov_base,
					 (char *)asked[k - 1].iov_base + asked[k - 1].iov_len);
		assert_int_equal(asked[num_asked - 1].iov_base, word);
		assert_int_equal(asked[num_asked - 1].iov_len, end - word);
	}
}

/* Moves to different places by one call: all of them, or those before the first that fails. */
static void test_lists(void **state)
{
	static uint8_t src[VB_PEER_MOVES * 64], back[VB_PEER_MOVES * 64];
	struct fixture *f = *state;
	struct vb_peer *peer = f->ch->peer;
	struct vb_move moves[VB_PEER_MOVES];

	fill(src, sizeof(src), 5);
	for (uint32_t i = 0; i < VB_PEER_MOVES; i++)
		moves[i] = (struct vb_move){src + (size_t)i * 64, f->area + (uint64_t)i * 4099,
					    1 + i % 64};
	assert_true(vb_peer_moves_lists(peer));
	assert_int_equal(vb_peer_move_list(peer, moves, VB_PEER_MOVES, true, NULL), VB_PEER_MOVES);
	for (uint32_t i = 0; i < VB_PEER_MOVES; i++)
		moves[i].local = back + (size_t)i * 64;
	assert_int_equal(vb_peer_move_list(peer, moves, VB_PEER_MOVES, false, NULL), VB_PEER_MOVES);
	for (uint32_t i = 0; i < VB_PEER_MOVES; i++)
		assert_memory_equal(back + (size_t)i * 64, src + (size_t)i * 64, 1 + i % 64);
	for (uint32_t at = 0; at < 3; at++) {
		struct vb_move one = moves[at];

		moves[at].addr = 0x1000;
		assert_int_equal(vb_peer_move_list(peer, moves, 4, true, NULL), at);
		moves[at] = one;
	}
	assert_int_equal(vb_peer_move_list(peer, moves, VB_PEER_MOVES + 1, true, NULL), 0);
	atomic_store(&peer->thread, 0);
	assert_false(vb_peer_moves_lists(peer));
	assert_int_equal(vb_peer_move_list(peer, moves, 4, true, NULL), 0);
}

static void test_copies_self(void **state)
{
	struct fixture *f = *state;
	uint32_t own = end_qp(&f->end, f->engine, NULL);
	struct area *area = area_map(MAP_PRIVATE);
	enum vb_contact why;
	struct vb_channel *loop = vb_channel_find(f->end.node, f->engine, own, &why);

	assert_true(vb_peer_is_self(loop->peer));
	assert_true(vb_peer_reachable(loop->peer));
	copies(loop->peer, (uintptr_t)area);
	uint64_t old;

	area->counter = 5;
	assert_int_equal(vb_peer_atomic(loop->peer, (uintptr_t)&area->counter,
					&(struct vb_atomic){false, 3, 0}, &old, NULL),
			 0);
	assert_int_equal(old, 5);
	assert_int_equal(vb_peer_atomic(loop->peer, (uintptr_t)&area->counter,
					&(struct vb_atomic){true, 9, 7}, &old, NULL),
			 0);
	assert_int_equal(old, 8);
	assert_int_equal(area->counter, 8);
	assert_int_equal(vb_peer_atomic(loop->peer, (uintptr_t)&area->counter,
					&(struct vb_atomic){true, 9, 8}, &old, NULL),
			 0);
	assert_int_equal(area->counter, 9);
	munmap(area, sizeof(*area));
	end_close(&f->end, loop);
}

/* A target that polls the last word never sees it before the rest. */
static void test_tail_order(void **state)
{
	static uint64_t words[2048];
	const size_t counts[] = {2, 8, 512, 2048, 2048};
	struct fixture *f = *state;
	struct iovec iov;

	for (size_t k = 0; k < sizeof(counts) / sizeof(counts[0]); k++) {
		size_t count = counts[k];

		/* The last size once by process number, once by descriptor. */
		if (k == 4)
			atomic_store(&f->ch->peer->thread, 0);

		tell(f->child.sock, WATCH);
		tell(f->child.sock, count);
		hear(f->child.sock);
		for (uint64_t i = 1; i <= 20000; i++) {
			for (size_t w = 0; w < count; w++)
				words[w] = i == 20000 ? UINT64_MAX : i;
			iov = (struct iovec){words, count * 8};
			assert_int_equal(vb_peer_write(f->ch->peer, f->area, &iov, 1, count * 8,
						       true, NULL),
					 0);
		}
		assert_int_equal(hear(f->child.sock), 0);
	}
}

static void test_faults(void **state)
{
	struct fixture *f = *state;
	struct vb_peer *peer = f->ch->peer;
	uint8_t bytes[64] = {0};
	struct iovec iov = {bytes, sizeof(bytes)};
	uint64_t old;

	assert_int_equal(vb_peer_read(peer, 0x1000, &iov, 1, 64, NULL), -EFAULT);
	assert_int_equal(vb_peer_write(peer, 0x1000, &iov, 1, 64, true, NULL), -EFAULT);
	assert_int_equal(vb_peer_write(peer, UINT64_MAX - 10, &iov, 1, 64, true, NULL), -EFAULT);
	assert_int_equal(vb_peer_write(peer, 1ull << 63, &iov, 1, 64, true, NULL), -EFAULT);
	assert_int_equal(vb_peer_atomic(peer, 0x1000, &(struct vb_atomic){false, 1, 0}, &old, NULL),
			 -EFAULT);
	assert_int_equal(vb_peer_atomic(peer, f->area + 4, &(struct vb_atomic){false, 1, 0}, &old,
					NULL),
			 -EINVAL);
	assert_int_equal(vb_peer_read(peer, f->area, &iov, VB_PEER_IOV + 1, 64, NULL), -EINVAL);
	/* Our own side of it is not mapped. */
	iov = (struct iovec){(void *)0x1000, 64};
	assert_int_equal(vb_peer_write(peer, f->area, &iov, 1, 64, true, NULL), -EFAULT);
	assert_true(vb_peer_alive(peer));
	/* The lock was given back. */
	assert_int_equal(
		vb_peer_atomic(peer, f->area, &(struct vb_atomic){false, 0, 0}, &old, NULL), 0);
}

/* On a crowded machine a holder may stay without a core for longer than the lock's patience. */
static int add_one(struct vb_peer *peer, uint64_t addr, uint64_t *old)
{
	int err;

	do {
		err = vb_peer_atomic(peer, addr, &(struct vb_atomic){false, 1, 0}, old, NULL);
	} while (err == -EAGAIN);
	return err;
}

/* The target under its own lock, two initiators by direct access: nothing is lost. */
static int adder(int sock, void *arg)
{
	enum vb_contact why;
	static struct end end; /* its thread outlives this function */
	uint64_t old;

	(void)arg;
	end_start(&end);
	struct vb_channel *ch =
		end_find(&end, end_engine(&end), (uint32_t)hear(sock), END_PATIENCE_MS, &why);
	uint64_t addr = hear(sock);

	for (int i = 0; i < 20000; i++) {
		if (!ch || add_one(ch->peer, addr, &old))
			return 1;
	}
	tell(sock, 0);
	return 0;
}

static void test_atomic_sum(void **state)
{
	struct fixture *f = make(adder, 1);
	uint64_t addr = f->area + offsetof(struct area, counter), old;
	struct child other = f->helper[0];

	*state = f;
	tell(other.sock, f->qpn);
	tell(other.sock, addr);
	tell(f->child.sock, ADD);
	for (int i = 0; i < 20000; i++)
		assert_int_equal(add_one(f->ch->peer, addr, &old), 0);
	hear(other.sock);
	child_join(&other);
	hear(f->child.sock);
	assert_int_equal(vb_peer_atomic(f->ch->peer, addr, &(struct vb_atomic){true, 1, 60000},
					&old, NULL),
			 0);
	assert_int_equal(old, 60000);
}

/* Initiators are killed in the middle of atomics, some of them with the lock in their hands. */
static int endless_adder(int sock, void *arg)
{
	enum vb_contact why;
	static struct end end; /* its thread outlives this function */
	uint64_t old;

	(void)arg;
	end_start(&end);
	struct vb_channel *ch =
		end_find(&end, end_engine(&end), (uint32_t)hear(sock), END_PATIENCE_MS, &why);
	uint64_t addr = hear(sock);

	tell(sock, 0);
	for (;;) {
		if (!ch ||
		    vb_peer_atomic(ch->peer, addr, &(struct vb_atomic){false, 1, 0}, &old, NULL))
			return 1;
	}
}

static void test_lock_owner_killed(void **state)
{
	struct fixture *f = make(endless_adder, HELPERS);
	uint64_t addr = f->area + offsetof(struct area, counter), old;
	int64_t least = INT64_MAX;

	*state = f;
	for (int i = 0; i < HELPERS; i++) {
		struct child other = f->helper[i];

		tell(other.sock, f->qpn);
		tell(other.sock, addr);
		hear(other.sock);
		usleep((useconds_t)(i * 97 % 1000));
		child_kill(&other);
		int64_t now = end_clock();

		assert_int_equal(vb_peer_atomic(f->ch->peer, addr, &(struct vb_atomic){false, 1, 0},
						&old, NULL),
				 0);
		now = end_clock() - now;
		assert_in_range(now, 0, 10000000000);
		least = now < least ? now : least;
	}
	/*
	 * Half of the time after which a holder is not waited for whatever it does. A crowded
	 * machine takes as much from single ones, but not from all.
	 */
	assert_in_range(least, 0, 1000000000);
	tell(f->child.sock, ADD);
	hear(f->child.sock);
}

/* A process that is not dumpable cannot be reached, and says so. */
static void test_unreachable(void **state)
{
	struct iovec iov = {&(uint64_t){0}, 8};
	enum vb_contact why;
	struct child child;
	struct end end;
	uint64_t old;

	(void)state;
	if (getuid() == 0)
		assert_int_equal(setresuid(65534, 65534, 65534), 0);
	child_start(&child, target, (void *)1);
	prctl(PR_SET_DUMPABLE, 1);
	end_start(&end);
	assert_null(vb_node_direct_obstacle(end.node));
	struct vb_channel *ch =
		end_find(&end, end_engine(&end), (uint32_t)hear(child.sock), END_PATIENCE_MS, &why);

	assert_non_null(ch);
	assert_false(vb_peer_reachable(ch->peer));
	uint64_t area = hear(child.sock);

	assert_int_equal(vb_peer_write(ch->peer, area, &iov, 1, 8, true, NULL), -EOPNOTSUPP);
	assert_int_equal(vb_peer_read(ch->peer, area, &iov, 1, 8, NULL), -EOPNOTSUPP);
	assert_int_equal(vb_peer_atomic(ch->peer, area, &(struct vb_atomic){false, 1, 0}, &old,
					NULL),
			 -EOPNOTSUPP);
	tell(child.sock, END);
	child_join(&child);
	end_close(&end, ch);
	end_stop(&end);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_copies, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_lists, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_copies_self, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_tail_is_apart, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_tail_order, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_faults, set_up, tear_down),
		cmocka_unit_test_teardown(test_atomic_sum, tear_down),
		cmocka_unit_test_teardown(test_lock_owner_killed, tear_down),
		cmocka_unit_test(test_unreachable),
	};

	return cmocka_run_group_tests_name("host/memory", tests, NULL, NULL);
}
