/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Promise: a request between processes of one host always completes. Whatever is wrong with the
 * peer's queue pair, the requester gives up with the status and the code that say so
 * (ibv_poll_cq(3)): after all tries (4.096 us * 2^timeout, retry_cnt + 1 times), and after 1.5 s at
 * most where only a command to the peer's program could help. For a peer in another process that
 * has not been connected yet the requester waits as long as `timeout` and `retry_cnt` say.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <infiniband/verbs.h>

#include "support/check.h"
#include "support/clock.h"
#include "support/endpoint.h"

/* vendor_err */
enum {
	RD_ATOMIC_ZERO = 0x20c,
	NAK_INVALID = 0x502,
	BAD_RESPONSE = 0x508,
	NOT_READY = 0x509,
	NOT_YET = 0x50a,
	FAILED = 0x50b,
	NO_QP = 0x50c,
	OTHER_TYPE = 0x50d,
	OTHER_SOURCE = 0x50e,
	OTHER_PSN = 0x510,
};

#define TIMEOUT_MS(timeout) (4.096e-3 * (double)(1u << (timeout)))
#define IN_VAIN_MS          1500.0
#define LONG_TIMEOUT        18 /* 1.07 s, six times: far more than is spent in vain */
#define LONG_RETRIES        5
#define SHORT_TIMEOUT       12 /* 16.8 ms, four times */
#define SHORT_RETRIES       3

static enum ep_place place;

struct couple {
	struct endpoint near, far, other; /* other: only where a case opens it */
	bool has_other;
};

static struct ibv_send_wr work(struct couple *c, enum ibv_wr_opcode opcode, struct ibv_sge *sge,
			       uint32_t length)
{
	bool atomic = opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
	struct ibv_send_wr wr;

	*sge = ep_sge(&c->near, 0, atomic ? 8 : length);
	wr = ep_wr(opcode, 1, sge, 1);
	if (atomic) {
		wr.wr.atomic.remote_addr = c->far.local.addr;
		wr.wr.atomic.rkey = c->far.local.rkey;
		wr.wr.atomic.compare_add = 1;
	} else {
		wr.wr.rdma.remote_addr = c->far.local.addr;
		wr.wr.rdma.rkey = c->far.local.rkey;
	}
	return wr;
}

static void connect_both(struct couple *c)
{
	ep_link(&c->near, &c->far);
}

/* Each of these leaves near in RTS towards far, and far as its name says. */
static void fresh(struct couple *c)
{
	CHECK(ep_bring_to(&c->near, &c->far.local, IBV_QPS_RTS) == 0);
}

static void fresh_init(struct couple *c)
{
	CHECK(ep_bring_to(&c->far, &c->near.local, IBV_QPS_INIT) == 0);
	fresh(c);
}

static void fresh_error(struct couple *c)
{
	CHECK(ep_bring_to(&c->far, &c->near.local, IBV_QPS_INIT) == 0);
	CHECK(ep_move(&c->far, IBV_QPS_ERR) == 0);
	fresh(c);
}

static void back_to_reset(struct couple *c)
{
	connect_both(c);
	CHECK(ep_move(&c->far, IBV_QPS_RESET) == 0);
}

static void back_to_init(struct couple *c)
{
	back_to_reset(c);
	CHECK(ep_bring_to(&c->far, &c->near.local, IBV_QPS_INIT) == 0);
}

static void told_to_stop(struct couple *c)
{
	connect_both(c);
	CHECK(ep_move(&c->far, IBV_QPS_ERR) == 0);
}

/* Far's own request fails for a fault of its own. */
static void failed_by_itself(struct couple *c)
{
	struct ibv_sge sge = ep_sge(&c->far, 0, 8);
	struct ibv_send_wr wr = ep_wr(IBV_WR_SEND, 9, &sge, 1);
	struct ibv_wc wc;

	connect_both(c);
	sge.lkey = 0xdeadbeef;
	CHECK(ep_post_send(&c->far, &wr) == 0);
	EXPECT_STATUS(ep_poll_one(&c->far, EP_SEND_CQ, &wc), IBV_WC_LOC_PROT_ERR);
}

