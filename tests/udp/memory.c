/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Usage: udp-memory GID_INDEX NETNS (a path like /proc/PID/ns/net; VB_TEST_DEVICE names the device
 * in both namespaces) Windows, on-demand memory, ATOMIC_WRITE and FLUSH between two hosts, on a
 * network that may lose packets (VERBATIM_FAULT).
 */
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "support/check.h"
#include "support/clock.h"
#include "support/endpoint.h"
#include "support/process.h"

enum { SIZE = 65536, WINDOW_AT = 8192, WINDOW_SIZE = 16384, WORDS = 60, HOLE = 32768, PAGE = 4096 };
enum {
	FLUSHES = IBV_ACCESS_FLUSH_GLOBAL | IBV_ACCESS_FLUSH_PERSISTENT,
	REGION = EP_ACCESS | FLUSHES | IBV_ACCESS_MW_BIND | IBV_ACCESS_ON_DEMAND
};

struct plan {
	const char *netns;
	int gid_index;
};

static void connect_side(struct resources *resources, struct endpoint *ep, int sock,
			 const struct plan *plan)
{
	struct ep_config config;

	resources_open(resources, 256, false);
	resources_use_gid(resources, plan->gid_index);
	config = ep_defaults(IBV_QPT_RC);
	config.qp_access_flags |= FLUSHES;
	config.send_ops = IBV_QP_EX_WITH_FLUSH | IBV_QP_EX_WITH_ATOMIC_WRITE;
	config.retry_cnt = 7;
	ep_open_on(ep, resources, &config, NULL, SIZE);
	CHECK_ZERO(ibv_dereg_mr(ep->mr));
	ep->mr = ibv_reg_mr(resources->pd, ep->buffer, SIZE, REGION);
	CHECK(ep->mr);
	ep->local.rkey = ep->mr->rkey;
	ep_exchange(ep, sock);
}

static struct ibv_mw *window_bound(struct endpoint *ep)
{
	struct ibv_mw *mw = ibv_alloc_mw(ep->resources->pd, IBV_MW_TYPE_2);
	struct ibv_send_wr wr = {.opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED};
	struct ibv_send_wr *bad;
	struct ibv_wc wc;

	CHECK(mw);
	wr.bind_mw.mw = mw;
	wr.bind_mw.rkey = ibv_inc_rkey(mw->rkey);
	wr.bind_mw.bind_info = (struct ibv_mw_bind_info){
		.mr = ep->mr,
		.addr = (uintptr_t)ep->buffer + WINDOW_AT,
		.length = WINDOW_SIZE,
		.mw_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_ZERO_BASED};
	CHECK_ZERO(ibv_post_send(ep->qp, &wr, &bad));
	completion_expect(ep->resources->cq, 0, IBV_WC_SUCCESS, &wc);
	return mw;
}

/*
 * The target: gives a window, sees it written and invalidated, then loses memory under its region.
 */
static int target(int sock, void *argument)
{
	const struct plan *plan = argument;
	struct resources resources;
	struct ibv_mw *mw;
	struct endpoint ep;
	struct ibv_wc wc;
	int fd = open(plan->netns, O_RDONLY | O_CLOEXEC);

	promise("the target of windows, ATOMIC_WRITE and FLUSH");
	CHECK(fd >= 0);
	CHECK_ZERO(setns(fd, CLONE_NEWNET));
	connect_side(&resources, &ep, sock, plan);
	CHECK_ZERO(ep_recv(&ep, 7, 0, 64));
	mw = window_bound(&ep);
	message_send(sock, &mw->rkey, sizeof(mw->rkey));
	completion_expect(resources.cq, 7, IBV_WC_SUCCESS, &wc);
	CHECK_EQ(wc.wc_flags, IBV_WC_WITH_INV);
	CHECK_EQ(wc.invalidated_rkey, mw->rkey);
	for (unsigned int i = 0; i < WINDOW_SIZE; i++)
		CHECK_SAY(ep.buffer[WINDOW_AT + i] == 0x6b, "byte %u is %#x", i,
			  ep.buffer[WINDOW_AT + i]);
	CHECK(mmap(ep.buffer + HOLE, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
		   0) != MAP_FAILED);
	message_meet(sock);
	message_meet(sock);
	CHECK_ZERO(ibv_dealloc_mw(mw));
	ep_close(&ep);
	resources_close(&resources);
	return 0;
}

