/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Promise: hundreds of datagram queue pairs share sockets and the set of watched descriptors:
 * making one more ready costs no system call on that set. Counted by a replacement of epoll_ctl(2).
 */
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "support/check.h"
#include "support/clock.h"
#include "support/qp_state.h"

#define PAIRS    256
#define ALLOWED  64 /* for the process as a whole: sockets, claims, the doorbell */
#define TEST_KEY 0x11

static _Atomic uint32_t calls;

__attribute__((visibility("default"))) int epoll_ctl(int set, int operation, int fd,
						     struct epoll_event *event)
{
	if (syscall(SYS_gettid) == getpid()) /* the progress thread arms what has woken it */
		atomic_fetch_add(&calls, 1);
	return (int)syscall(SYS_epoll_ctl, set, operation, fd, event);
}

static void make_ready(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {.port_num = 1, .qkey = TEST_KEY};

	CHECK_ZERO(qp_bring_to(qp, &attr, IBV_QPS_RTS));
}

int main(void)
{
	static struct ibv_qp *qp[PAIRS];
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;

	watchdog(60);
	CHECK(list && list[0]);
	ctx = ibv_open_device(list[0]);
	CHECK(ctx);
	pd = ibv_alloc_pd(ctx);
	cq = ibv_create_cq(ctx, 16, NULL, NULL, 0);
	CHECK(pd && cq);
	for (int i = 0; i < PAIRS; i++) {
		struct ibv_qp_init_attr init = {
			.send_cq = cq,
			.recv_cq = cq,
			.cap = {.max_send_wr = 1,
				.max_recv_wr = 1,
				.max_send_sge = 1,
				.max_recv_sge = 1},
			.qp_type = IBV_QPT_UD,
		};

		qp[i] = ibv_create_qp(pd, &init);
		CHECK(qp[i]);
		make_ready(qp[i]);
	}
	printf("%u calls of epoll_ctl for %d queue pairs\n", atomic_load(&calls), PAIRS);
	CHECK(atomic_load(&calls) < ALLOWED);
	for (int i = 0; i < PAIRS; i++)
		CHECK_ZERO(ibv_destroy_qp(qp[i]));
	CHECK_ZERO(ibv_destroy_cq(cq));
	CHECK_ZERO(ibv_dealloc_pd(pd));
	CHECK_ZERO(ibv_close_device(ctx));
	ibv_free_device_list(list);
	return 0;
}
