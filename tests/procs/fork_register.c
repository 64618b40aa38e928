/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Promise: a parent that has registered memory (of huge pages, too) forks, spawns and calls
 * system(3) while RDMA arrives and both sides write: it loses nothing and sees nothing of its
 * children's writes, nor do they of its. ibv_fork_init(3) succeeds at any time, with the
 * environment variables of the page set or not, and says that it is not needed.
 *
 * Every page has a part that the peer writes by RDMA, a part that the parent writes and the peer
 * reads by RDMA, and all children write all of it.
 *
 * usage: fork_register ROUNDS [environment] [huge]
 */
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/check.h"
#include "support/clock.h"
#include "support/endpoint.h"
#include "support/process.h"

enum { PART = 1024, STRIDE = 4096, CHILDREN = 3, JUNK = 0xee };
enum { PEERS = 0, PARENTS = PART }; /* where the parts begin in each page */
enum kind { STAY, LEAVE, SYSTEM, SPAWN, EXECUTE, KINDS };

extern char **environ;

static size_t length;
static bool huge, environment;
static int rounds;

static unsigned char byte_of(int round)
{
	return (unsigned char)(1 + round % 200);
}

static void fill(unsigned char *buffer, size_t part, int byte)
{
	for (size_t at = 0; at < length; at += STRIDE)
		memset(buffer + at + part, byte, PART);
}

static void expect_all(const unsigned char *buffer, size_t part, int byte, const char *whose)
{
	for (size_t at = 0; at < length; at += STRIDE) {
		for (size_t i = 0; i < PART; i++)
			CHECK_SAY(buffer[at + part + i] == byte, "%s: byte %zu is 0x%x, not 0x%x",
				  whose, at + part + i, buffer[at + part + i], byte);
	}
}

/*
 * The copy of the child is its own: junk it was filled with, junk it stays, whatever arrives
 * meanwhile.
 */
_Noreturn static void child_main(unsigned char *buffer, int go_fd, enum kind kind)
{
	char byte;

	watchdog(60);
	memset(buffer, JUNK, length);
	if (kind == LEAVE)
		_exit(0);
	if (read(go_fd, &byte, 1) < 0) /* until the parent closes its end */
		_exit(2);
	for (size_t i = 0; i < length; i++) {
		if (buffer[i] != JUNK)
			_exit(3);
	}
	_exit(0);
}

static void expect_success(pid_t pid)
{
	struct process child = {.pid = pid, .sock = -1};

	process_adopt(pid);
	process_expect_success(&child, PROCESS_PATIENCE_MS);
}

static void start_child(unsigned char *buffer, int number, const int go[2], pid_t *pid)
{
	static char *const argv[] = {"true", NULL};
	enum kind kind = (enum kind)(number % KINDS);

	*pid = 0;
	switch (kind) {
	case SYSTEM:
		CHECK_ZERO(system("true"));
		return;
	case SPAWN:
		CHECK_ZERO(posix_spawnp(pid, "true", NULL, NULL, argv, environ));
		return;
	default:
		fflush(NULL);
		*pid = fork();
		CHECK(*pid >= 0);
		if (*pid)
			return;
		close(go[1]);
		if (kind != EXECUTE)
			child_main(buffer, go[0], kind);
		memset(buffer, JUNK, length);
		execlp("true", "true", (char *)NULL);
		_exit(1);
	}
}

/* Children before, while and after the peer writes and reads. */
static void parent_round(struct endpoint *ep, int sock, int round)
{
	pid_t pid[CHILDREN + 1];
	int go[2], done = 0;

	CHECK_ZERO(pipe(go));
	fill(ep->buffer, PARENTS, byte_of(round));
	start_child(ep->buffer, round, go, &pid[0]);
	message_send(sock, &round, sizeof(round));
	for (int i = 1; i < CHILDREN; i++) {
		start_child(ep->buffer, round + i, go, &pid[i]);
		fill(ep->buffer, PARENTS,
		     byte_of(round)); /* the same again, into pages just shared */
	}
	message_receive(sock, &done, sizeof(done));
	CHECK_EQ(done, round);
	start_child(ep->buffer, round + CHILDREN, go, &pid[CHILDREN]);
	expect_all(ep->buffer, PEERS, byte_of(round), "what the peer wrote");
	expect_all(ep->buffer, PARENTS, byte_of(round), "what the parent wrote");
	close(go[1]);
	for (int i = 0; i <= CHILDREN; i++) {
		if (pid[i])
			expect_success(pid[i]);
	}
	close(go[0]);
}

