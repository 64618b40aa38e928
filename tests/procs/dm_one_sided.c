/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Promise: peers of the same host map device memory and buffers of ibv_alloc_buf. While the target
 * process is stopped (SIGSTOP) WRITE, READ and both ATOMICs on them finish, also when the target's
 * other memory cannot be reached (it cannot open it), which shows that it is the mapping that is
 * used. The bytes are there when it goes on.
 *
 * usage: dm_one_sided [hidden | GID_INDEX NETNS]
 *   hidden  a filter refuses the target to open its memory: no descriptor of it can be had
 *   NETNS   (a path like /proc/PID/ns/net) the target is on another host: nobody is stopped, the
 *           operations are the same
 */
#include "support/check.h"
#include "support/clock.h"
#include "support/endpoint.h"
#include "support/process.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
	SIZE = 1024 * 1024,
	LARGE = 512 * 1024,
	COUNTER_AT = 0,
	READ_AT = 4096,
	WRITE_AT = SIZE / 2
};
enum { COUNTER = 1000, ADDED = 7, SWAPPED = 5555, CONTACT_MS = 200, KINDS = 2 };

static bool hidden;
static const char *netns; /* NULL: one host */
static int gid_index;

/* What the target tells of its two regions. */
struct regions {
	uint64_t addr[KINDS];
	uint32_t rkey[KINDS];
};

/* From here on no file can be opened for reading and writing. */
static void memory_hide(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, O_RDWR, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {.len = sizeof(filter) / sizeof(filter[0]), .filter = filter};

	CHECK_ZERO(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	CHECK_ZERO(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0));
	CHECK(open("/proc/self/mem", O_RDWR | O_CLOEXEC) < 0);
}

static void leave_host(void)
{
	int fd = open(netns, O_RDONLY | O_CLOEXEC);

	CHECK_SAY(fd >= 0 && setns(fd, CLONE_NEWNET) == 0, "%s: errno %d", netns, errno);
	close(fd);
}

static void open_here(struct endpoint *endpoint)
{
	endpoint_open(endpoint, 64, false);
	if (!netns)
		return;
	endpoint->gid_index = gid_index;
	CHECK_ZERO(ibv_query_gid(endpoint->context, ENDPOINT_PORT, gid_index, &endpoint->gid));
}

static void target_fill(unsigned char *memory)
{
	uint64_t counter = COUNTER;

	memset(memory, 0, SIZE);
	memset(memory + READ_AT, 0x62, LARGE / 2);
	memcpy(memory + COUNTER_AT, &counter, sizeof(counter));
}

static void target_check(const unsigned char *memory)
{
	uint64_t counter;
	size_t i;

	memcpy(&counter, memory + COUNTER_AT, sizeof(counter));
	CHECK_EQ(counter, SWAPPED);
	for (i = 0; i < LARGE - 8; i++)
		CHECK_SAY(memory[WRITE_AT + i] == 0x61, "byte %zu is %#x", i, memory[WRITE_AT + i]);
	CHECK_EQ(memory[WRITE_AT + LARGE - 1], 0x63);
}

static int target(int sock, void *unused)
{
	static unsigned char copy[SIZE];
	struct ibv_alloc_dm_attr attr = {.length = SIZE};
	struct endpoint endpoint;
	struct regions regions;
	struct ibv_mr *mr[KINDS];
	struct ibv_buf *buf;
	struct ibv_dm *dm;
	struct side side;
	unsigned char *memory;

	(void)unused;
	promise("the target finds everything after it went on");
	if (hidden) {
		process_drop_root();
		memory_hide();
	}
	if (netns)
		leave_host();
	open_here(&endpoint);
	side_open(&side, &endpoint, NULL, NULL, 4096);
	dm = ibv_alloc_dm(endpoint.context, &attr);
	memory = ibv_alloc_buf(endpoint.pd, SIZE, &buf);
	CHECK(dm && memory);
	target_fill(memory);
	CHECK_ZERO(ibv_memcpy_to_dm(dm, 0, memory, SIZE));
	mr[0] = ibv_reg_dm_mr(endpoint.pd, dm, 0, SIZE,
			      ENDPOINT_ALL_ACCESS | IBV_ACCESS_ZERO_BASED);
	/* The memory decides, not the form of its registration. */
	mr[1] = ibv_reg_mr(endpoint.pd, memory, SIZE, ENDPOINT_ALL_ACCESS);
	CHECK(mr[0] && mr[1]);
	regions = (struct regions){.addr = {0, (uintptr_t)memory},
				   .rkey = {mr[0]->rkey, mr[1]->rkey}};
	message_send(sock, &regions, sizeof(regions));
	side_exchange(&side, sock);
	message_meet(sock);
	/* Stopped somewhere from here on. */
	message_meet(sock);
	CHECK_ZERO(ibv_memcpy_from_dm(copy, dm, 0, SIZE));
	target_check(copy);
	target_check(memory);
	CHECK_ZERO(ibv_dereg_mr(mr[0]));
	CHECK_ZERO(ibv_dereg_mr(mr[1]));
	CHECK_ZERO(ibv_free_dm(dm));
	ibv_free_buf(buf);
	side_close(&side);
	endpoint_close(&endpoint);
	return 0;
}