static void number_of_nobody(struct couple *c)
{
	struct peer peer = c->far.local;

	do
		peer.qpn ^= 0x155;
	while (peer.qpn == c->near.local.qpn);
	CHECK(ep_bring_to(&c->near, &peer, IBV_QPS_RTS) == 0);
}

/*
 * Do the names of the network namespace have one of the block (1,024 numbers) of this number? Other
 * tests run beside this one.
 */
static bool block_is_claimed(uint32_t qpn)
{
	FILE *names = fopen("/proc/net/unix", "r");
	char line[256], name[64];
	bool found = false;

	CHECK(names);
	snprintf(name, sizeof(name), " @verbatim/%u\n", qpn >> 10);
	while (!found && fgets(line, sizeof(line), names))
		found = strstr(line, name);
	fclose(names);
	return found;
}

static void block_of_nobody(struct couple *c)
{
	struct peer peer = c->far.local;

	do
		peer.qpn = (peer.qpn + 0x5a5000) & 0xffffff;
	while (block_is_claimed(peer.qpn));
	CHECK(ep_bring_to(&c->near, &peer, IBV_QPS_RTS) == 0);
}

/* Far is connected, but to another queue pair. */
static void taken_by_another(struct couple *c)
{
	ep_open(&c->other, &c->near.config, EP_HERE);
	c->has_other = true;
	ep_link(&c->other, &c->far);
	fresh(c);
}

static void psn_apart(struct couple *c, int sent, int expected)
{
	struct peer peer = c->near.local;

	peer.psn = (c->near.config.psn + (uint32_t)(expected - sent)) & 0xffffff;
	CHECK(ep_bring_to(&c->far, &peer, IBV_QPS_RTS) == 0);
	fresh(c);
}

static void one_ahead(struct couple *c)
{
	psn_apart(c, 1, 0);
}

static void far_ahead(struct couple *c)
{
	psn_apart(c, 1 << 22, 0);
}

static void one_behind(struct couple *c)
{
	psn_apart(c, 0, 1);
}

static void far_behind(struct couple *c)
{
	psn_apart(c, 0, 1 << 22);
}

/* The peer's program begins anew, and near does not know. */
static void begun_anew(struct couple *c)
{
	struct ibv_send_wr wr;
	struct ibv_wc wc;

	connect_both(c);
	CHECK(ep_post_recv(&c->far, 1, NULL, 0) == 0);
	wr = ep_wr(IBV_WR_SEND, 5, NULL, 0);
	CHECK(ep_post_send(&c->near, &wr) == 0);
	EXPECT_STATUS(ep_poll_one(&c->near, EP_SEND_CQ, &wc), IBV_WC_SUCCESS);
	CHECK(ep_move(&c->far, IBV_QPS_RESET) == 0);
	CHECK(ep_bring_to(&c->far, &c->near.local, IBV_QPS_RTS) == 0);
}

struct fault {
	const char *name;
	void (*prepare)(struct couple *c);
	int code_here, code_apart;
	bool in_vain_here, in_vain_apart;
	enum ibv_qp_type far_type;
};

