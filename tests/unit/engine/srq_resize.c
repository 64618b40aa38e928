/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Promise: a shared receive queue is not resized while a message is being received into a receive
 * that was taken from it; the refusal changes nothing, and another try succeeds
 * (ibv_modify_srq(3)). How long a receive is taken depends on the message, hence it is taken here
 * by hand.
 */
#include "engine/srq.h"
#include "support/check.h"
#include "support/clock.h"
#include "support/endpoint.h"

enum { POSTED = 3 };

static void post(struct ibv_srq *srq, uint64_t wr_id, int err)
{
	struct ibv_recv_wr wr = {.wr_id = wr_id}, *bad;

	CHECK_EQ(ibv_post_srq_recv(srq, &wr, &bad), err);
}

static void refused(struct ibv_srq *srq, uint32_t max_wr, int err)
{
	struct ibv_srq_attr attr = {.max_wr = max_wr, .srq_limit = 1}, shown;

	errno = 0;
	CHECK_EQ(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT), err);
	CHECK_EQ(errno, err);
	CHECK_ZERO(ibv_query_srq(srq, &shown));
	CHECK(shown.max_wr == 4 && shown.srq_limit == 0);
}

int main(void)
{
	struct ibv_srq_init_attr init = {.attr = {.max_wr = 4, .max_sge = 1}};
	struct ibv_srq_attr attr = {.max_wr = 8};
	struct resources resources;
	struct ibv_srq *srq;
	struct vb_srq *s;

	watchdog(60);
	resources_open(&resources, 16, false);
	srq = ibv_create_srq(resources.pd, &init);
	CHECK(srq);
	s = vb_srq_of(srq);
	for (uint64_t i = 0; i < POSTED; i++)
		post(srq, i, 0);

	promise("a taken receive: no resize, and it counts among those that the size must hold");
	s->posted--;
	s->fifo_head++;
	refused(srq, 8, EBUSY);
	refused(srq, POSTED, EBUSY);
	refused(srq, POSTED - 1, EINVAL);
	post(srq, 9, 0);
	post(srq, 10, ENOMEM);

	promise("another try succeeds");
	s->posted++;
	s->fifo_head--;
	CHECK_ZERO(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR));
	for (uint64_t i = 4; i < 8; i++)
		post(srq, i, 0);
	post(srq, 10, ENOMEM);
	CHECK_ZERO(ibv_destroy_srq(srq));
	resources_close(&resources);
	return 0;
}
