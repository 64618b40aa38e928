/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Peers that break the protocol: a process of another user, or of another version; pages that are
 * not sealed, of the wrong size or the wrong kind, or with impossible numbers in them; messages
 * without sense. Each is refused or rejected with its reason, and the process goes on.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/random.h"
#include "base/reason.h"
#include "host/control.h"
#include "host/descriptor.h"
#include "host/private.h"
#include "host/shared.h"
#include "unit/host/puppet.h"

struct fixture {
	struct end end;
	uint32_t engine;
	uint32_t qpn;
	uint64_t versions; /* PEER_VERSION noted before */
	uint64_t users;
	uint64_t corrupt;
};

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	end_start(&f->end);
	f->engine = end_engine(&f->end);
	f->qpn = end_qp(&f->end, f->engine, NULL);
	f->versions = vb_reason_count(VB_REASON_PEER_VERSION);
	f->users = vb_reason_count(VB_REASON_PEER_USER);
	f->corrupt = vb_reason_count(VB_REASON_PEER_CORRUPT);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	end_stop(&f->end);
	free(f);
	return 0;
}

static void expect_refused(struct fixture *f, int sock)
{
	struct vb_control msg;
	int r;

	do {
		r = puppet_next(sock, &msg, NULL);
		assert_int_not_equal(msg.type, VB_CONTROL_GRANT);
	} while (r == 1);
	assert_int_equal(r, 0);
	close(sock);
	assert_int_equal(vb_reason_count(VB_REASON_PEER_VERSION), ++f->versions);
	assert_int_equal(atomic_load(&f->end.deaths), 0);
}

static uint32_t block_of(const struct fixture *f)
{
	return f->qpn >> VB_QPN_BLOCK_BITS;
}

/* The control: what is expected is accepted. */
static void test_good_page(void **state)
{
	struct fixture *f = *state;
	struct vb_control msg;
	int fd;
	struct vb_page *page = puppet_page(&fd);
	int sock = puppet_dial(block_of(f));

	puppet_hello(sock, page->header.nonce, fd);
	assert_int_equal(puppet_next(sock, &msg, NULL), 1);
	assert_int_equal(msg.type, VB_CONTROL_HELLO);
	assert_int_equal(puppet_next(sock, &msg, NULL), 1);
	assert_int_equal(msg.type, VB_CONTROL_GRANT);
	close(sock);
	vb_descriptor_close(fd);
	vb_shared_unmap(page, sizeof(*page));
	assert_int_equal(vb_reason_count(VB_REASON_PEER_VERSION), f->versions);
}

static void bad_magic(struct vb_page *page)
{
	page->header.magic++;
}

static void bad_version(struct vb_page *page)
{
	page->header.version++;
}

static void bad_size(struct vb_page *page)
{
	page->header.size_of_page--;
}

static void bad_nonce(struct vb_page *page)
{
	page->header.nonce++;
}

static void no_nonce(struct vb_page *page)
{
	page->header.nonce = 0;
}

static void test_bad_pages(void **state)
{
	void (*const spoil[])(struct vb_page *) = {bad_magic, bad_version, bad_size, bad_nonce,
						   no_nonce};
	struct fixture *f = *state;

	for (size_t i = 0; i < sizeof(spoil) / sizeof(spoil[0]); i++) {
		int fd, sock = puppet_dial(block_of(f));
		struct vb_page *page = puppet_page(&fd);
		uint64_t nonce = page->header.nonce;

		spoil[i](page);
		puppet_hello(sock, spoil[i] == no_nonce ? 0 : nonce, fd);
		expect_refused(f, sock);
		vb_descriptor_close(fd);
		vb_shared_unmap(page, sizeof(*page));
	}
}

/* The victim's own page, sent back to it. */
static void test_reflected_page(void **state)
{
	struct fixture *f = *state;
	struct vb_control msg;
	int fd, sock = puppet_dial(block_of(f));

	assert_int_equal(puppet_next(sock, &msg, &fd), 1);
	puppet_hello(sock, msg.nonce, fd);
	expect_refused(f, sock);
	vb_descriptor_close(fd);
}