static const struct fault faults[] = {
	{"RESET, never connected", fresh, NOT_READY, NOT_YET, true, false, IBV_QPT_RC},
	{"INIT, never connected", fresh_init, NOT_READY, NOT_YET, true, false, IBV_QPT_RC},
	{"ERR, never connected", fresh_error, NOT_READY, NOT_READY, true, true, IBV_QPT_RC},
	{"back in RESET", back_to_reset, NOT_READY, NOT_READY, true, true, IBV_QPT_RC},
	{"back in INIT", back_to_init, NOT_READY, NOT_READY, true, true, IBV_QPT_RC},
	{"ERR by command", told_to_stop, NOT_READY, NOT_READY, true, true, IBV_QPT_RC},
	{"ERR by itself", failed_by_itself, FAILED, FAILED, false, false, IBV_QPT_RC},
	{"a number of nobody", number_of_nobody, NO_QP, NO_QP, true, true, IBV_QPT_RC},
	{"a block of nobody", block_of_nobody, NO_QP, NO_QP, true, true, IBV_QPT_RC},
	{"of type UC", fresh, OTHER_TYPE, OTHER_TYPE, true, true, IBV_QPT_UC},
	{"of type UD", fresh, OTHER_TYPE, OTHER_TYPE, true, true, IBV_QPT_UD},
	{"connected to another", taken_by_another, OTHER_SOURCE, OTHER_SOURCE, false, false,
	 IBV_QPT_RC},
	{"one PSN ahead", one_ahead, OTHER_PSN, OTHER_PSN, false, false, IBV_QPT_RC},
	{"2^22 PSNs ahead", far_ahead, OTHER_PSN, OTHER_PSN, false, false, IBV_QPT_RC},
	{"one PSN behind", one_behind, OTHER_PSN, OTHER_PSN, false, false, IBV_QPT_RC},
	{"2^22 PSNs behind", far_behind, OTHER_PSN, OTHER_PSN, false, false, IBV_QPT_RC},
	{"connected anew with the first PSN", begun_anew, OTHER_PSN, OTHER_PSN, false, false,
	 IBV_QPT_RC},
};

#define FAULTS (sizeof(faults) / sizeof(faults[0]))

static void couple_open(struct couple *c, enum ibv_qp_type type, uint8_t timeout, uint8_t retries)
{
	struct ep_config near_config = ep_defaults(IBV_QPT_RC), far_config = ep_defaults(type);

	memset(c, 0, sizeof(*c));
	near_config.timeout = timeout;
	near_config.retry_cnt = retries;
	ep_open(&c->near, &near_config, EP_HERE);
	ep_open(&c->far, &far_config, place);
}

static void couple_close(struct couple *c)
{
	if (c->has_other)
		ep_close(&c->other);
	ep_pair_close(&c->near, &c->far);
}

/* Posts and polls; how long it took, or -1 if nothing came. */
static double request(struct couple *c, enum ibv_wr_opcode opcode, struct ibv_wc *wc)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = work(c, opcode, &sge, 100);
	uint64_t begin = now_us();

	CHECK(ep_post_send(&c->near, &wr) == 0);
	return ep_poll(&c->near, EP_SEND_CQ, wc, 1, EP_WAIT_MS) == 1
		       ? (double)(now_us() - begin) / 1e3
		       : -1;
}

/* With short timers: all tries, for each kind of request; far's memory stays as it was. */
static void short_timers(const struct fault *f, enum ibv_wr_opcode opcode)
{
	double least = TIMEOUT_MS(SHORT_TIMEOUT) * (SHORT_RETRIES + 1);
	struct ibv_wc wc = {.status = IBV_WC_SUCCESS};
	struct couple c;
	double took;

	expect_case("%s, opcode %d", f->name, (int)opcode);
	couple_open(&c, f->far_type, SHORT_TIMEOUT, SHORT_RETRIES);
	f->prepare(&c);
	ep_fill(&c.near, 0, 0x5a, 200);
	ep_fill(&c.far, 0, 0x33, 200);
	took = request(&c, opcode, &wc);
	EXPECT_STATUS(wc.status, IBV_WC_RETRY_EXC_ERR);
	EXPECT_EQ(wc.vendor_err, place == EP_HERE ? f->code_here : f->code_apart);
	EXPECT_SAY(took >= least, "gave up after %.1f of %.1f ms", took, least);
	EXPECT(ep_is_filled(&c.far, 0, 0x33, 200));
	EXPECT(ep_is_filled(&c.near, 0, 0x5a, 200));
	EXPECT_EQ(ep_state(&c.near), IBV_QPS_ERR);
	couple_close(&c);
}

