/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The WRITEs of writer.h. */
#include "support/writer.h"

#include "support/check.h"
#include "support/random.h"

struct ep_config writer_config(void)
{
	struct ep_config config = ep_defaults(IBV_QPT_RC);

	config.timeout = 10;
	config.retry_cnt = 1;
	return config;
}

struct stream {
	enum ibv_wr_opcode opcode;
	size_t largest;
	bool lists;
	uint64_t *seed;
};

static struct ibv_send_wr next_write(const struct endpoint *ep, struct ibv_sge *sge, uint64_t wr_id,
				     const struct stream *s)
{
	size_t classes = (size_t)__builtin_ctzl(s->largest) - 2; /* 8, 16, and so on */
	size_t size = (size_t)8 << (random_next(s->seed) % classes);
	size_t at = random_next(s->seed) % (ep->size - size + 1) & ~(size_t)7;
	struct ibv_send_wr wr;

	*sge = ep_sge(ep, at, (uint32_t)size);
	wr = ep_wr(s->opcode, wr_id, sge, 1);
	ep_target(&wr, ep->remote.addr + at, ep->remote.rkey);
	return wr;
}

/* As many as the window allows: each by a call of its own, or all by one. */
static void post_some(struct endpoint *ep, uint64_t wr_id, uint64_t count, const struct stream *s)
{
	struct ibv_send_wr wr[WRITER_WINDOW], *bad;
	struct ibv_sge sge[WRITER_WINDOW];

	for (uint64_t i = 0; i < count; i++) {
		wr[i] = next_write(ep, &sge[i], wr_id + i, s);
		if (s->lists && i)
			wr[i - 1].next = &wr[i];
	}
	for (uint64_t i = 0; i < (s->lists && count ? 1 : count); i++)
		CHECK_ZERO(ibv_post_send(ep->qp, &wr[i], &bad));
}

static void until_error(struct endpoint *ep, const struct stream *s)
{
	uint64_t posted = 0, completed = 0;
	bool error = false;

	while (!error || completed < posted) {
		struct ibv_wc wc = {0};

		/* A list begins when all before it is complete: then it can be executed as one. */
		if (!error && (!s->lists || posted == completed)) {
			uint64_t room = WRITER_WINDOW - (posted - completed);

			post_some(ep, posted, room, s);
			posted += room;
		}
		completion_next(ep->cq[EP_SEND_CQ], &wc);
		CHECK_EQ(wc.wr_id, completed);
		completed++;
		if (error && wc.status != IBV_WC_WR_FLUSH_ERR) {
			completion_print(&wc);
			check_failed(__FILE__, __LINE__, "not flushed behind an error");
		}
		error = error || wc.status != IBV_WC_SUCCESS;
	}
}

void write_until_error(struct endpoint *ep, size_t largest, bool lists, uint64_t *seed)
{
	const struct stream s = {IBV_WR_RDMA_WRITE, largest, lists, seed};

	until_error(ep, &s);
}

void write_imm_until_error(struct endpoint *ep, size_t largest, uint64_t *seed)
{
	const struct stream s = {IBV_WR_RDMA_WRITE_WITH_IMM, largest, false, seed};

	until_error(ep, &s);
}
