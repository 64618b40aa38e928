/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Queue pairs in a process: made, connected within the process or with another one, one message on
 * each, one of them busy among idle ones, polls that find nothing, destroyed; and the end of a
 * process that has them all.
 *
 * The figures are those of one process; between two processes both do the same at the same time.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "scale.h"
#include "support/check.h"
#include "support/clock.h"
#include "support/process.h"

enum { BUSY = 20000, BUSY_ROUNDS = 11, IDLE_POLLS = 200000 };

struct crowd {
	struct resources r;
	struct small_buffer buffer;
	uint32_t count;
	bool each; /* a CQ each */
	struct ibv_cq *cq;
	struct ibv_cq **cqs;
	struct ibv_qp **qps;
	uint32_t sent, received;         /* completions so far, of all queue pairs */
	uint32_t due_sent, due_received; /* as many are awaited */
};

/* Shared by the processes of one run. */
struct meeting {
	bool each;
	uint32_t count;
	uint64_t ending; /* when the process that ends began to */
	uint32_t qpn[];
};

static struct ibv_cq *cq_of(const struct crowd *c, uint32_t i)
{
	return c->each ? c->cqs[i] : c->cq;
}

static void crowd_prepare(struct crowd *c, uint32_t count, bool each)
{
	c->count = count;
	c->each = each;
	resources_open(&c->r, 0, false);
	small_buffer_open(&c->buffer, &c->r);
	c->cqs = calloc(count, sizeof(struct ibv_cq *));
	c->qps = calloc(count, sizeof(struct ibv_qp *));
	CHECK(c->cqs && c->qps);
	/* They are part of no figure. */
	memset(c->cqs, 1, count * sizeof(struct ibv_cq *));
	memset(c->qps, 1, count * sizeof(struct ibv_qp *));
}

static void cqs_make(struct crowd *c)
{
	if (!c->each) {
		c->cq = ibv_create_cq(c->r.context, (int)c->count * 2, NULL, NULL, 0);
		CHECK(c->cq);
	}
	for (uint32_t i = 0; c->each && i < c->count; i++) {
		c->cqs[i] = ibv_create_cq(c->r.context, 2, NULL, NULL, 0);
		CHECK_SAY(c->cqs[i], "CQ %u: errno %d", i, errno);
	}
}

/* The state INIT is part of what a queue pair costs. */
static void qps_make(struct crowd *c)
{
	struct ep_config config = small_config();

	for (uint32_t i = 0; i < c->count; i++) {
		config.send_cq = config.recv_cq = cq_of(c, i);
		c->qps[i] = ep_create_qp(&c->r, &config);
	}
}

static void make(struct crowd *c)
{
	uint64_t memory = memory_bytes(), begin = now_ns(), made;

	cqs_make(c);
	made = now_ns();
	qps_make(c);
	figure("create_us", us_each(made, now_ns(), c->count));
	if (c->each)
		figure("create_cq_us", us_each(begin, made, c->count));
	figure("bytes", (double)(memory_bytes() - memory) / c->count);
}

/* A completion belongs to the queue pair of this number. */
static uint32_t index_of(const struct crowd *c, uint32_t i, uint32_t qpn)
{
	if (c->each)
		return i;
	/* Numbers are given in no order: a table of the program would find them. */
	for (uint32_t k = 0; k < c->count; k++) {
		if (c->qps[(i + k) % c->count]->qp_num == qpn)
			return (i + k) % c->count;
	}
	check_failed(__FILE__, __LINE__, "a completion of an unknown queue pair 0x%x", qpn);
}

/* Completions are counted, not told apart, on the common CQ. */
static uint32_t drain(struct crowd *c, uint32_t i)
{
	struct ibv_wc wc[16];
	int n = ibv_poll_cq(cq_of(c, i), 16, wc);

	CHECK(n >= 0);
	for (int k = 0; k < n; k++) {
		CHECK_SAY(wc[k].status == IBV_WC_SUCCESS, "qp 0x%x (%u): status %d", wc[k].qp_num,
			  index_of(c, i, wc[k].qp_num), (int)wc[k].status);
		if (wc[k].opcode & IBV_WC_RECV)
			c->received++;
		else
			c->sent++;
	}
	return (uint32_t)n;
}