/*
 * With long ones: what is in vain ends long before them, by the clock; the rest is not cut short.
 */
static void long_timers(const struct fault *f)
{
	bool in_vain = place == EP_HERE ? f->in_vain_here : f->in_vain_apart;
	uint8_t retries = in_vain ? LONG_RETRIES : 1;
	double all = TIMEOUT_MS(LONG_TIMEOUT) * (retries + 1);
	struct ibv_wc wc = {.status = IBV_WC_SUCCESS};
	struct couple c;
	double took;

	expect_case("%s, timeout %d", f->name, LONG_TIMEOUT);
	couple_open(&c, f->far_type, LONG_TIMEOUT, retries);
	f->prepare(&c);
	took = request(&c, IBV_WR_SEND, &wc);
	EXPECT_STATUS(wc.status, IBV_WC_RETRY_EXC_ERR);
	EXPECT_EQ(wc.vendor_err, place == EP_HERE ? f->code_here : f->code_apart);
	EXPECT_SAY(took >= (in_vain ? IN_VAIN_MS : all), "gave up after %.1f ms", took);
	if (in_vain)
		EXPECT_SAY(took < all, "gave up after %.1f ms", took);
	couple_close(&c);
}

/* A time-out of 0 means for ever, here as between hosts (IBA 9.7.6.1.3). */
static void no_timer(const struct fault *f)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr;
	struct couple c;

	expect_case("%s, timeout 0", f->name);
	couple_open(&c, f->far_type, 0, 0);
	f->prepare(&c);
	wr = work(&c, IBV_WR_SEND, &sge, 100);
	CHECK(ep_post_send(&c.near, &wr) == 0);
	EXPECT_EQ(ep_poll_none(&c.near, EP_SEND_CQ), 0);
	couple_close(&c);
}

/* The peer's program takes 3 s to get ready, and the timers allow for that. */
static void late_but_in_time(void)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr;
	struct ibv_wc wc;
	struct couple c;

	expect_case("RTR after 3 s");
	couple_open(&c, IBV_QPT_RC, LONG_TIMEOUT, LONG_RETRIES);
	CHECK(ep_bring_to(&c.far, &c.near.local, IBV_QPS_INIT) == 0);
	CHECK(ep_post_recv(&c.far, 1, NULL, 0) == 0);
	CHECK(ep_bring_to(&c.near, &c.far.local, IBV_QPS_RTS) == 0);
	wr = work(&c, IBV_WR_SEND, &sge, 0);
	CHECK(ep_post_send(&c.near, &wr) == 0);
	EXPECT_EQ(ep_poll(&c.near, EP_SEND_CQ, &wc, 1, 3000), 0);
	CHECK(ep_bring_to(&c.far, &c.near.local, IBV_QPS_RTR) == 0);
	EXPECT_STATUS(ep_poll_one(&c.near, EP_SEND_CQ, &wc), IBV_WC_SUCCESS);
	EXPECT_STATUS(ep_poll_one(&c.far, EP_RECV_CQ, &wc), IBV_WC_SUCCESS);
	couple_close(&c);
}

/* Everything between this and the 1.5 s succeeds, also within one process. */
static void a_little_late(void)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr;
	struct ibv_wc wc;
	struct couple c;

	expect_case("RTR after 0.2 s");
	couple_open(&c, IBV_QPT_RC, LONG_TIMEOUT, LONG_RETRIES);
	CHECK(ep_bring_to(&c.near, &c.far.local, IBV_QPS_RTS) == 0);
	wr = work(&c, IBV_WR_RDMA_WRITE, &sge, 100);
	CHECK(ep_post_send(&c.near, &wr) == 0);
	EXPECT_EQ(ep_poll(&c.near, EP_SEND_CQ, &wc, 1, 200), 0);
	CHECK(ep_bring_to(&c.far, &c.near.local, IBV_QPS_RTR) == 0);
	EXPECT_STATUS(ep_poll_one(&c.near, EP_SEND_CQ, &wc), IBV_WC_SUCCESS);
	couple_close(&c);
}

