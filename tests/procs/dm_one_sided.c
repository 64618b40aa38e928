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

static void open_here(struct resources *resources)
{
	resources_open(resources, 64, false);
	if (!netns)
		return;
	resources_use_gid(resources, gid_index);
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
	struct resources resources;
	struct regions regions;
	struct ibv_mr *mr[KINDS];
	struct ibv_buf *buf;
	struct ibv_dm *dm;
	struct endpoint ep;
	unsigned char *memory;

	(void)unused;
	promise("the target finds everything after it went on");
	if (hidden) {
		process_drop_root();
		memory_hide();
	}
	if (netns)
		leave_host();
	open_here(&resources);
	ep_open_on(&ep, &resources, NULL, NULL, 4096);
	dm = ibv_alloc_dm(resources.context, &attr);
	memory = ibv_alloc_buf(resources.pd, SIZE, &buf);
	CHECK(dm && memory);
	target_fill(memory);
	CHECK_ZERO(ibv_memcpy_to_dm(dm, 0, memory, SIZE));
	mr[0] = ibv_reg_dm_mr(resources.pd, dm, 0, SIZE, EP_ACCESS | IBV_ACCESS_ZERO_BASED);
	/* The memory decides, not the form of its registration. */
	mr[1] = ibv_reg_mr(resources.pd, memory, SIZE, EP_ACCESS);
	CHECK(mr[0] && mr[1]);
	regions = (struct regions){.addr = {0, (uintptr_t)memory},
				   .rkey = {mr[0]->rkey, mr[1]->rkey}};
	message_send(sock, &regions, sizeof(regions));
	ep_exchange(&ep, sock);
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
	ep_close(&ep);
	resources_close(&resources);
	return 0;
}

static uint64_t word_at(const unsigned char *at)
{
	uint64_t value;

	memcpy(&value, at, sizeof(value));
	return value;
}

static void one_sided_work(struct endpoint *ep)
{
	struct ibv_cq *cq = ep->resources->cq;
	size_t i;

	memset(ep->buffer + WRITE_AT, 0x61, LARGE);
	CHECK_ZERO(ep_write(ep, 1, WRITE_AT, LARGE, WRITE_AT, IBV_SEND_SIGNALED));
	completion_expect(cq, 1, IBV_WC_SUCCESS, NULL);
	memset(ep->buffer + WRITE_AT, 0x63, 8);
	CHECK_ZERO(ep_write(ep, 2, WRITE_AT, 8, WRITE_AT + LARGE - 8, IBV_SEND_SIGNALED));
	completion_expect(cq, 2, IBV_WC_SUCCESS, NULL);
	CHECK_ZERO(ep_read(ep, 3, READ_AT, LARGE / 2, READ_AT, IBV_SEND_SIGNALED));
	completion_expect(cq, 3, IBV_WC_SUCCESS, NULL);
	for (i = 0; i < LARGE / 2; i++)
		CHECK_EQ(ep->buffer[READ_AT + i], 0x62);
	CHECK_ZERO(ep_fetch_add(ep, 4, COUNTER_AT, COUNTER_AT, ADDED, IBV_SEND_SIGNALED));
	completion_expect(cq, 4, IBV_WC_SUCCESS, NULL);
	CHECK_EQ(word_at(ep->buffer + COUNTER_AT), COUNTER);
	CHECK_ZERO(ep_compare_swap(ep, 5, COUNTER_AT, COUNTER_AT, COUNTER + ADDED, SWAPPED,
				   IBV_SEND_SIGNALED));
	completion_expect(cq, 5, IBV_WC_SUCCESS, NULL);
	CHECK_EQ(word_at(ep->buffer + COUNTER_AT), COUNTER + ADDED);
	/* A comparison that fails changes nothing and still answers. */
	CHECK_ZERO(ep_compare_swap(ep, 6, COUNTER_AT, COUNTER_AT, 1, 2, IBV_SEND_SIGNALED));
	completion_expect(cq, 6, IBV_WC_SUCCESS, NULL);
	CHECK_EQ(word_at(ep->buffer + COUNTER_AT), SWAPPED);
}

int main(int argc, char **argv)
{
	struct resources resources;
	struct process process;
	struct regions regions;
	struct endpoint ep;
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
	open_here(&resources);
	ep_open_on(&ep, &resources, NULL, NULL, SIZE);
	message_receive(process.sock, &regions, sizeof(regions));
	ep_exchange(&ep, process.sock);
	if (hidden || netns)
		sleep_ms(CONTACT_MS); /* they share no memory */
	else
		process_await_memory(&process);
	message_meet(process.sock);
	if (!netns)
		process_stop(&process);

	promise("WRITE, READ and ATOMIC on memory that is mapped finish while its owner is stopped");
	for (kind = 0; kind < KINDS; kind++) {
		ep.remote.addr = regions.addr[kind];
		ep.remote.rkey = regions.rkey[kind];
		one_sided_work(&ep);
	}
	if (!netns)
		process_continue(&process);
	message_meet(process.sock);
	ep_close(&ep);
	resources_close(&resources);
	process_expect_success(&process, PROCESS_PATIENCE_MS);
	return 0;
}
