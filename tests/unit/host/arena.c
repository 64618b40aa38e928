/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Memory that peers map: places are kept apart and given back empty; windows show the same bytes
 * however an access lies across them; what a hostile owner hands out or publishes is refused or
 * does no harm.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "host/arena.h"
#include "host/piece.h"
#include "host/private.h"
#include "host/shared.h"

#define PAGE   4096u
#define WINDOW (64u << 20) /* of window.c: what accesses must be able to straddle */

static struct vb_node *node_start(void)
{
	static const struct vb_node_events events;
	struct vb_node *node = NULL;

	assert_int_equal(vb_node_start(&events, &node), 0);
	return node;
}

static void test_places(void **state)
{
	struct vb_node *node = node_start();
	unsigned char *piece[8];
	void *addr;

	(void)state;
	for (int i = 0; i < 8; i++) {
		assert_int_equal(vb_arena_alloc(node, PAGE * 3 - 5, &addr), 0);
		piece[i] = addr;
		assert_int_equal((uintptr_t)addr % PAGE, 0);
		memset(piece[i], i + 1, PAGE * 3);
	}
	for (int i = 0; i < 8; i++)
		assert_int_equal(piece[i][PAGE * 3 - 1], i + 1);
	/*
	 * A gap rests while others have a view of it that they do not know to be stale, is used
	 * again after 256 MiB, and is empty.
	 */
	vb_arena_free(node, piece[6], PAGE * 3 - 5);
	vb_arena_free(node, piece[7], PAGE * 3 - 5);
	for (int i = 0; i < 256; i++) {
		assert_int_equal(vb_arena_alloc(node, 1 << 20, &addr), 0);
		assert_true((unsigned char *)addr >= piece[7] + PAGE * 3);
		vb_arena_free(node, addr, 1 << 20);
	}
	assert_int_equal(vb_arena_alloc(node, PAGE * 6, &addr), 0);
	assert_ptr_equal(addr, piece[6]);
	for (size_t i = 0; i < PAGE * 6; i++)
		assert_int_equal(((unsigned char *)addr)[i], 0);
	assert_int_equal(piece[4][0], 5);
	assert_int_equal(vb_arena_alloc(node, 0, &addr), -ENOMEM);
	assert_int_equal(vb_arena_alloc(node, SIZE_MAX, &addr), -ENOMEM);
	vb_node_stop(node);
}

/* Small pieces share a page, and no place of it is given out twice while the page is in use. */
static void test_small_pieces(void **state)
{
	enum { UNITS = PAGE / VB_PIECE_UNIT };
	struct vb_node *node = node_start();
	struct vb_piece piece[UNITS], other;
	char *base = NULL;

	(void)state;
	for (size_t i = 0; i < UNITS; i++) {
		/* The one before it is free again. */
		if (i > 1)
			vb_piece_free(node, &piece[i - 1]);
		assert_int_equal(vb_piece_alloc(node, VB_PIECE_UNIT, 0, &piece[i]), 0);
		base = i ? base : piece[i].addr;
		assert_ptr_equal(piece[i].addr, base + i * VB_PIECE_UNIT);
		memset(piece[i].addr, 1, VB_PIECE_UNIT);
		assert_int_equal(base[(i > 1 ? i - 1 : 1) * VB_PIECE_UNIT], i == 1);
	}
	/* Full: another page, though most of this one is free. */
	assert_int_equal(vb_piece_alloc(node, VB_PIECE_UNIT, 0, &other), 0);
	assert_ptr_equal(other.addr, base + PAGE);
	vb_piece_free(node, &piece[UNITS - 1]);
	assert_int_equal(*base, 1);
	vb_piece_free(node, &piece[0]);
	vb_piece_free(node, &other);
	/* A new page each time the alignment does not fit any more; then the first rests. */
	for (size_t i = 1; i < 9; i++) {
		assert_int_equal(vb_piece_alloc(node, 1024, 10, &other), 0);
		assert_int_equal((uintptr_t)other.addr % 1024, 0);
		assert_true((char *)other.addr > base + PAGE);
		vb_piece_free(node, &other);
	}
	assert_int_equal(vb_piece_bytes(1, 0), 64);
	assert_int_equal(vb_piece_bytes(1024, 10), 1024);
	assert_int_equal(vb_piece_bytes(1025, 0), PAGE);
	assert_int_equal(vb_piece_bytes(1, 12), PAGE);
	vb_node_stop(node);
}

