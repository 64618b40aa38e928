/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Promise: ibv_req_notify_cq(3) asks for an event about entries that enter the queue from then on,
 * and about those that entered after a poll had come to the end of the queue. Entries that an event
 * has told of, or for which no poll has looked, raise none. So a program that arms and then polls
 * gets no event for what it finds. A program that polls until the queue is empty, arms, and waits
 * misses no entry. An iteration of an extended queue ends before the entries of an event that was not
 * fetched, so that whoever fetches it finds them.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "support/check.h"
#include "support/endpoint.h"
#include "support/qp_state.h"

/* Kinds of queues that receives complete in. */
enum kind { PLAIN, EXTENDED, SHARED, MODERATED, KINDS };

static const char *const kind_names[KINDS] = {"plain", "extended", "shared receives", "moderated"};

static struct ibv_context *ctx;
static struct ibv_pd *pd;

/* A queue pair connected to itself, whose receives complete in a queue with a channel. */
struct stage {
	enum kind kind;
	struct ibv_comp_channel *channel;
	struct ibv_cq *send_cq, *cq;
	struct ibv_cq_ex *ex;
	struct ibv_srq *srq;
	struct ibv_qp *qp;
};

static void cq_create(struct stage *s)
{
	struct ibv_cq_init_attr_ex attr = {.cqe = 64, .channel = s->channel};
	struct ibv_modify_cq_attr moderate = {
		.attr_mask = IBV_CQ_ATTR_MODERATE,
		.moderate = {.cq_count = 0, .cq_period = 1000},
	};

	if (s->kind == EXTENDED) {
		s->ex = ibv_create_cq_ex(ctx, &attr);
		CHECK(s->ex);
		s->cq = ibv_cq_ex_to_cq(s->ex);
		return;
	}
	s->cq = ibv_create_cq(ctx, 64, NULL, s->channel, 0);
	CHECK(s->cq);
	if (s->kind == MODERATED)
		CHECK(ibv_modify_cq(s->cq, &moderate) == 0);
}

static void stage_open(struct stage *s, enum kind kind)
{
	struct ibv_srq_init_attr shared = {.attr = {.max_wr = 64, .max_sge = 1}};
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 64, .max_recv_wr = 64, .max_send_sge = 1, .max_recv_sge = 1},
	};

	memset(s, 0, sizeof(*s));
	s->kind = kind;
	s->channel = ibv_create_comp_channel(ctx);
	s->send_cq = ibv_create_cq(ctx, 64, NULL, NULL, 0);
	CHECK(s->channel && s->send_cq);
	cq_create(s);
	if (kind == SHARED)
		CHECK(s->srq = ibv_create_srq(pd, &shared));
	init.send_cq = s->send_cq;
	init.recv_cq = s->cq;
	init.srq = s->srq;
	CHECK(s->qp = ibv_create_qp(pd, &init));
	qp_link_self(s->qp);
}

static void stage_close(struct stage *s)
{
	EXPECT_EQ(ibv_destroy_qp(s->qp), 0);
	if (s->srq)
		EXPECT_EQ(ibv_destroy_srq(s->srq), 0);
	EXPECT_EQ(ibv_destroy_cq(s->cq), 0);
	EXPECT_EQ(ibv_destroy_cq(s->send_cq), 0);
	EXPECT_EQ(ibv_destroy_comp_channel(s->channel), 0);
}

/* A message is received: its sender's completion came after the receive's. */
static void message(struct stage *s, bool solicited)
{
	struct ibv_recv_wr recv = {.wr_id = 1}, *bad_recv;
	struct ibv_send_wr send = {
		.wr_id = 2,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED | (solicited ? IBV_SEND_SOLICITED : 0u),
	};
	struct ibv_send_wr *bad_send;
	struct ibv_wc wc;
	int n = 0;

	CHECK(!(s->srq ? ibv_post_srq_recv(s->srq, &recv, &bad_recv)
		       : ibv_post_recv(s->qp, &recv, &bad_recv)));
	CHECK(!ibv_post_send(s->qp, &send, &bad_send));
	for (int i = 0; !n && i < EP_WAIT_MS * 10; i++) {
		n = ibv_poll_cq(s->send_cq, 1, &wc);
		if (!n)
			usleep(100);
	}
	CHECK(n == 1);
	EXPECT_STATUS(wc.status, IBV_WC_SUCCESS);
}

/* Takes one entry without looking for more. */
static void take_one(struct stage *s)
{
	struct ibv_poll_cq_attr attr = {0};
	struct ibv_wc wc;

	if (!s->ex) {
		EXPECT_EQ(ibv_poll_cq(s->cq, 1, &wc), 1);
		return;
	}
	EXPECT_EQ(ibv_start_poll(s->ex, &attr), 0);
	ibv_end_poll(s->ex);
}