/* Of the nonce 1, and right in everything but perhaps its size and its seals. */
static int memfd(size_t bytes, int seals)
{
	int fd = memfd_create("hostile", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int good;
	struct vb_page *page = puppet_page(&good);

	page->header.nonce = 1;
	assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
	if (bytes)
		assert_int_equal(pwrite(fd, &page->header, 4096, 0), 4096);
	vb_descriptor_close(good);
	vb_shared_unmap(page, sizeof(*page));
	assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

static void test_bad_objects(void **state)
{
	const int all = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE;
	const size_t size = sizeof(struct vb_page);
	struct fixture *f = *state;
	int pipes[2];

	assert_int_equal(pipe(pipes), 0);
	int objects[] = {
		memfd(size, 0),
		memfd(size,
		      F_SEAL_GROW | F_SEAL_FUTURE_WRITE), /* could be truncated under its reader */
		memfd(size, F_SEAL_SHRINK | F_SEAL_GROW), /* could get a second writer */
		memfd(size - 4096, all),
		memfd(4096, all),
		memfd(0, all),
		memfd(size + 4096, all),
		open("/dev/zero", O_RDWR),
		open("/proc/self/exe", O_RDONLY),
		pipes[0],
		pipes[1],
		-1,
	};

	for (size_t i = 0; i < sizeof(objects) / sizeof(objects[0]); i++) {
		int sock = puppet_dial(block_of(f));

		puppet_hello(sock, 1, objects[i]);
		expect_refused(f, sock);
		if (objects[i] >= 0)
			close(objects[i]);
	}
}

static void test_bad_messages(void **state)
{
	struct fixture *f = *state;
	struct vb_control msg = {.magic = VB_CONTROL_MAGIC,
				 .version = VB_CONTROL_VERSION + 1,
				 .type = VB_CONTROL_HELLO};
	char big[4096] = {0};
	int sock = puppet_dial(block_of(f));

	send(sock, &msg, sizeof(msg), MSG_NOSIGNAL);
	expect_refused(f, sock);
	sock = puppet_dial(block_of(f));
	msg.version = VB_CONTROL_VERSION;
	send(sock, &msg, sizeof(msg) - 1, MSG_NOSIGNAL);
	expect_refused(f, sock);
	sock = puppet_dial(block_of(f));
	memcpy(big, &msg, sizeof(msg));
	send(sock, big, sizeof(big), MSG_NOSIGNAL);
	expect_refused(f, sock);
	sock = puppet_dial(block_of(f));
	send(sock, "GET / HTTP/1.0\r\n", 16, MSG_NOSIGNAL);
	expect_refused(f, sock);
	/* Silence, a hang-up, messages before a hello: no contact, no noise. */
	sock = puppet_dial(block_of(f));
	puppet_send(sock, VB_CONTROL_OPEN, (struct vb_control){0}, NULL, 0);
	puppet_send(sock, VB_CONTROL_GRANT, (struct vb_control){0}, NULL, 0);
	end_sleep_ms(20);
	close(sock);
	assert_int_equal(vb_reason_count(VB_REASON_PEER_VERSION), f->versions);
	assert_int_equal(vb_node_page(f->end.node)->header.magic, VB_PAGE_MAGIC);
}

static void expect_rejected(struct fixture *f, struct puppet *p)
{
	struct vb_control msg;
	int sock;

	assert_true(end_await(&f->end.deaths, 1, END_PATIENCE_MS));
	assert_int_equal(vb_reason_count(VB_REASON_PEER_CORRUPT), f->corrupt + 1);
	while (puppet_next(p->sock, &msg, NULL) == 1)
		;
	/* It does not come back under the same name. */
	sock = puppet_dial(block_of(f));
	puppet_hello(sock, p->page->header.nonce, p->page_fd);
	assert_int_equal(puppet_next(sock, &msg, NULL), 1);
	assert_int_equal(puppet_next(sock, &msg, NULL), 0);
	close(sock);
	puppet_drop(p);
}

static void test_impossible_engine(void **state)
{
	struct fixture *f = *state;
	struct puppet p;
	void *map;
	int ring;

	assert_int_equal(vb_shared_create("ring", sizeof(struct vb_ring_half), &map, &ring), 0);
	puppet_make(&f->end, block_of(f), &p);
	puppet_send(p.sock, VB_CONTROL_OPEN,
		    (struct vb_control){.from_engine = VB_MAX_ENGINES, .to_engine = f->engine},
		    &ring, 1);
	expect_rejected(f, &p);
	assert_int_equal(atomic_load(&f->end.ups), 0);
	vb_descriptor_close(ring);
	vb_shared_unmap(map, sizeof(struct vb_ring_half));
}

static void test_unknown_type(void **state)
{
	struct fixture *f = *state;
	struct puppet p;

	puppet_make(&f->end, block_of(f), &p);
	puppet_send(p.sock, (enum vb_control_type)99, (struct vb_control){0}, NULL, 0);
	expect_rejected(f, &p);
}

static void test_open_without_ring(void **state)
{
	struct fixture *f = *state;
	struct puppet p;

	puppet_make(&f->end, block_of(f), &p);
	puppet_send(p.sock, VB_CONTROL_OPEN, (struct vb_control){.to_engine = f->engine}, NULL, 0);
	expect_rejected(f, &p);
	assert_int_equal(atomic_load(&f->end.ups), 0);
}

static void test_accept_with_bad_ring(void **state)
{
	struct fixture *f = *state;
	struct vb_control msg;
	enum vb_contact why;
	struct puppet p;
	int ring, bad = memfd(4096, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE);

	puppet_make(&f->end, block_of(f), &p);
	assert_null(vb_channel_find(f->end.node, f->engine, p.qpn, &why));
	assert_int_equal(why, VB_CONTACT_PENDING);
	assert_int_equal(puppet_next(p.sock, &msg, &ring), 1);
	assert_int_equal(msg.type, VB_CONTROL_OPEN);
	vb_descriptor_close(ring);
	puppet_send(p.sock, VB_CONTROL_ACCEPT, (struct vb_control){.to_id = msg.from_id}, &bad, 1);
	expect_rejected(f, &p);
	assert_int_equal(atomic_load(&f->end.ups), 0);
	close(bad);
}

/*
 * Answers to questions that were not asked change nothing. An engine that does not exist is
 * refused.
 */
static void test_stray_messages(void **state)
{
	struct fixture *f = *state;
	struct vb_control msg;
	struct puppet p;
	int ring;
	void *map;

	puppet_make(&f->end, block_of(f), &p);
	for (uint32_t id = 0; id < 4; id++) {
		puppet_send(p.sock, VB_CONTROL_ACCEPT, (struct vb_control){.to_id = id}, NULL, 0);
		puppet_send(p.sock, VB_CONTROL_REFUSE, (struct vb_control){.to_id = id}, NULL, 0);
		puppet_send(p.sock, VB_CONTROL_DUPLICATE, (struct vb_control){.to_id = id}, NULL,
			    0);
		puppet_send(p.sock, VB_CONTROL_CLOSE, (struct vb_control){.to_id = id}, NULL, 0);
	}
	assert_int_equal(vb_shared_create("ring", sizeof(struct vb_ring_half), &map, &ring), 0);
	puppet_send(p.sock, VB_CONTROL_OPEN, (struct vb_control){.from_id = 9, .to_engine = 77},
		    &ring, 1);
	/* An end that was made for such an answer is to be closed. */
	for (uint32_t id = 0; id < 4; id++) {
		assert_int_equal(puppet_next(p.sock, &msg, NULL), 1);
		assert_int_equal(msg.type, VB_CONTROL_CLOSE);
	}
	assert_int_equal(puppet_next(p.sock, &msg, NULL), 1);
	assert_int_equal(msg.type, VB_CONTROL_REFUSE);
	assert_int_equal(msg.to_id, 9);
	/* And one that exists is not. */
	puppet_send(p.sock, VB_CONTROL_OPEN,
		    (struct vb_control){.from_id = 10, .to_engine = f->engine}, &ring, 1);
	assert_int_equal(puppet_next(p.sock, &msg, NULL), 1);
	assert_int_equal(msg.type, VB_CONTROL_ACCEPT);
	assert_int_equal(msg.to_id, 10);
	assert_int_equal(atomic_load(&f->end.ups), 1);
	assert_int_equal(atomic_load(&f->end.deaths), 0);
	end_close(&f->end, atomic_load(&f->end.up[0]));
	vb_descriptor_close(ring);
	vb_shared_unmap(map, sizeof(struct vb_ring_half));
	puppet_drop(&p);
}

/* Numbers in the page that lead nowhere. */
static void test_impossible_page_contents(void **state)
{
	struct fixture *f = *state;
	enum vb_contact why;
	struct puppet p;

	puppet_make(&f->end, block_of(f), &p);
	p.page->qp[5].engine = UINT32_MAX;
	assert_null(vb_channel_find(f->end.node, f->engine, p.qpn, &why));
	assert_int_equal(why, VB_CONTACT_ABSENT);
	p.page->qp[5].qpn = 5;
	assert_null(vb_channel_find(f->end.node, f->engine, p.qpn, &why));
	assert_int_equal(why, VB_CONTACT_ABSENT);
	p.page->header.num_blocks = UINT32_MAX;
	p.page->header.num_engines = UINT32_MAX;
	assert_null(vb_channel_find(f->end.node, f->engine, p.qpn ^ 0x100000, &why));
	vb_mark_await(f->end.node, 0, 7);
	p.page->header.block[0] = UINT32_MAX;
	/* Its end is noticed although its list of blocks is nonsense. */
	*(uint32_t *)(void *)&p.page->header.alive = 0x40000000;
	close(p.sock);
	assert_true(end_await(&f->end.deaths, 1, END_PATIENCE_MS));
	p.sock = -1;
	puppet_drop(&p);
}

/* The number of descriptors in the grant that comes next after a hello; -1: hung up. */
static int granted(int sock)
{
	struct pollfd p = {.fd = sock, .events = POLLIN};
	int fds[VB_CONTROL_FDS], n = 0, r;
	struct vb_control msg;

	do {
		if (poll(&p, 1, END_PATIENCE_MS) != 1)
			return -2;
		r = vb_control_receive(sock, &msg, NULL, fds, &n);
		for (int i = 0; i < n; i++)
			vb_descriptor_close(fds[i]);
	} while (r == 1 && msg.type != VB_CONTROL_GRANT);
	return r == 1 ? n : -1;
}

/*
 * 1 says that it holds the name of a block and claims that one; 0 that it claims one that is not
 * its own.
 */
static int claims(uint32_t victim, bool own)
{
	uint32_t block;
	int page_fd, l = puppet_listen(&block);
	struct vb_page *page = puppet_page(&page_fd);

	page->header.block[0] = own ? block : (victim ^ 1) & 0x3fff;
	page->header.num_blocks = 1;
	int sock = puppet_dial(victim);

	puppet_hello(sock, page->header.nonce, page_fd);
	if (own) {
		int called = accept4(l, NULL, NULL, SOCK_CLOEXEC);

		puppet_hello(called, page->header.nonce, page_fd);
	}
	return granted(sock);
}

static int as_nobody(int sock, void *arg)
{
	uint32_t block = *(uint32_t *)arg;

	if (setresuid(65534, 65534, 65534))
		return 1;
	tell(sock, (uint64_t)claims(block, false));
	tell(sock, (uint64_t)claims(block, true));
	hear(sock);
	return 0;
}

/*
 * Another user's process speaks when it has shown that a block of its page is its own, and is given
 * no memory; until then its greeting is not answered, and dropped.
 */
static void test_other_user(void **state)
{
	struct fixture *f = *state;
	uint32_t block = block_of(f);
	uint64_t dropped = vb_reason_count(VB_REASON_NO_ANSWER);
	struct child child;

	if (geteuid() != 0) {
		print_message("skipped: another user needs root to be had\n");
		skip();
	}
	child_start(&child, as_nobody, &block);
	assert_int_equal((int)hear(child.sock), -1);
	assert_int_equal(vb_reason_count(VB_REASON_NO_ANSWER), dropped + 1);
	assert_int_equal((int)hear(child.sock), 0);
	tell(child.sock, 0);
	child_join(&child);
}

/* A process that answers to a name and does not speak the protocol. */
static void test_false_owner(void **state)
{
	struct fixture *f = *state;
	enum vb_contact why;
	uint32_t block;
	int l = puppet_listen(&block);

	assert_null(end_find(&f->end, f->engine, block << VB_QPN_BLOCK_BITS, 200, &why));
	assert_int_equal(why, VB_CONTACT_PENDING);
	int sock = accept4(l, NULL, NULL, SOCK_CLOEXEC);

	send(sock, "hello", 5, MSG_NOSIGNAL);
	assert_null(
		end_find(&f->end, f->engine, block << VB_QPN_BLOCK_BITS, END_PATIENCE_MS, &why));
	assert_int_equal(why, VB_CONTACT_REFUSED);
	close(sock);
	close(l);
}

/*
 * The next OPEN on this socket, after any other messages. It is asked for again and again, as a
 * queue pair does that waits for a channel.
 */
static void expect_open(struct fixture *f, const struct puppet *p)
{
	struct vb_control msg = {0};
	enum vb_contact why;

	for (int i = 0; i < END_PATIENCE_MS / 20 && msg.type != VB_CONTROL_OPEN; i++) {
		struct pollfd ready = {.fd = p->sock, .events = POLLIN};

		assert_null(vb_channel_find(f->end.node, f->engine, p->qpn, &why));
		if (poll(&ready, 1, 20) == 1)
			assert_int_equal(puppet_next(p->sock, &msg, NULL), 1);
	}
	assert_int_equal(msg.type, VB_CONTROL_OPEN);
}

/*
 * It ends a connection, as an owner does whose greeting takes too long, while a question is on its
 * way, and comes by another.
 */
static void test_lost_question(void **state)
{
	struct fixture *f = *state;
	struct puppet p;
	int changes;

	puppet_make(&f->end, block_of(f), &p);
	expect_open(f, &p);
	changes = atomic_load(&f->end.changes);
	close(p.sock);
	assert_true(end_await(&f->end.changes, changes + 1, END_PATIENCE_MS));
	p.sock = puppet_call(block_of(f), &p);
	puppet_grant(&f->end, p.sock);
	expect_open(f, &p);
	puppet_drop(&p);
}

/*
 * Of two connections a request is sent on the one whose greeting is over: the other one may never
 * be read.
 */
static void test_two_connections(void **state)
{
	struct fixture *f = *state;
	struct puppet p;
	int other;

	puppet_make(&f->end, block_of(f), &p);
	other = puppet_call(block_of(f), &p);
	expect_open(f, &p);
	close(other);
	puppet_drop(&p);
}

/*
 * Two processes have called each other. The one with the larger number leaves its call; a question
 * for memory that was on its way there is answered on the call that stays, because what follows a
 * LAST may be read by nobody.
 */
static void test_answer_on_the_call_that_stays(void **state)
{
	struct fixture *f = *state;
	enum vb_contact why;
	struct puppet p;
	uint32_t block;
	int l = puppet_listen(&block);

	p.page = puppet_page(&p.page_fd);
	p.page->header.nonce = vb_random32() | 1; /* smaller than any other */
	p.page->header.block[0] = block;
	p.page->header.num_blocks = 1;
	p.qpn = block << VB_QPN_BLOCK_BITS | 5;
	p.page->qp[5].qpn = p.qpn;
	assert_null(end_find(&f->end, f->engine, p.qpn, 200, &why));
	int called = accept4(l, NULL, NULL, SOCK_CLOEXEC);

	puppet_expect(called, VB_CONTROL_HELLO);
	puppet_hello(called, p.page->header.nonce, p.page_fd);
	puppet_expect(called, VB_CONTROL_GRANT);
	puppet_grant_send(called);
	p.sock = puppet_call(block_of(f), &p);
	puppet_grant_send(p.sock);
	puppet_expect(called, VB_CONTROL_LAST);
	puppet_send(called, VB_CONTROL_ASK, (struct vb_control){.nonce = 7}, NULL, 0);
	puppet_expect(p.sock, VB_CONTROL_PROVE);
	close(called);
	close(l);
	puppet_drop(&p);
}

/* A process that has been greeted and may speak. */
struct asker {
	struct vb_page *page;
	int page_fd;
	int sock;
};

static void asker_make(struct fixture *f, struct asker *a)
{
	struct vb_control msg;

	a->page = puppet_page(&a->page_fd);
	a->sock = puppet_dial(block_of(f));
	puppet_hello(a->sock, a->page->header.nonce, a->page_fd);
	assert_int_equal(puppet_next(a->sock, &msg, NULL), 1);
	assert_int_equal(puppet_next(a->sock, &msg, NULL), 1);
	assert_int_equal(msg.type, VB_CONTROL_GRANT);
}

static void asker_drop(struct asker *a)
{
	close(a->sock);
	vb_descriptor_close(a->page_fd);
	vb_shared_unmap(a->page, sizeof(*a->page));
}

static void ask(const struct asker *a, uint64_t nonce)
{
	puppet_send(a->sock, VB_CONTROL_ASK, (struct vb_control){.nonce = nonce}, NULL, 0);
}

/* What lies at the place that the answer names. The node is in this process. */
static struct vb_proof proof_shown(const struct asker *a)
{
	struct vb_control msg = puppet_expect(a->sock, VB_CONTROL_PROVE);
	int mem = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
	struct vb_proof proof;

	assert_int_equal(pread(mem, &proof, sizeof(proof), (off_t)msg.nonce_address),
			 sizeof(proof));
	close(mem);
	return proof;
}

static void prove(const struct asker *a, uint64_t token)
{
	puppet_send(a->sock, VB_CONTROL_PROOF, (struct vb_control){.nonce = token}, NULL, 0);
}

/* What the answer gives; the descriptors that came with it are as many. */
static uint32_t parts_given(const struct asker *a)
{
	struct pollfd p = {.fd = a->sock, .events = POLLIN};
	int fds[VB_CONTROL_FDS], n = 0;
	struct vb_control msg;

	assert_int_equal(poll(&p, 1, END_PATIENCE_MS), 1);
	assert_int_equal(vb_control_receive(a->sock, &msg, NULL, fds, &n), 1);
	assert_int_equal(msg.type, VB_CONTROL_GIVE);
	assert_int_equal(n, __builtin_popcount(msg.parts));
	assert_true(n || msg.text[0]);
	for (int i = 0; i < n; i++)
		vb_descriptor_close(fds[i]);
	return msg.parts;
}

static int ask_for_another(int sock, void *arg)
{
	ask(arg, 1);
	hear(sock);
	return 0;
}

enum { TOO_SOON_MS = 100 }; /* a process that asks again before is not heard */

/* A socket in other hands than its maker's opens nothing; in its maker's it does. */
static void test_ask_for_another(void **state)
{
	struct fixture *f = *state;
	uint64_t refused = vb_reason_count(VB_REASON_NO_TRUST);
	struct child child;
	struct asker a;

	asker_make(f, &a);
	puppet_grant(&f->end, a.sock);
	child_start(&child, ask_for_another, &a);
	assert_int_equal(parts_given(&a), 0);
	assert_int_equal(vb_reason_count(VB_REASON_NO_TRUST), refused + 1);
	tell(child.sock, 0);
	child_join(&child);
	end_sleep_ms(TOO_SOON_MS);
	ask(&a, 1);
	prove(&a, proof_shown(&a).token);
	assert_int_equal(parts_given(&a), VB_CONTROL_LOCK | VB_CONTROL_ARENA | VB_CONTROL_KEYS);
	asker_drop(&a);
}

/* A token is for the question, for one answer, and for nobody who has not read it. */
static void test_false_proofs(void **state)
{
	struct fixture *f = *state;
	struct vb_proof first, second;
	struct asker a;

	asker_make(f, &a);
	puppet_grant(&f->end, a.sock);
	prove(&a, 0);
	assert_int_equal(parts_given(&a), 0);
	ask(&a, 11);
	first = proof_shown(&a);
	assert_int_equal(first.asked, 11);
	assert_int_not_equal(first.token, 0);
	prove(&a, first.token + 1);
	assert_int_equal(parts_given(&a), 0);
	prove(&a, first.token);
	assert_int_equal(parts_given(&a), 0);
	end_sleep_ms(TOO_SOON_MS);
	ask(&a, 12);
	second = proof_shown(&a);
	assert_int_equal(second.asked, 12);
	assert_int_not_equal(second.token, first.token);
	prove(&a, first.token);
	assert_int_equal(parts_given(&a), 0);
	asker_drop(&a);
}

/* A process that has not granted this one leave to speak is not spoken to. */
static void test_ask_without_grant(void **state)
{
	struct fixture *f = *state;
	struct asker a;

	asker_make(f, &a);
	ask(&a, 1);
	puppet_grant(&f->end, a.sock);
	assert_int_equal(vb_reason_count(VB_REASON_PEER_CORRUPT), f->corrupt + 1);
	ask(&a, 2);
	assert_int_equal(proof_shown(&a).asked, 2);
	asker_drop(&a);
}

/* The node's question for the puppet's memory. */
static uint64_t question(struct fixture *f, struct puppet *p)
{
	enum vb_contact why;

	puppet_make(&f->end, block_of(f), p);
	assert_null(end_find(&f->end, f->engine, p->qpn, 20, &why));
	struct vb_control msg = puppet_expect(p->sock, VB_CONTROL_ASK);

	assert_false(msg.parts & VB_CONTROL_SHUT);
	assert_int_not_equal(msg.nonce, 0);
	return msg.nonce;
}

static void place_show(const struct puppet *p, const void *place)
{
	puppet_send(p->sock, VB_CONTROL_PROVE,
		    (struct vb_control){.nonce_address = (uintptr_t)place}, NULL, 0);
}

/*
 * A peer cannot have this process, which may have more rights, read for it in another program: what
 * is read is told only where it lies behind the number of the question. In its maker's place it is.
 */
static void test_read_for_another(void **state)
{
	struct fixture *f = *state;
	struct vb_proof secret = {1, 4711}, proof;
	struct puppet p;

	proof.asked = question(f, &p);
	proof.token = 4712;
	place_show(&p, &secret);
	assert_int_equal(puppet_expect(p.sock, VB_CONTROL_PROOF).nonce, 0);
	place_show(&p, NULL);
	proof.asked = puppet_expect(p.sock, VB_CONTROL_ASK).nonce;
	place_show(&p, &proof);
	assert_int_equal(puppet_expect(p.sock, VB_CONTROL_PROOF).nonce, 4712);
	puppet_drop(&p);
}

static int speak_for_another(int sock, void *arg)
{
	struct puppet *p = arg;

	place_show(p, (const void *)(uintptr_t)hear(sock));
	tell(sock, 1);
	hear(sock);
	return 0;
}

/* The number of the process that made the connection may be another program's by now. */
static void test_answer_of_another(void **state)
{
	struct fixture *f = *state;
	struct vb_proof proof = {.token = 4713};
	struct vb_control msg;
	struct child child;
	struct puppet p;

	proof.asked = question(f, &p);
	child_start(&child, speak_for_another, &p);
	tell(child.sock, (uintptr_t)&proof);
	hear(child.sock);
	do { /* it asks again when the answer is not heard */
		assert_int_equal(puppet_next(p.sock, &msg, NULL), 1);
		assert_int_not_equal(msg.type, VB_CONTROL_PROOF);
	} while (msg.type != VB_CONTROL_ASK);
	tell(child.sock, 0);
	child_join(&child);
	puppet_drop(&p);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_good_page),
		TEST(test_bad_pages),
		TEST(test_reflected_page),
		TEST(test_bad_objects),
		TEST(test_bad_messages),
		TEST(test_impossible_engine),
		TEST(test_unknown_type),
		TEST(test_open_without_ring),
		TEST(test_accept_with_bad_ring),
		TEST(test_stray_messages),
		TEST(test_lost_question),
		TEST(test_two_connections),
		TEST(test_answer_on_the_call_that_stays),
		TEST(test_impossible_page_contents),
		TEST(test_other_user),
		TEST(test_false_owner),
		TEST(test_ask_for_another),
		TEST(test_false_proofs),
		TEST(test_ask_without_grant),
		TEST(test_read_for_another),
		TEST(test_answer_of_another),
	};

	return cmocka_run_group_tests_name("host/hostile", tests, NULL, NULL);
}