static unsigned char *registered_memory(void)
{
	unsigned char *p = mmap(NULL, length, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS | (huge ? MAP_HUGETLB : 0), -1, 0);

	CHECK(p != MAP_FAILED);
	return p;
}

static int parent(int sock, void *unused)
{
	struct resources resources;
	struct endpoint ep;

	(void)unused;
	if (environment) {
		CHECK_ZERO(setenv("RDMAV_FORK_SAFE", "1", 1));
		CHECK_ZERO(setenv("IBV_FORK_SAFE", "1", 1));
		CHECK_ZERO(setenv("RDMAV_HUGEPAGES_SAFE", "1", 1));
	}
	promise("fork support is there and not needed");
	CHECK_EQ(ibv_is_fork_initialized(), IBV_FORK_UNNEEDED);
	resources_open(&resources, 64, false);
	ep_open_on(&ep, &resources, NULL, registered_memory(), length);
	CHECK_ZERO(ibv_fork_init()); /* late: memory is registered */
	CHECK_EQ(ibv_is_fork_initialized(), IBV_FORK_UNNEEDED);
	promise("registered memory is the parent's, whatever its children do");
	ep_exchange(&ep, sock);
	for (int round = 0; round < rounds; round++)
		parent_round(&ep, sock, round);
	CHECK_ZERO(ibv_fork_init());
	message_meet(sock);
	ep_close(&ep);
	resources_close(&resources);
	return 0;
}

static void drain(struct resources *resources, int *posted)
{
	struct ibv_wc wc;

	for (; *posted; --*posted) {
		completion_next(resources->cq, &wc);
		CHECK_EQ(wc.status, IBV_WC_SUCCESS);
	}
}

/* Writes its part of every page and reads the parent's. */
static void peer_round(struct endpoint *ep, int round)
{
	int posted = 0;

	fill(ep->buffer, PEERS, byte_of(round));
	fill(ep->buffer, PARENTS, 0);
	for (size_t at = 0; at < length; at += STRIDE) {
		CHECK_ZERO(ep_write(ep, 1, at + PEERS, PART, at + PEERS, IBV_SEND_SIGNALED));
		CHECK_ZERO(ep_read(ep, 2, at + PARENTS, PART, at + PARENTS, IBV_SEND_SIGNALED));
		posted += 2;
		if (posted == 32)
			drain(ep->resources, &posted);
	}
	drain(ep->resources, &posted);
	expect_all(ep->buffer, PARENTS, byte_of(round), "what the peer read");
}

static int peer(int sock, void *unused)
{
	struct resources resources;
	struct endpoint ep;
	int round;

	(void)unused;
	promise("the peer reads what the parent wrote, nothing of its children's");
	resources_open(&resources, 64, false);
	ep_open_on(&ep, &resources, NULL, NULL, length);
	ep_exchange(&ep, sock);
	do {
		message_receive(sock, &round, sizeof(round));
		peer_round(&ep, round);
		message_send(sock, &round, sizeof(round));
	} while (round + 1 < rounds);
	message_meet(sock);
	ep_close(&ep);
	resources_close(&resources);
	return 0;
}

/* Pages that are shared with children are copied when they are written, from the same pool. */
static void need_huge_pages(void)
{
	size_t pool = (2 + 2 * CHILDREN) * length;
	void *p = mmap(NULL, pool, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);

	if (p == MAP_FAILED)
		SKIP("no %zu huge pages are free (vm.nr_hugepages)", pool >> 21);
	munmap(p, pool);
}

int main(int argc, char **argv)
{
	struct process a, b;

	rounds = argc > 1 ? atoi(argv[1]) : 20;
	for (int i = 2; i < argc; i++) {
		huge |= strcmp(argv[i], "huge") == 0;
		environment |= strcmp(argv[i], "environment") == 0;
	}
	length = huge ? (size_t)2 << 20 : (size_t)64 * STRIDE;
	if (huge)
		need_huge_pages();
	watchdog(100);
	process_start_pair(&a, parent, &b, peer, NULL);
	process_expect_success(&a, 90000);
	process_expect_success(&b, PROCESS_PATIENCE_MS);
	return 0;
}
