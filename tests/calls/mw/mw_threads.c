/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Windows of type 1 among threads: a window serves one queue pair while it is bound and released on
 * another, which belongs to another completion queue and so to another lock. When the release has
 * completed, no byte changes any more (ibv_bind_mw(3)).
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include <infiniband/verbs.h>

#include "support/check.h"
#include "support/endpoint.h"

#define ROUNDS 150
#define LENGTH 32768u
#define AT     4096u
#define MARK   0xa5
#define WATCH  2000 /* looks at the memory after each release */

static struct endpoint near, far;
static struct ibv_cq *cq;
static struct ibv_qp *binder; /* connected to itself, with a completion queue of its own */
static _Atomic uint32_t key;
static _Atomic bool over;

static void open_binder(void)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_UC,
		.cap = {.max_send_wr = 4, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
	};
	struct ibv_qp *own = far.qp;
	struct peer info = far.local;

	cq = ibv_create_cq(far.context, 16, NULL, NULL, 0);
	CHECK(cq);
	attr.send_cq = attr.recv_cq = cq;
	binder = ibv_create_qp(far.pd, &attr);
	CHECK(binder);
	info.qpn = binder->qp_num;
	far.qp = binder;
	CHECK(ep_bring_to(&far, &info, IBV_QPS_RTS) == 0);
	far.qp = own;
}

static void bind(struct ibv_mw *mw, size_t length)
{
	struct ibv_mw_bind bind = {
		.send_flags = IBV_SEND_SIGNALED,
		.bind_info = {.mr = length ? far.mr : NULL,
			      .addr = length ? (uintptr_t)far.buffer + AT : 0,
			      .length = length,
			      .mw_access_flags = IBV_ACCESS_REMOTE_WRITE},
	};
	struct ibv_wc wc;
	int n;

	CHECK(ibv_bind_mw(binder, mw, &bind) == 0);
	do {
		n = ibv_poll_cq(cq, 1, &wc);
	} while (!n);
	CHECK(n == 1 && wc.status == IBV_WC_SUCCESS);
}

/*
 * A WRITE by a dead key is lost on UC, without an error. Polling the far queue serves what has
 * arrived.
 */
static void *writes(void *unused)
{
	struct ibv_sge sge = {.addr = near.local.addr, .length = LENGTH, .lkey = near.lkey};
	struct ibv_send_wr wr = {.sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_RDMA_WRITE,
				 .send_flags = IBV_SEND_SIGNALED},
			   *bad;
	struct ibv_wc wc;

	(void)unused;
	wr.wr.rdma.remote_addr = far.local.addr + AT;
	while (!atomic_load(&over)) {
		wr.wr.rdma.rkey = atomic_load(&key);
		CHECK(ibv_post_send(near.qp, &wr, &bad) == 0);
		while (!ibv_poll_cq(near.cq[EP_SEND_CQ], 1, &wc))
			;
		CHECK(wc.status == IBV_WC_SUCCESS);
		ibv_poll_cq(far.cq[EP_SEND_CQ], 1, &wc);
	}
	return NULL;
}

static size_t first_changed(void)
{
	size_t i = 0;

	while (i < LENGTH && ((volatile uint8_t *)far.buffer)[AT + i] == MARK)
		i++;
	return i;
}

static void round_of(struct ibv_mw *mw)
{
	volatile uint8_t *first = far.buffer + AT;

	memset(far.buffer + AT, MARK, LENGTH);
	bind(mw, LENGTH);
	atomic_store(&key, mw->rkey);
	while (*first == MARK) /* only a writer at work proves anything */
		sched_yield();
	bind(mw, 0);
	memset(far.buffer + AT, MARK, LENGTH);
	for (int i = 0; i < WATCH; i++) {
		if (far.buffer[AT + (size_t)i % LENGTH] != MARK || i % 500 == 0)
			sched_yield();
	}
	EXPECT_EQ(first_changed(), LENGTH);
}

int main(int argc, char **argv)
{
	struct ep_config config = ep_defaults(IBV_QPT_UC);
	struct ibv_mw *mw;
	pthread_t thread;

	ep_main(argc, argv);
	config.mr_access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND;
	ep_pair(&near, &far, &config, &config, EP_HERE);
	memset(near.buffer, 0x11, LENGTH);
	open_binder();
	mw = ibv_alloc_mw(far.pd, IBV_MW_TYPE_1);
	CHECK(mw);
	expect_case("bound and released beside the traffic");
	CHECK(pthread_create(&thread, NULL, writes, NULL) == 0);
	for (int i = 0; i < ROUNDS; i++)
		round_of(mw);
	atomic_store(&over, true);
	CHECK(pthread_join(thread, NULL) == 0);
	EXPECT_EQ(ibv_dealloc_mw(mw), 0);
	EXPECT_EQ(ibv_destroy_qp(binder), 0);
	EXPECT_EQ(ibv_destroy_cq(cq), 0);
	ep_pair_close(&near, &far);
	return expect_done();
}