/* What the responder refuses at once, and what answers that do not fit become. */
static void refused_at_once(const char *name, enum ibv_wr_opcode opcode, uint32_t length,
			    const struct ep_config *near_config, const struct ep_config *far_config,
			    enum ibv_wc_status status, int code)
{
	struct couple c = {.has_other = false};
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct ibv_wc wc;

	expect_case("%s", name);
	ep_pair(&c.near, &c.far, near_config, far_config, place);
	CHECK(ep_post_recv(&c.far, 1, NULL, 0) == 0);
	wr = work(&c, opcode, &sge, length);
	CHECK(ep_post_send(&c.near, &wr) == 0);
	EXPECT_STATUS(ep_poll_one(&c.near, EP_SEND_CQ, &wc), status);
	EXPECT_EQ(wc.vendor_err, code);
	couple_close(&c);
}

/* No queue pair has its number any more, and the process lives. */
static void destroyed(void)
{
	struct ibv_wc wc = {.status = IBV_WC_SUCCESS};
	struct couple c;

	expect_case("destroyed");
	couple_open(&c, IBV_QPT_RC, SHORT_TIMEOUT, SHORT_RETRIES);
	ep_open(&c.other, &c.near.config, EP_HERE);
	connect_both(&c);
	CHECK(request(&c, IBV_WR_RDMA_WRITE, &wc) >= 0);
	EXPECT_STATUS(wc.status, IBV_WC_SUCCESS);
	ep_close(&c.far);
	CHECK(request(&c, IBV_WR_SEND, &wc) >= 0);
	EXPECT_STATUS(wc.status, IBV_WC_RETRY_EXC_ERR);
	EXPECT_EQ(wc.vendor_err, NO_QP);
	ep_close(&c.other);
	ep_close(&c.near);
}

static void misfits(void)
{
	struct ep_config plain = ep_defaults(IBV_QPT_RC);
	struct ep_config no_reads = plain, none_served = plain, small = plain;

	no_reads.max_rd_atomic = 0;
	none_served.max_dest_rd_atomic = 0;
	small.mtu = IBV_MTU_256;
	refused_at_once("max_rd_atomic 0", IBV_WR_RDMA_READ, 100, &no_reads, &plain,
			IBV_WC_LOC_QP_OP_ERR, RD_ATOMIC_ZERO);
	refused_at_once("max_dest_rd_atomic 0", IBV_WR_RDMA_READ, 100, &plain, &none_served,
			IBV_WC_REM_INV_REQ_ERR, NAK_INVALID);
	refused_at_once("a smaller path MTU there, SEND", IBV_WR_SEND, 600, &plain, &small,
			IBV_WC_REM_INV_REQ_ERR, NAK_INVALID);
}

int main(int argc, char **argv)
{
	static const enum ibv_wr_opcode opcodes[] = {IBV_WR_SEND, IBV_WR_RDMA_WRITE,
						     IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD};

	place = ep_main(argc, argv);
	for (size_t i = 0; i < FAULTS; i++) {
		/*
		 * One-sided requests between processes take no PSN: to them a peer that began anew
		 * is the same.
		 */
		size_t kinds =
			faults[i].prepare == begun_anew ? 1 : sizeof(opcodes) / sizeof(opcodes[0]);

		for (size_t k = 0; k < kinds; k++)
			short_timers(&faults[i], opcodes[k]);
		no_timer(&faults[i]);
	}
	long_timers(&faults[1]);
	long_timers(&faults[4]);
	long_timers(&faults[5]);
	long_timers(&faults[6]);
	long_timers(&faults[7]);
	long_timers(&faults[9]);
	long_timers(&faults[12]);
	if (place == EP_APART)
		late_but_in_time();
	else
		destroyed();
	a_little_late();
	misfits();
	return expect_done();
}
