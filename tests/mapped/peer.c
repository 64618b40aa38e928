/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Promise: with libverbatim-mapped.so preloaded, what a program allocates by malloc(3),
 * aligned_alloc(3) or mmap(2) and registers is reached by its peers without a system call, although
 * the target is stopped: the initiator may make none of those that reach another process's memory
 * (seccomp(2)). Memory that is forgotten (MADV_DONTNEED) after its registration is still the
 * program's and its peers'. A region on something that the program has mapped into a block is
 * refused. The library's own state is in no block.
 */
#include "support/check.h"
#include "support/clock.h"
#include "support/endpoint.h"
#include "support/filter.h"
#include "support/process.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "host/mapped.h"

enum { SIZE = 1024 * 1024, KINDS = 3, CONTACT_MS = 300, QUEUES = 20 };

static const char *const kind_names[KINDS] = {"malloc", "aligned_alloc", "mmap"};

static void *memory(int kind)
{
	void *at;

	switch (kind) {
	case 0:
		at = malloc(SIZE);
		break;
	case 1:
		at = aligned_alloc(4096, SIZE);
		break;
	default:
		at = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		break;
	}
	CHECK(at && at != MAP_FAILED);
	return at;
}

static void endpoints_open(struct endpoint ep[KINDS], struct resources *resources, int sock)
{
	resources_open(resources, 256, false);
	for (int i = 0; i < KINDS; i++) {
		ep_open_on(&ep[i], resources, NULL, memory(i), SIZE);
		memset(ep[i].buffer, 0, SIZE);
		ep_exchange(&ep[i], sock);
	}
}

static void need_mapped(struct vb_mapped *mapped)
{
	if (!verbatim_mapped_range || !verbatim_mapped_range(mapped))
		SKIP("libverbatim-mapped.so is not preloaded, or a limit leaves memory ordinary");
}

static int target(int sock, void *unused)
{
	struct endpoint ep[KINDS];
	struct resources resources;
	struct vb_mapped mapped;

	(void)unused;
	need_mapped(&mapped);
	promise("the target has what was written");
	endpoints_open(ep, &resources, sock);
	for (int i = 0; i < KINDS; i++)
		memset(ep[i].buffer, 0x40 + i, SIZE / 4);
	message_meet(sock);
	/* Stopped, and continued. */
	message_meet(sock);
	for (int i = 0; i < KINDS; i++) {
		CHECK_EQ(ep[i].buffer[SIZE / 2], 0x50 + i);
		CHECK_EQ(ep[i].buffer[SIZE - 1], 0x50 + i);
		CHECK_ZERO(madvise(ep[i].buffer, SIZE, MADV_DONTNEED));
		CHECK_EQ(ep[i].buffer[SIZE - 1], 0);
	}
	message_meet(sock);
	message_meet(sock);
	for (int i = 0; i < KINDS; i++)
		CHECK_EQ(ep[i].buffer[100], 0x60 + i);
	for (int i = 0; i < KINDS; i++)
		ep_close(&ep[i]);
	resources_close(&resources);
	return 0;
}

/* From here on the kernel reaches no other memory for this thread. */
static void filter_set(void)
{
	static const uint32_t calls[] = {SYS_process_vm_readv, SYS_process_vm_writev,
					 SYS_pread64,          SYS_pwrite64,
					 SYS_preadv,           SYS_pwritev};

	CHECK(filter_calls(calls, sizeof(calls) / sizeof(calls[0]), SECCOMP_RET_ERRNO | EPERM));
}

