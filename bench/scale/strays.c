/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Processes behind one UDP port, which run.py makes all addresses far for (VERBATIM_LINK=udp). Each
 * sends to the next one, in a circle, a message at a time; so each datagram has to find its process
 * among all of them. run.py reads from the log how many came to a wrong one.
 *
 * message_us is the time of all messages by their number: how many processes take turns on the
 * processors does not count. A process can be ahead of the next one, but not by more messages than
 * there are processes. So many receives are posted; with fewer, what is measured is the RNR timer.
 */
#include <stdlib.h>

#include "crowd.h"
#include "scale.h"
#include "support/check.h"
#include "support/clock.h"

enum { MESSAGES = 2000 };
enum { OPEN_MS, MESSAGE_US };

struct progress {
	int sent, received;
};

/* Until so many messages were sent and received; more may have come. A receive follows each. */
static void await(const struct resources *r, struct ibv_qp *from, const struct small_buffer *buffer,
		  struct progress *p, int messages)
{
	struct ibv_wc wc;

	for (uint64_t begun = now_us(); p->sent < messages || p->received < messages;) {
		int n = ibv_poll_cq(r->cq, 1, &wc);

		CHECK(n >= 0);
		if (!n) {
			wait_once(begun);
			continue;
		}
		CHECK_EQ(wc.status, IBV_WC_SUCCESS);
		begun = now_us();
		if (wc.opcode == IBV_WC_SEND) {
			p->sent++;
			continue;
		}
		p->received++;
		small_receive(from, buffer);
	}
}

static void run(struct crowd_shared *crowd, uint32_t self)
{
	struct ep_config config = small_config();
	struct progress p = {0, 0};
	struct small_buffer buffer;
	struct resources r;
	struct ibv_qp *to, *from;
	uint32_t count = crowd->count;
	uint64_t begin;

	config.cap.max_recv_wr = count + 1;
	watchdog(watchdog_seconds());
	resources_open(&r, 2 * (int)count + 64, false);
	small_buffer_open(&buffer, &r);
	to = ep_create_qp(&r, &config);
	from = ep_create_qp(&r, &config);
	crowd->numbers[self * 2] = to->qp_num;
	crowd->numbers[self * 2 + 1] = from->qp_num;
	crowd_meet(crowd);
	begin = now_ns();
	small_connect(to, &r, crowd->numbers[(self + 1) % count * 2 + 1]);
	small_connect(from, &r, crowd->numbers[(self + count - 1) % count * 2]);
	crowd->found[OPEN_MS][self] = (double)(now_ns() - begin) / 1e6;
	for (uint32_t i = 0; i <= count; i++)
		small_receive(from, &buffer);
	crowd_meet(crowd);
	begin = now_ns();
	for (int i = 0; i < MESSAGES; i++) {
		small_send(to, &buffer);
		await(&r, from, &buffer, &p, i + 1);
	}
	crowd->found[MESSAGE_US][self] = us_each(begin, now_ns(), MESSAGES * count);
	crowd_meet(crowd);
	CHECK_ZERO(ibv_destroy_qp(to));
	CHECK_ZERO(ibv_destroy_qp(from));
	CHECK_ZERO(ibv_dereg_mr(buffer.mr));
	resources_close(&r); /* the log tells of strays then */
}

int measure_strays(int argc, char **argv)
{
	uint32_t count = (uint32_t)strtoul(argv[0], NULL, 0);
	struct crowd_shared *crowd = crowd_make(count, (uint64_t)count * 2);

	(void)argc;
	crowd_run(crowd, run);
	figures_begin("strays", count);
	figure("messages", (double)count * MESSAGES);
	crowd_figure(crowd, OPEN_MS, "open_ms", "open_most_ms");
	crowd_figure(crowd, MESSAGE_US, "message_us", "message_most_us");
	figures_end();
	return 0;
}