/* One message on each queue pair, to and from it. */
static void first_messages(struct crowd *c)
{
	uint64_t left = (uint64_t)c->count * 2;
	unsigned int turns = 0;

	for (uint32_t i = 0; i < c->count; i++)
		small_send(c->qps[i], &c->buffer);
	while (left) {
		for (uint32_t i = 0; i < (c->each ? c->count : 1); i++)
			left -= drain(c, i);
		spin_once(&turns);
	}
}

static void receives_post(struct crowd *c)
{
	for (uint32_t i = 0; i < c->count; i++)
		small_receive(c->qps[i], &c->buffer);
}

static void idle_polls(struct crowd *c)
{
	uint32_t places = c->each ? c->count : 1;
	uint64_t begin;

	for (uint32_t i = 0; i < places; i++)
		CHECK_EQ(drain(c, i), 0);
	begin = now_ns();
	for (uint32_t n = 0; n < IDLE_POLLS; n++)
		CHECK_EQ(drain(c, n % places), 0);
	figure("idle_poll_ns", us_each(begin, now_ns(), IDLE_POLLS) * 1000);
}

static void await(struct crowd *c, uint32_t i, uint32_t count)
{
	unsigned int turns = 0;

	for (uint32_t got = 0; got < count;) {
		got += drain(c, i);
		if (got < count)
			spin_once(&turns);
	}
}

/* Half of a round trip between the first two queue pairs of the process. */
static double ping_within(struct crowd *c, uint32_t turns)
{
	uint64_t begin = now_ns();

	for (uint32_t n = 0; n < turns; n++) {
		small_receive(c->qps[n % 2 ? 0 : 1], &c->buffer);
		small_send(c->qps[n % 2], &c->buffer);
		if (c->each) {
			await(c, !(n % 2), 1);
			await(c, n % 2, 1);
		} else {
			await(c, 0, 2);
		}
	}
	return us_each(begin, now_ns(), turns);
}

static void await_received(struct crowd *c, uint32_t received)
{
	unsigned int turns = 0;

	while (c->received != received) {
		if (!drain(c, 0))
			spin_once(&turns);
	}
}

/* The send queue has one place: the completion of the send before it comes with the answer. */
static double ping_apart(struct crowd *c, uint32_t turns, bool first)
{
	uint64_t begin = now_ns();

	for (uint32_t n = 0; n < turns; n++) {
		if (first)
			small_send(c->qps[0], &c->buffer);
		await_received(c, ++c->due_received);
		while (c->sent != c->due_sent + first)
			drain(c, 0);
		/* The receive is there before the message that the next one answers is sent. */
		small_receive(c->qps[0], &c->buffer);
		if (!first)
			small_send(c->qps[0], &c->buffer);
		c->due_sent++;
	}
	return us_each(begin, now_ns(), turns) / 2;
}

static void busy_one(struct crowd *c, int sock, bool first)
{
	double value[BUSY_ROUNDS];

	for (int i = 0; i < BUSY_ROUNDS; i++)
		value[i] = sock < 0 ? ping_within(c, BUSY / BUSY_ROUNDS)
				    : ping_apart(c, BUSY / BUSY_ROUNDS, first);
	figure("busy_us", median(value, BUSY_ROUNDS));
}

static void destroy(struct crowd *c)
{
	uint64_t begin = now_ns(), gone;

	for (uint32_t i = 0; i < c->count; i++)
		CHECK_ZERO(ibv_destroy_qp(c->qps[i]));
	gone = now_ns();
	figure("destroy_us", us_each(begin, gone, c->count));
	for (uint32_t i = 0; i < (c->each ? c->count : 1); i++)
		CHECK_ZERO(ibv_destroy_cq(cq_of(c, i)));
	if (c->each)
		figure("destroy_cq_us", us_each(gone, now_ns(), c->count));
}