static void use(struct endpoint *ep, int kind)
{
	struct ibv_cq *cq = ep->resources->cq;
	uint64_t old;

	memset(ep->buffer, 0x50 + kind, SIZE);
	CHECK_ZERO(ep_write(ep, 1, SIZE / 2, SIZE / 2, SIZE / 2, IBV_SEND_SIGNALED));
	completion_expect(cq, 1, IBV_WC_SUCCESS, NULL);
	CHECK_ZERO(ep_read(ep, 2, 0, SIZE / 4, 0, IBV_SEND_SIGNALED));
	completion_expect(cq, 2, IBV_WC_SUCCESS, NULL);
	CHECK_EQ(ep->buffer[0], 0x40 + kind);
	CHECK_EQ(ep->buffer[SIZE / 4 - 1], 0x40 + kind);
	CHECK_ZERO(ep_fetch_add(ep, 3, 0, SIZE / 4 + 8, 5, IBV_SEND_SIGNALED));
	completion_expect(cq, 3, IBV_WC_SUCCESS, NULL);
	CHECK_ZERO(ep_fetch_add(ep, 4, 0, SIZE / 4 + 8, 5, IBV_SEND_SIGNALED));
	completion_expect(cq, 4, IBV_WC_SUCCESS, NULL);
	memcpy(&old, ep->buffer, sizeof(old));
	CHECK_EQ(old, 5);
}

static long file_kib(const struct vb_mapped *mapped)
{
	struct stat st;

	CHECK_ZERO(fstat(mapped->fd, &st));
	return (long)st.st_blocks / 2;
}

/* Everything of the library that grows with queues: none of it lies where peers write. */
static void own_state(struct resources *resources, const struct vb_mapped *mapped)
{
	struct ibv_qp_init_attr attr = {.send_cq = resources->cq,
					.recv_cq = resources->cq,
					.qp_type = IBV_QPT_RC,
					.cap = {2000, 2000, 4, 4, 64}};
	struct ibv_qp *qp[QUEUES];
	long before = file_kib(mapped);

	for (int i = 0; i < QUEUES; i++) {
		qp[i] = ibv_create_qp(resources->pd, &attr);
		CHECK(qp[i]);
	}
	CHECK_EQ(file_kib(mapped), before);
	for (int i = 0; i < QUEUES; i++)
		CHECK_ZERO(ibv_destroy_qp(qp[i]));
}

static void refused(struct resources *resources)
{
	char *at = memory(2);
	struct ibv_mr *mr;

	CHECK(mmap(at + 4096, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED,
		   -1, 0) == at + 4096);
	errno = 0;
	mr = ibv_reg_mr(resources->pd, at, SIZE, IBV_ACCESS_LOCAL_WRITE);
	CHECK(!mr && errno == EOPNOTSUPP);
	mr = ibv_reg_mr(resources->pd, at + 8192, SIZE - 8192, IBV_ACCESS_LOCAL_WRITE);
	CHECK(mr);
	CHECK_ZERO(ibv_dereg_mr(mr));
	CHECK_ZERO(munmap(at, SIZE));
}

int main(void)
{
	struct endpoint ep[KINDS];
	struct resources resources;
	struct process process;
	struct vb_mapped mapped;

	watchdog(90);
	/* Forked before either has a block: a child of a process that has some has ordinary memory. */
	process_start(&process, target, NULL);
	need_mapped(&mapped);
	endpoints_open(ep, &resources, process.sock);
	promise("the library's own state is in no block");
	own_state(&resources, &mapped);
	promise("what the program has mapped into a block is not registered");
	refused(&resources);
	sleep_ms(CONTACT_MS);
	message_meet(process.sock);
	process_stop(&process);
	filter_set();
	for (int i = 0; i < KINDS; i++) {
		promise(kind_names[i]);
		CHECK(mapped.holds(ep[i].buffer, SIZE));
		use(&ep[i], i);
	}
	process_continue(&process);
	message_meet(process.sock);
	message_meet(process.sock);
	promise("memory that was forgotten is reached as before");
	for (int i = 0; i < KINDS; i++) {
		ep[i].buffer[100] = (uint8_t)(0x60 + i);
		CHECK_ZERO(ep_write(&ep[i], 5, 100, 1, 100, IBV_SEND_SIGNALED));
		completion_expect(resources.cq, 5, IBV_WC_SUCCESS, NULL);
	}
	message_meet(process.sock);
	for (int i = 0; i < KINDS; i++)
		ep_close(&ep[i]);
	resources_close(&resources);
	process_expect_success(&process, PROCESS_PATIENCE_MS);
	return 0;
}