static void written_through_window(struct endpoint *ep, uint32_t rkey)
{
	struct peer whole = ep->remote;
	struct ibv_wc wc;

	memset(ep->buffer, 0x6b, WINDOW_SIZE);
	ep->remote.rkey = rkey;
	ep->remote.addr = 0; /* zero-based */
	CHECK_ZERO(ep_write(ep, 1, 0, WINDOW_SIZE, 0, IBV_SEND_SIGNALED));
	completion_expect(ep->resources->cq, 1, IBV_WC_SUCCESS, &wc);
	ep->remote = whole;
}

/* Many in one batch, so that some of their packets and answers are lost. */
static void words_stored(struct endpoint *ep)
{
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(ep->qp);
	uint64_t value, *got = (uint64_t *)(void *)ep->buffer;
	struct ibv_wc wc;

	ibv_wr_start(ex);
	ex->wr_flags = IBV_SEND_SIGNALED;
	for (value = 1; value <= WORDS; value++) {
		ex->wr_id = value;
		if (value % 3)
			ibv_wr_atomic_write(ex, ep->remote.rkey, ep->remote.addr + 8, &value);
		else
			ibv_wr_flush(ex, ep->remote.rkey, ep->remote.addr + 8, 8,
				     value % 2 ? IBV_FLUSH_GLOBAL : IBV_FLUSH_PERSISTENT,
				     value % 4 ? IBV_FLUSH_RANGE : IBV_FLUSH_MR);
	}
	CHECK_ZERO(ibv_wr_complete(ex));
	for (value = 1; value <= WORDS; value++) {
		completion_expect(ep->resources->cq, value, IBV_WC_SUCCESS, &wc);
		CHECK_EQ(wc.opcode, value % 3 ? IBV_WC_ATOMIC_WRITE : IBV_WC_FLUSH);
	}
	CHECK_ZERO(ep_read(ep, 90, 0, 8, 8, IBV_SEND_SIGNALED));
	completion_expect(ep->resources->cq, 90, IBV_WC_SUCCESS, &wc);
	CHECK_EQ(*got, WORDS - 1);
}

static void initiator(int sock, const struct plan *plan)
{
	struct ibv_send_wr inv = {
		.wr_id = 2, .opcode = IBV_WR_SEND_WITH_INV, .send_flags = IBV_SEND_SIGNALED};
	struct resources resources;
	struct ibv_send_wr *bad;
	struct endpoint ep;
	struct ibv_wc wc;
	uint32_t rkey;

	connect_side(&resources, &ep, sock, plan);
	message_receive(sock, &rkey, sizeof(rkey));
	promise("a window of another host is written through");
	written_through_window(&ep, rkey);
	promise("ATOMIC_WRITE and FLUSH are executed once, in order");
	words_stored(&ep);
	promise("SEND_WITH_INV takes another host's window away");
	inv.invalidate_rkey = rkey;
	CHECK_ZERO(ibv_post_send(ep.qp, &inv, &bad));
	completion_expect(resources.cq, 2, IBV_WC_SUCCESS, &wc);
	message_meet(sock);
	promise("on-demand memory that is gone is a remote operational error");
	CHECK_ZERO(ep_write(&ep, 3, 0, 64, HOLE, IBV_SEND_SIGNALED));
	completion_next(resources.cq, &wc);
	/*
	 * The refusal that ends a connection is sent once. When it is lost, no answer comes any
	 * more.
	 */
	CHECK_SAY(wc.wr_id == 3 &&
			  (wc.status == IBV_WC_REM_OP_ERR ||
			   (getenv("VERBATIM_FAULT") && wc.status == IBV_WC_RETRY_EXC_ERR)),
		  "%s", ibv_wc_status_str(wc.status));
	message_meet(sock);
	ep_close(&ep);
	resources_close(&resources);
}

int main(int argc, char **argv)
{
	struct plan plan;
	struct process process;

	if (argc != 3)
		check_skipped("usage: udp-memory GID_INDEX NETNS");
	watchdog(60);
	plan = (struct plan){argv[2], atoi(argv[1])};
	process_start(&process, target, &plan);
	initiator(process.sock, &plan);
	process_expect_success(&process, PROCESS_PATIENCE_MS);
	printf("windows, ATOMIC_WRITE, FLUSH between hosts: done\n");
	return 0;
}
