/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Processes of which each is connected with every other one by two queue pairs: how long connecting
 * takes, the first message on each queue pair, what a process holds then.
 */
#include <stdlib.h>
#include <string.h>

#include "crowd.h"
#include "scale.h"
#include "support/check.h"
#include "support/clock.h"

enum { QPS = 2 };
enum { CONNECT_MS, FIRST_MS, AGAIN_MS, BYTES, DESCRIPTORS, MAPPINGS };

struct member {
	struct crowd_shared *crowd;
	struct resources r;
	struct small_buffer buffer;
	struct ibv_qp **qp; /* by peer, QPS each */
	uint32_t self;
	unsigned long long failed;
};

/* Where process `from` tells the number of its k-th queue pair for process `to`. */
static uint32_t *number(const struct member *m, uint32_t from, uint32_t to, uint32_t k)
{
	return &m->crowd->numbers[((size_t)from * m->crowd->count + to) * QPS + k];
}

static void open_all(struct member *m)
{
	struct ep_config config = small_config();
	uint32_t count = m->crowd->count;

	resources_open(&m->r, (int)(count * QPS * 2), false);
	small_buffer_open(&m->buffer, &m->r);
	m->qp = calloc((size_t)count * QPS, sizeof(struct ibv_qp *));
	CHECK(m->qp);
	for (uint32_t i = 0; i < count * QPS; i++) {
		if (i / QPS == m->self)
			continue;
		m->qp[i] = ep_create_qp(&m->r, &config);
		*number(m, m->self, i / QPS, i % QPS) = m->qp[i]->qp_num;
	}
}

static void connect_all(struct member *m)
{
	for (uint32_t i = 0; i < m->crowd->count * QPS; i++) {
		if (i / QPS != m->self)
			small_connect(m->qp[i], &m->r, *number(m, i / QPS, m->self, i % QPS));
	}
}

static void receives_post(struct member *m)
{
	for (uint32_t i = 0; i < m->crowd->count * QPS; i++) {
		if (i / QPS != m->self)
			small_receive(m->qp[i], &m->buffer);
	}
}

/* One message to each, one from each, on every queue pair. */
static void messages(struct member *m)
{
	uint32_t left = (m->crowd->count - 1) * QPS * 2;
	struct ibv_wc wc[16];

	for (uint32_t i = 0; i < m->crowd->count * QPS; i++) {
		if (i / QPS != m->self)
			small_send(m->qp[i], &m->buffer);
	}
	for (uint64_t begun = now_us(); left;) {
		int n = ibv_poll_cq(m->r.cq, 16, wc);

		CHECK(n >= 0);
		for (int k = 0; k < n; k++)
			CHECK_SAY(wc[k].status == IBV_WC_SUCCESS, "process %u: status %d, 0x%x",
				  m->self, (int)wc[k].status, wc[k].vendor_err);
		left -= (uint32_t)n;
		if (n)
			begun = now_us();
		else
			crowd_wait(m->crowd, begun);
	}
}

static void find(struct member *m, int which, double value)
{
	m->crowd->found[which][m->self] = value;
}

static void run(struct crowd_shared *crowd, uint32_t self)
{
	struct member m = {.crowd = crowd, .self = self};
	uint64_t memory, begin;

	watchdog(watchdog_seconds());
	open_all(&m);
	crowd_meet(crowd);
	memory = memory_bytes();
	crowd_meet(crowd);
	begin = now_ns();
	connect_all(&m);
	receives_post(&m);
	find(&m, CONNECT_MS, (double)(now_ns() - begin) / 1e6);
	crowd_meet(crowd);
	messages(&m);
	find(&m, FIRST_MS, (double)(now_ns() - begin) / 1e6);
	crowd_meet(crowd);
	receives_post(&m);
	crowd_meet(crowd);
	begin = now_ns();
	messages(&m);
	find(&m, AGAIN_MS, (double)(now_ns() - begin) / 1e6);
	crowd_meet(crowd);
	find(&m, BYTES, (double)(memory_bytes() - memory));
	find(&m, DESCRIPTORS, descriptors_open());
	find(&m, MAPPINGS, mappings());
	crowd_meet(crowd);
	free(m.qp); /* the queue pairs end with the process */
}

int measure_peers(int argc, char **argv)
{
	uint32_t count = (uint32_t)strtoul(argv[0], NULL, 0);
	struct crowd_shared *crowd = crowd_make(count, (uint64_t)count * count * QPS);
	uint64_t begin = now_ns();

	(void)argc;
	crowd_run(crowd, run);
	figures_begin("peers", count);
	figure("all_ms", (double)(now_ns() - begin) / 1e6);
	crowd_figure(crowd, CONNECT_MS, "connect_ms", "connect_most_ms");
	crowd_figure(crowd, FIRST_MS, "first_ms", "first_most_ms");
	figure("first_pair_us", crowd->found[FIRST_MS][count - 1] * 1000 / count / (count - 1) * 2);
	crowd_figure(crowd, AGAIN_MS, "again_ms", "again_most_ms");
	crowd_figure(crowd, BYTES, "bytes", "bytes_most");
	figure("peer_bytes", crowd->found[BYTES][count - 1] / (count - 1));
	crowd_figure(crowd, DESCRIPTORS, "descriptors", "descriptors_most");
	crowd_figure(crowd, MAPPINGS, "mappings", "mappings_most");
	figures_end();
	return 0;
}