/* sock -1: within the process. `ends`: the process ends with all of them. */
static void run(struct crowd *c, int sock, struct meeting *m, bool ends)
{
	uint32_t other = 0, first = 0;
	uint64_t begin, memory;

	crowd_prepare(c, m->count, m->each);
	figures_begin(m->each ? (sock < 0 ? "qps each within" : "qps each apart")
			      : (sock < 0 ? "qps one within" : "qps one apart"),
		      m->count);
	make(c);
	if (sock >= 0) {
		message_swap(sock, &c->qps[0]->qp_num, &other, sizeof(other));
		first = c->qps[0]->qp_num < other;
		for (uint32_t i = 0; i < c->count; i++)
			m->qpn[first * c->count + i] = c->qps[i]->qp_num;
		message_meet(sock);
	}
	memory = memory_bytes();
	begin = now_ns();
	for (uint32_t i = 0; i < c->count; i++)
		small_connect(c->qps[i], &c->r,
			      sock < 0 ? c->qps[i ^ 1]->qp_num : m->qpn[!first * c->count + i]);
	figure("connect_us", us_each(begin, now_ns(), c->count));
	figure("connected_bytes", (double)(memory_bytes() - memory) / c->count);
	if (sock >= 0)
		message_meet(sock);
	receives_post(c);
	if (sock >= 0)
		message_meet(sock);
	uint64_t messages = now_ns();

	first_messages(c);
	figure("first_us", us_each(messages, now_ns(), c->count));
	figure("connected_ms", (double)(now_ns() - begin) / 1e6);
	figure("channel_bytes", (double)(memory_bytes() - memory) / c->count);
	figure("mappings", mappings());
	figure("descriptors", descriptors_open());
	if (sock >= 0)
		message_meet(sock);
	idle_polls(c);
	if (sock >= 0) {
		message_meet(sock);
		small_receive(c->qps[0], &c->buffer);
		c->due_sent = c->sent;
		c->due_received = c->received;
		message_meet(sock);
	}
	busy_one(c, sock, first);
	if (sock >= 0)
		message_meet(sock);
	if (ends) {
		m->ending = now_ns();
		return;
	}
	destroy(c);
	if (sock >= 0)
		message_meet(sock);
	if (sock < 0 || first)
		figures_end();
}

static int quiet(void)
{
	return freopen("/dev/null", "w", stdout) ? 0 : -1;
}

static int within(int sock, void *argument)
{
	struct crowd c = {0};

	(void)sock;
	run(&c, -1, argument, false);
	return 0;
}

static int within_and_end(int sock, void *argument)
{
	struct crowd c = {0};

	(void)sock;
	CHECK_ZERO(quiet());
	run(&c, -1, argument, true);
	_exit(0);
}

/* Both print into a buffer; which one is the first is known when they meet. */
static int apart(int sock, void *argument)
{
	struct crowd c = {0};
	static char buffer[65536];

	setvbuf(stdout, buffer, _IOFBF, sizeof(buffer));
	run(&c, sock, argument, false);
	_exit(0);
}

static int apart_and_end(int sock, void *argument)
{
	struct crowd c = {0};

	CHECK_ZERO(quiet());
	run(&c, sock, argument, true);
	_exit(0);
}

static void end_tell(const struct meeting *m)
{
	figures_begin(m->each ? "qps end each" : "qps end one", m->count);
	figure("exit_us", us_each(m->ending, now_ns(), m->count));
	figures_end();
}

int measure_qps(int argc, char **argv)
{
	struct process a, b;
	uint32_t count = (uint32_t)strtoul(argv[2], NULL, 0);
	struct meeting *m = memory_shared(sizeof(*m) + (size_t)2 * count * sizeof(m->qpn[0]));

	(void)argc;
	m->count = count;
	m->each = !strcmp(argv[0], "each");
	if (!strcmp(argv[1], "within")) {
		process_start(&a, within, m);
		process_expect_success(&a, 600000);
		process_start(&a, within_and_end, m);
		process_expect_success(&a, 600000);
		end_tell(m);
		return 0;
	}
	process_start_pair(&a, apart, &b, apart, m);
	process_expect_success(&a, 600000);
	process_expect_success(&b, 600000);
	process_start_pair(&a, apart_and_end, &b, apart_and_end, m);
	process_expect_success(&a, 600000);
	process_expect_success(&b, 600000);
	end_tell(m);
	return 0;
}