static uint64_t word_at(const unsigned char *at)
{
	uint64_t value;

	memcpy(&value, at, sizeof(value));
	return value;
}

static void one_sided_work(struct side *side)
{
	struct ibv_cq *cq = side->endpoint->cq;
	size_t i;

	memset(side->buffer + WRITE_AT, 0x61, LARGE);
	CHECK_ZERO(post_write(side, 1, WRITE_AT, LARGE, WRITE_AT, IBV_SEND_SIGNALED));
	completion_expect(cq, 1, IBV_WC_SUCCESS, NULL);
	memset(side->buffer + WRITE_AT, 0x63, 8);
	CHECK_ZERO(post_write(side, 2, WRITE_AT, 8, WRITE_AT + LARGE - 8, IBV_SEND_SIGNALED));
	completion_expect(cq, 2, IBV_WC_SUCCESS, NULL);
	CHECK_ZERO(post_read(side, 3, READ_AT, LARGE / 2, READ_AT, IBV_SEND_SIGNALED));
	completion_expect(cq, 3, IBV_WC_SUCCESS, NULL);
	for (i = 0; i < LARGE / 2; i++)
		CHECK_EQ(side->buffer[READ_AT + i], 0x62);
	CHECK_ZERO(post_fetch_add(side, 4, COUNTER_AT, COUNTER_AT, ADDED, IBV_SEND_SIGNALED));
	completion_expect(cq, 4, IBV_WC_SUCCESS, NULL);
	CHECK_EQ(word_at(side->buffer + COUNTER_AT), COUNTER);
	CHECK_ZERO(post_compare_swap(side, 5, COUNTER_AT, COUNTER_AT, COUNTER + ADDED, SWAPPED,
				     IBV_SEND_SIGNALED));
	completion_expect(cq, 5, IBV_WC_SUCCESS, NULL);
	CHECK_EQ(word_at(side->buffer + COUNTER_AT), COUNTER + ADDED);
	/* A comparison that fails changes nothing and still answers. */
	CHECK_ZERO(post_compare_swap(side, 6, COUNTER_AT, COUNTER_AT, 1, 2, IBV_SEND_SIGNALED));
	completion_expect(cq, 6, IBV_WC_SUCCESS, NULL);
	CHECK_EQ(word_at(side->buffer + COUNTER_AT), SWAPPED);
}

int main(int argc, char **argv)
{
	struct endpoint endpoint;
	struct process process;
	struct regions regions;
	struct side side;
	int kind;

	hidden = argc == 2 && strcmp(argv[1], "hidden") == 0;
	if (argc == 3) {
		gid_index = atoi(argv[1]);
		netns = argv[2];
	}
	watchdog(60);
	process_start(&process, target, NULL);
	/* The target has this user's id; otherwise the two share no memory. */
	if (hidden)
		process_drop_root();
	promise("the two processes find each other");
	open_here(&endpoint);
	side_open(&side, &endpoint, NULL, NULL, SIZE);
	message_receive(process.sock, &regions, sizeof(regions));
	side_exchange(&side, process.sock);
	sleep_ms(CONTACT_MS);
	message_meet(process.sock);
	if (!netns)
		process_stop(&process);

	promise("WRITE, READ and ATOMIC on memory that is mapped finish while its owner is stopped");
	for (kind = 0; kind < KINDS; kind++) {
		side.remote.addr = regions.addr[kind];
		side.remote.rkey = regions.rkey[kind];
		one_sided_work(&side);
	}
	if (!netns)
		process_continue(&process);
	message_meet(process.sock);
	side_close(&side);
	endpoint_close(&endpoint);
	process_expect_success(&process, PROCESS_PATIENCE_MS);
	return 0;
}