/* Takes what is there, and finds that there is no more. */
static void take_all(struct stage *s, int want)
{
	struct ibv_poll_cq_attr attr = {0};
	struct ibv_wc wc[8];
	int got = 0, n;

	if (!s->ex) {
		while ((n = ibv_poll_cq(s->cq, 8, wc)) > 0)
			got += n;
	} else if (!ibv_start_poll(s->ex, &attr)) {
		do
			got++;
		while (!ibv_next_poll(s->ex));
		ibv_end_poll(s->ex);
	}
	EXPECT_EQ(got, want);
}

static void iterate(struct stage *s, char step)
{
	struct ibv_poll_cq_attr attr = {0};

	CHECK(s->ex);
	if (step == 'b')
		EXPECT_EQ(ibv_start_poll(s->ex, &attr), 0);
	else if (step == 'e')
		ibv_end_poll(s->ex);
	else
		EXPECT_EQ(ibv_next_poll(s->ex), step == 'x' ? ENOENT : 0);
}

static void take_event(struct stage *s)
{
	struct ibv_cq *cq = NULL;
	void *context;

	if (!EXPECT_SAY(readable(s->channel->fd, EP_WAIT_MS), "no event came"))
		return;
	EXPECT_EQ(ibv_get_cq_event(s->channel, &cq, &context), 0);
	EXPECT(cq == s->cq);
	ibv_ack_cq_events(s->cq, 1);
}

/*
 * What a program does, a letter a step: s, S a message arrives (S: solicited); a, A the queue is
 * armed (A: for solicited ones); E an event comes; - none does; p one entry is taken; 0 to 9 so
 * many are, and the end is seen. Of extended queues: b an iteration begins with an entry, n another
 * follows, x none does, e the iteration ends.
 */
static const char *const plays[] = {
	/* No poll has looked yet: arm, then poll. */
	"sa-sE2",
	"ssa-2sE1",
	"sA-SE2",
	"SA-SE2",
	/* Polled to the end, then armed: what came in between must not be missed. */
	"0saE1",
	"0SAE1",
	"0sA-SE2",
	"s1saE1",
	/* An event told of one; more came with it or after. */
	"asEsa-2",
	"asEsa-psE2",
	"asEssa-3sE1",
	"asEs2a-sE1",
	"0asEsa-2",
	"ASESA-2",
	/* One of two was taken; the program knows that it has not seen the end. */
	"0ssp-a-1",
	"0sspa-sE2",
	/* One event for an arming, whatever comes. */
	"asEss-3",
	"aasEs-2",
	"aAsE1",
	"AasE1",
	/* Armed for more while an entry of the other sort is there. */
	"As-a-sE2",
	"0As-aE1",
};

/* An event comes of an entry that arrives before, or during, an iteration. */
static const char *const iterations[] = {
	"sabsxeE1",
	"sasbxeE1",
	"sabssxeE2",
	"ssabnsxeE1",
	"ssabnxe-",
	/* Fetched meanwhile: the rest is the iteration's. */
	"sabsxEnxe-",
	"sabsxeaE1sE1",
	/* The event is not fetched: polling alone finds all, one or more at a time. */
	"asbxessbnxeE0",
	"assbnxeE0",
	/* Nothing is armed. */
	"sbsnsnxe-",
};

static void play(struct stage *s, const char *steps)
{
	for (; *steps; steps++) {
		if (*steps >= '0' && *steps <= '9')
			take_all(s, *steps - '0');
		else if (*steps == 's' || *steps == 'S')
			message(s, *steps == 'S');
		else if (*steps == 'a' || *steps == 'A')
			EXPECT_EQ(ibv_req_notify_cq(s->cq, *steps == 'A'), 0);
		else if (*steps == 'p')
			take_one(s);
		else if (*steps == 'E')
			take_event(s);
		else if (strchr("bnxe", *steps))
			iterate(s, *steps);
		else
			EXPECT_SAY(!readable(s->channel->fd, EP_QUIET_MS),
				   "an event, %zu steps before the end", strlen(steps));
	}
	EXPECT_SAY(!readable(s->channel->fd, 0), "an event at the end");
}

static void stage_play(enum kind kind, const char *steps)
{
	struct stage s;

	expect_case("%s: %s", kind_names[kind], steps);
	stage_open(&s, kind);
	play(&s, steps);
	stage_close(&s);
}

int main(int argc, char **argv)
{
	ep_main(argc, argv);
	ctx = device_open();
	pd = ibv_alloc_pd(ctx);
	CHECK(pd);
	for (int kind = 0; kind < KINDS; kind++)
		for (size_t i = 0; i < sizeof(plays) / sizeof(plays[0]); i++)
			stage_play((enum kind)kind, plays[i]);
	for (size_t i = 0; i < sizeof(iterations) / sizeof(iterations[0]); i++)
		stage_play(EXTENDED, iterations[i]);
	EXPECT_EQ(ibv_dealloc_pd(pd), 0);
	EXPECT_EQ(ibv_close_device(ctx), 0);
	return expect_done();
}
