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

static void post_next(struct endpoint *ep, uint64_t wr_id, size_t largest, uint64_t *seed)
{
	size_t classes = (size_t)__builtin_ctzl(largest) - 2; /* 8, 16, and so on */
	size_t size = (size_t)8 << (random_next(seed) % classes);
	size_t at = random_next(seed) % (ep->size - size + 1) & ~(size_t)7;

	CHECK_ZERO(ep_write(ep, wr_id, at, size, at, IBV_SEND_SIGNALED));
}

void write_until_error(struct endpoint *ep, size_t largest, uint64_t *seed)
{
	uint64_t posted = 0, completed = 0;
	bool error = false;

	while (!error || completed < posted) {
		struct ibv_wc wc = {0};

		while (!error && posted - completed < WRITER_WINDOW)
			post_next(ep, posted++, largest, seed);
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