static void test_windows(void **state)
{
	struct vb_node *node = node_start();
	struct vb_peer *self = vb_node_self(node);
	static const size_t at[] = {0, WINDOW - 4096, WINDOW - 8, WINDOW - 4, WINDOW, WINDOW + 1};
	uint8_t out[5000], in[5000];
	char *base;
	void *addr;
	size_t room;

	(void)state;
	assert_int_equal(vb_arena_alloc(node, WINDOW + (1 << 20), &addr), 0);
	base = addr;
	for (size_t i = 0; i < sizeof(out); i++)
		out[i] = (uint8_t)(i * 7 + 1);
	for (size_t i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
		for (size_t length = 1; length <= sizeof(out); length = length * 3 + 1) {
			struct iovec iov[2] = {{out, length / 2},
					       {out + length / 2, length - length / 2}};
			struct iovec back = {in, length};
			uint64_t to = (uintptr_t)base + at[i];

			assert_int_equal(vb_peer_write(self, to, iov, 2, length, true, NULL), 0);
			assert_memory_equal(base + at[i], out, length);
			memset(in, 0, sizeof(in));
			assert_int_equal(vb_peer_read(self, to, &back, 1, length, NULL), 0);
			assert_memory_equal(in, out, length);
			memset(base + at[i], 0, length);
		}
	}
	/* A word at the seam, by the processor's own atomics. */
	uint64_t *word = (uint64_t *)(void *)(base + WINDOW - 8), old;

	*word = 40;
	assert_int_equal(vb_peer_atomic(self, (uintptr_t)word, &(struct vb_atomic){false, 2, 0},
					&old, NULL),
			 0);
	assert_int_equal(old, 40);
	assert_int_equal(vb_peer_atomic(self, (uintptr_t)word, &(struct vb_atomic){true, 7, 41},
					&old, NULL),
			 0);
	assert_int_equal(old, 42);
	assert_int_equal(*word, 42);
	assert_int_equal(vb_peer_atomic(self, (uintptr_t)word, &(struct vb_atomic){true, 7, 42},
					&old, NULL),
			 0);
	assert_int_equal(*word, 7);
	/* Not in the arena at all. */
	assert_false(vb_arena_holds(self, (uintptr_t)out, 8));
	assert_null(vb_arena_window(self, (uintptr_t)out, 8, &room));
	vb_node_stop(node);
}

/* Where the arena of a peer lies is what the peer says: every answer stays inside the file. */
static void test_published_nonsense(void **state)
{
	struct vb_node *node = node_start();
	struct vb_peer *self = vb_node_self(node);
	uint64_t *base = &node->keyring->arena_base;
	uint64_t size = self->arena_size, was;
	void *addr;
	size_t room;

	(void)state;
	assert_int_equal(vb_arena_alloc(node, PAGE, &addr), 0);
	was = *base;
	assert_true(vb_arena_holds(self, was, size));
	assert_false(vb_arena_holds(self, was, size + 1));
	assert_false(vb_arena_holds(self, was + 1, size));
	assert_false(vb_arena_holds(self, was - 1, 2));
	assert_false(vb_arena_holds(self, UINT64_MAX - 3, 8));
	assert_false(vb_arena_holds(self, was, UINT64_MAX));
	/*
	 * Addresses behind the range are other memory, though the file goes on; and no claim goes
	 * beyond the file.
	 */
	node->keyring->arena_bytes = PAGE;
	assert_true(vb_arena_holds(self, was, PAGE));
	assert_false(vb_arena_holds(self, was + PAGE - 7, 8));
	assert_false(vb_arena_holds(self, was + PAGE, 8));
	node->keyring->arena_bytes = UINT64_MAX;
	assert_true(vb_arena_holds(self, was, size));
	assert_false(vb_arena_holds(self, was, size + 1));
	*base = UINT64_MAX - PAGE;
	assert_false(vb_arena_holds(self, 0, 8));
	assert_false(vb_arena_holds(self, UINT64_MAX - PAGE, UINT64_MAX));
	assert_false(vb_arena_holds(self, (uintptr_t)addr, 8));
	*base = 1;
	char *end = vb_arena_window(self, size - 7, 8, &room);

	assert_non_null(end);
	assert_int_equal(*end, 0); /* the file's last bytes: no fault */
	assert_null(vb_arena_window(self, size - 6, 8, &room));
	*base = 0;
	assert_false(vb_arena_holds(self, 0, 8));
	*base = was;
	vb_node_stop(node);
}

static int memfd(size_t bytes, unsigned int flags, int seals)
{
	int fd = memfd_create("hostile", MFD_CLOEXEC | MFD_ALLOW_SEALING | flags);

	if (fd >= 0) {
		assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
		assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
	}
	return fd;
}

static void expect_unfit(struct vb_peer *peer, int fd)
{
	const char *defect = NULL;

	assert_int_not_equal(vb_window_attach(peer, fd, &defect), 0);
	assert_non_null(defect);
	assert_null(peer->window);
	close(fd);
}

static void test_unfit_files(void **state)
{
	const int fixed = F_SEAL_SHRINK | F_SEAL_GROW;
	struct vb_node *node = node_start();
	struct vb_peer *peer = vb_peer_new(node, node->page, 77);
	const char *defect = NULL;
	int fd;

	(void)state;
	assert_non_null(peer);
	peer->keys = node->keyring;
	expect_unfit(peer, open("/dev/null", O_RDWR));
	expect_unfit(peer, memfd(WINDOW, 0, 0)); /* could be truncated under us */
	expect_unfit(peer, memfd(WINDOW, 0, F_SEAL_GROW));
	expect_unfit(peer, memfd((size_t)1 << 41, 0, fixed));
	fd = memfd(2u << 20, MFD_HUGETLB, fixed); /* its pages may be lacking */
	if (fd >= 0)
		expect_unfit(peer, fd);
	/* A file that no process may write is mapped nowhere, and nothing faults. */
	fd = memfd(WINDOW, 0, fixed | F_SEAL_WRITE);
	node->keyring->arena_top = WINDOW;
	assert_int_equal(vb_window_attach(peer, fd, &defect), 0);
	size_t room;

	node->keyring->arena_base = PAGE;
	node->keyring->arena_bytes = WINDOW;
	assert_null(vb_arena_window(peer, PAGE, 8, &room));
	node->keyring->arena_base = 0;
	vb_window_detach(peer);
	close(fd);
	free(peer);
	vb_node_stop(node);
}

/* In a forked child the program's memory is there, and its own from then on. */
static void test_fork(void **state)
{
	struct vb_node *node = node_start();
	char *bytes;
	void *addr;
	int status;

	(void)state;
	assert_int_equal(vb_arena_alloc(node, PAGE * 2, &addr), 0);
	bytes = addr;
	memset(bytes, 3, PAGE * 2);
	pid_t child = fork();

	if (!child) {
		vb_node_forked(node);
		bool same = bytes[0] == 3 && bytes[PAGE] == 3;

		memset(bytes, 4, PAGE * 2);
		_exit(same && bytes[PAGE] == 4 ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	for (size_t i = 0; i < PAGE * 2; i++)
		assert_int_equal(bytes[i], 3);
	vb_node_stop(node);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_places),      cmocka_unit_test(test_small_pieces),
		cmocka_unit_test(test_windows),     cmocka_unit_test(test_published_nonsense),
		cmocka_unit_test(test_unfit_files), cmocka_unit_test(test_fork),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
