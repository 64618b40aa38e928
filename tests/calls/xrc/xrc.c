/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * XRC within one process (ibv_open_xrcd(3), ibv_create_srq_ex(3), ibv_create_qp_ex(3),
 * ibv_open_qp(3), IBA annex A14): what the calls refuse, which object keeps which alive, and what
 * each kind of request does with the queue that it names.
 */
#include "support/xrc.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/check.h"
#include "support/clock.h"
#include "support/qp_state.h"

static struct resources resources;
static char path[64], moved[72];

#define REFUSED(call, err)                       \
	do {                                     \
		errno = 0;                       \
		CHECK(!(call));                  \
		CHECK_EQ(errno, err); /* NULL */ \
	} while (0)

static void domains(void)
{
	struct ibv_xrcd_init_attr attr = {.fd = -1, .oflags = O_CREAT};
	struct ibv_xrcd *a, *b;

	promise("a domain belongs to an inode: O_CREAT, O_EXCL, bad descriptors, renamed files");
	REFUSED(ibv_open_xrcd(resources.context, &attr), EINVAL);
	attr.comp_mask = IBV_XRCD_INIT_ATTR_FD;
	REFUSED(ibv_open_xrcd(resources.context, &attr), EINVAL);
	attr.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
	attr.fd = 9999;
	REFUSED(ibv_open_xrcd(resources.context, &attr), EBADF);
	attr.fd = -2;
	REFUSED(ibv_open_xrcd(resources.context, &attr), EBADF);
	REFUSED(xrc_domain(resources.context, path, 0), EAGAIN);
	a = xrc_domain(resources.context, path, O_CREAT | O_EXCL);
	CHECK(a && a->context == resources.context);
	REFUSED(xrc_domain(resources.context, path, O_CREAT | O_EXCL), EINVAL);
	CHECK(rename(path, moved) == 0);
	b = xrc_domain(resources.context, moved, 0);
	CHECK(b && b != a);
	REFUSED(xrc_domain(resources.context, path, 0), EAGAIN); /* a new file */
	CHECK_ZERO(ibv_close_xrcd(a));
	a = xrc_domain(resources.context, moved, 0);
	CHECK(a);
	CHECK_ZERO(ibv_close_xrcd(a));
	CHECK_ZERO(ibv_close_xrcd(b));
	REFUSED(xrc_domain(resources.context, moved, 0), EAGAIN); /* the last reference is gone */
	unlink(moved);
	unlink(path);
	a = xrc_domain(resources.context, NULL, O_CREAT);
	b = xrc_domain(resources.context, NULL, O_CREAT | O_EXCL);
	CHECK(a && b);
	CHECK_ZERO(ibv_close_xrcd(a));
	CHECK_ZERO(ibv_close_xrcd(b));
}

static void queues(void)
{
	struct ibv_srq_init_attr plain = {.attr = {.max_wr = 4, .max_sge = 1}};
	struct ibv_xrcd *xrcd = xrc_domain(resources.context, NULL, O_CREAT);
	struct ibv_srq_init_attr_ex attr = xrc_srq_attr(&resources, xrcd);
	struct ibv_qp_init_attr qp = {
		.send_cq = resources.cq, .recv_cq = resources.cq, .qp_type = IBV_QPT_RC};
	struct xrc_queue one, two;
	uint32_t number;

	promise("an XRC queue needs domain, CQ and PD, has a number, and keeps them alive");
	for (int bit = 0; bit < 4; bit++) {
		static const uint32_t needed[] = {IBV_SRQ_INIT_ATTR_PD, IBV_SRQ_INIT_ATTR_XRCD,
						  IBV_SRQ_INIT_ATTR_CQ, 1u << 20};
		struct ibv_srq_init_attr_ex bad = attr;

		bad.comp_mask ^= needed[bit];
		REFUSED(ibv_create_srq_ex(resources.context, &bad), EINVAL);
	}
	xrc_queue_open(&one, &resources, xrcd);
	xrc_queue_open(&two, &resources, xrcd);
	CHECK(one.number && two.number && one.number != two.number);
	CHECK_EQ(ibv_destroy_cq(one.cq), EBUSY);
	CHECK_EQ(ibv_dealloc_pd(one.pd), EBUSY);
	CHECK_EQ(ibv_close_xrcd(xrcd), EBUSY);
	qp.srq = one.srq;
	REFUSED(ibv_create_qp(resources.pd, &qp), EINVAL);
	qp.srq = ibv_create_srq(resources.pd, &plain);
	CHECK(qp.srq);
	CHECK_EQ(ibv_get_srq_num(qp.srq, &number), EINVAL);
	CHECK_ZERO(ibv_destroy_srq(qp.srq));
	xrc_queue_close(&one);
	xrc_queue_close(&two);
	CHECK_ZERO(ibv_close_xrcd(xrcd));
}

static void queue_pairs(void)
{
	struct ibv_xrcd *xrcd = xrc_domain(resources.context, NULL, O_CREAT);
	struct ibv_xrcd *other = xrc_domain(resources.context, NULL, O_CREAT);
	struct ibv_qp_init_attr_ex send = {
		.qp_type = IBV_QPT_XRC_SEND,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = resources.pd,
		.send_cq = resources.cq,
		.cap = {.max_send_wr = 2, .max_send_sge = 1, .max_recv_wr = 9, .max_recv_sge = 2},
	};
	struct ibv_qp_open_attr open_attr = {.comp_mask = IBV_QP_OPEN_ATTR_NUM};
	struct ibv_recv_wr recv = {0}, *bad_recv;
	struct ibv_send_wr wr = {0}, *bad_send;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr shown;
	struct ibv_qp *qp, *again;

	promise("XRC_SEND has no receive side, XRC_RECV neither CQ nor PD; ibv_open_qp finds it by number in its domain");
	qp = ibv_create_qp_ex(resources.context, &send);
	CHECK(qp && send.cap.max_recv_wr == 0 && send.cap.max_recv_sge == 0);
	CHECK_EQ(ibv_post_recv(qp, &recv, &bad_recv), EINVAL);
	CHECK_ZERO(ibv_destroy_qp(qp));
	REFUSED(xrc_receiver(resources.context, NULL), EINVAL);
	qp = xrc_receiver(resources.context, xrcd);
	CHECK(qp && !qp->pd && !qp->send_cq && !qp->recv_cq && !qp->srq);
	CHECK_EQ(ibv_close_xrcd(xrcd), EBUSY);
	CHECK_EQ(ibv_post_send(qp, &wr, &bad_send), EINVAL);
	CHECK_EQ(ibv_post_recv(qp, &recv, &bad_recv), EINVAL);
	CHECK_ZERO(ibv_query_qp(qp, &shown, IBV_QP_STATE, &init));
	CHECK(init.qp_type == IBV_QPT_XRC_RECV && !init.send_cq && !init.recv_cq && !init.srq);

	REFUSED(ibv_open_qp(resources.context, &open_attr), EINVAL);
	REFUSED(xrc_receiver_open(resources.context, other, qp->qp_num), EINVAL);
	REFUSED(xrc_receiver_open(resources.context, xrcd, qp->qp_num ^ 1), EINVAL);
	again = xrc_receiver_open(resources.context, xrcd, qp->qp_num);
	CHECK(again && again != qp && again->qp_num == qp->qp_num);
	ep_init_qp(again, &(struct ep_config){.type = IBV_QPT_XRC_RECV});
	CHECK_EQ(qp_state(qp), IBV_QPS_INIT); /* one queue pair */
	CHECK_ZERO(ibv_destroy_qp(qp));
	CHECK_EQ(qp_state(again), IBV_QPS_INIT);
	CHECK_EQ(ibv_close_xrcd(xrcd), EBUSY);
	CHECK_ZERO(ibv_destroy_qp(again));
	CHECK_ZERO(ibv_close_xrcd(xrcd));
	CHECK_ZERO(ibv_close_xrcd(other));
}

/* A sender, two queues of one domain (two PDs, two CQs), a receiver with two handles. */
struct line {
	struct ibv_xrcd *xrcd;
	struct xrc_queue queue[2];
	struct ibv_qp *qp, *other_handle;
	struct endpoint sender;
};

/* The receiver expects a first PSN so much above the one that comes. */
static void line_open_off(struct line *l, uint32_t off)
{
	struct peer receiver, sender;

	l->xrcd = xrc_domain(resources.context, NULL, O_CREAT);
	CHECK(l->xrcd);
	xrc_queue_open(&l->queue[0], &resources, l->xrcd);
	xrc_queue_open(&l->queue[1], &resources, l->xrcd);
	l->qp = xrc_receiver(resources.context, l->xrcd);
	CHECK(l->qp);
	l->other_handle = xrc_receiver_open(resources.context, l->xrcd, l->qp->qp_num);
	CHECK(l->other_handle);
	xrc_sender_open(&l->sender, &resources);
	sender = l->sender.local;
	sender.psn = (sender.psn + off) & 0xffffff;
	xrc_receiver_connect(&resources, l->qp, &sender);
	receiver = xrc_peer(&resources, l->qp);
	ep_connect(&l->sender, &receiver);
}

static void line_open(struct line *l)
{
	line_open_off(l, 0);
}

static void line_close(struct line *l)
{
	CHECK_ZERO(ibv_destroy_qp(l->qp));
	CHECK_ZERO(ibv_destroy_qp(l->other_handle));
	ep_close(&l->sender);
	xrc_queue_close(&l->queue[0]);
	xrc_queue_close(&l->queue[1]);
	CHECK_ZERO(ibv_close_xrcd(l->xrcd));
}

/* What comes is the queue's: its receive, in its CQ, under the receiver's number. */
static void receive_expect(struct line *l, int which, uint64_t wr_id, enum ibv_wc_opcode opcode,
			   uint32_t length)
{
	struct ibv_wc wc;

	completion_expect(l->queue[which].cq, wr_id, IBV_WC_SUCCESS, &wc);
	CHECK_EQ(wc.qp_num, l->qp->qp_num);
	CHECK_EQ(wc.opcode, opcode);
	CHECK_EQ(wc.byte_len, length);
}

static void requests(void)
{
	struct xrc_target target;
	struct line l;

	promise("SEND, WRITE, READ and ATOMIC are about the queue that each request names");
	line_open(&l);
	for (int i = 0; i < 2; i++) {
		uint64_t word = 40;

		target = xrc_target(&l.queue[i]);
		memset(l.sender.buffer, 0x30 + i, XRC_BUFFER);
		xrc_post(&l.queue[i], 7, 64, 5000);
		CHECK_ZERO(xrc_request(&l.sender, IBV_WR_SEND, &target, 5000));
		completion_expect(resources.cq, 1, IBV_WC_SUCCESS, NULL);
		receive_expect(&l, i, 7, IBV_WC_RECV, 5000);
		CHECK(l.queue[i].buffer[63] == 0 && l.queue[i].buffer[64] == 0x30 + i &&
		      l.queue[i].buffer[5063] == 0x30 + i && l.queue[i].buffer[5064] == 0);
		CHECK_ZERO(xrc_request(&l.sender, IBV_WR_RDMA_WRITE, &target, XRC_BUFFER));
		completion_expect(resources.cq, 1, IBV_WC_SUCCESS, NULL);
		CHECK_EQ(l.queue[i].buffer[XRC_BUFFER - 1], 0x30 + i);
		xrc_post(&l.queue[i], 8, 0, 0);
		CHECK_ZERO(xrc_request(&l.sender, IBV_WR_RDMA_WRITE_WITH_IMM, &target, 16));
		completion_expect(resources.cq, 1, IBV_WC_SUCCESS, NULL);
		receive_expect(&l, i, 8, IBV_WC_RECV_RDMA_WITH_IMM, 16);
		memset(l.queue[i].buffer, 0x50 + i, XRC_BUFFER);
		CHECK_ZERO(xrc_request(&l.sender, IBV_WR_RDMA_READ, &target, XRC_BUFFER));
		completion_expect(resources.cq, 1, IBV_WC_SUCCESS, NULL);
		CHECK(l.sender.buffer[0] == 0x50 + i &&
		      l.sender.buffer[XRC_BUFFER - 1] == 0x50 + i);
		memcpy(l.queue[i].buffer, &word, 8);
		CHECK_ZERO(xrc_request(&l.sender, IBV_WR_ATOMIC_FETCH_AND_ADD, &target, 8));
		completion_expect(resources.cq, 1, IBV_WC_SUCCESS, NULL);
		CHECK(!memcmp(l.sender.buffer, &word, 8));
		memcpy(&word, l.queue[i].buffer, 8);
		CHECK_EQ(word, 41);
	}
	/* Without a receive the sender waits for one. */
	target = xrc_target(&l.queue[1]);
	CHECK_ZERO(xrc_request(&l.sender, IBV_WR_SEND_WITH_IMM, &target, 1));
	completion_none(resources.cq, 20);
	xrc_post(&l.queue[0], 1, 0, 64); /* not this one */
	completion_none(resources.cq, 20);
	xrc_post(&l.queue[1], 9, 0, 64);
	completion_expect(resources.cq, 1, IBV_WC_SUCCESS, NULL);
	receive_expect(&l, 1, 9, IBV_WC_RECV, 1);
	completion_none(l.queue[0].cq, 1);
	line_close(&l);
}

/*
 * One end of a pair of queue pairs of this process, which exist to bind windows of a protection
 * domain.
 */
struct binder {
	struct resources resources;
	struct endpoint ep, peer;
};

static void binder_open(struct binder *b, struct ibv_pd *pd)
{
	b->resources = resources;
	b->resources.pd = pd;
	ep_open_on(&b->ep, &b->resources, NULL, NULL, 4096);
	ep_open_on(&b->peer, &b->resources, NULL, NULL, 4096);
	ep_link(&b->ep, &b->peer);
}

static void binder_close(struct binder *b)
{
	ep_close(&b->ep);
	ep_close(&b->peer);
}

/*
 * Binds the window to `length` bytes at `addr` of the queue's region, for WRITE and READ; length 0
 * unbinds it.
 */
static void window_bind(struct binder *b, struct ibv_mw *mw, struct ibv_mr *mr, uint64_t addr,
			uint64_t length)
{
	struct ibv_mw_bind bind = {.wr_id = 4,
				   .send_flags = IBV_SEND_SIGNALED,
				   .bind_info = {.mr = mr,
						 .addr = addr,
						 .length = length,
						 .mw_access_flags = IBV_ACCESS_REMOTE_WRITE |
								    IBV_ACCESS_REMOTE_READ}};

	CHECK_ZERO(ibv_bind_mw(b->ep.qp, mw, &bind));
	completion_expect(resources.cq, 4, IBV_WC_SUCCESS, NULL);
}

static void windows(void)
{
	struct xrc_target target;
	struct binder binder;
	struct ibv_mw *mw;
	struct ibv_mr *mr;
	struct line l;

	promise("a window of type 1 serves requests that name a queue of its protection domain, within its bounds, until it is unbound");
	line_open(&l);
	binder_open(&binder, l.queue[1].pd);
	mr = ibv_reg_mr(l.queue[1].pd, l.queue[1].buffer, XRC_BUFFER,
			IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
				IBV_ACCESS_MW_BIND);
	CHECK(mr);
	mw = ibv_alloc_mw(l.queue[1].pd, IBV_MW_TYPE_1);
	CHECK(mw);
	target = xrc_target(&l.queue[1]);
	target.addr += 4096;
	window_bind(&binder, mw, mr, target.addr, 8192);
	target.rkey = mw->rkey;
	memset(l.sender.buffer, 0x77, 8192);
	CHECK_ZERO(xrc_request(&l.sender, IBV_WR_RDMA_WRITE, &target, 8192));
	completion_expect(resources.cq, 1, IBV_WC_SUCCESS, NULL);
	CHECK(l.queue[1].buffer[4095] == 0 && l.queue[1].buffer[4096] == 0x77 &&
	      l.queue[1].buffer[12287] == 0x77 && l.queue[1].buffer[12288] == 0);
	memset(l.queue[1].buffer + 4096, 0x78, 8192);
	CHECK_ZERO(xrc_request(&l.sender, IBV_WR_RDMA_READ, &target, 8192));
	completion_expect(resources.cq, 1, IBV_WC_SUCCESS, NULL);
	CHECK(l.sender.buffer[0] == 0x78 && l.sender.buffer[8191] == 0x78);
	window_bind(&binder, mw, NULL, 0, 0);
	CHECK_ZERO(xrc_request(&l.sender, IBV_WR_RDMA_WRITE, &target, 8192));
	completion_expect(resources.cq, 1, IBV_WC_REM_ACCESS_ERR, NULL);
	CHECK_EQ(l.queue[1].buffer[4096], 0x78);
	CHECK_EQ(event_next(resources.context, 5000), IBV_EVENT_QP_ACCESS_ERR);
	CHECK_EQ(event_next(resources.context, 5000), IBV_EVENT_QP_ACCESS_ERR);
	CHECK_ZERO(ibv_dealloc_mw(mw));
	CHECK_ZERO(ibv_dereg_mr(mr));
	binder_close(&binder);
	line_close(&l);
}

/* How a request goes wrong, and what its sender and the receiver's holders learn. */
struct wrong {
	const char *what;
	enum ibv_wr_opcode opcode;
	enum ibv_wc_status status;
	enum ibv_event_type event;
	void (*spoil)(struct line *l, struct xrc_target *target);
};

static void no_such_queue(struct line *l, struct xrc_target *target)
{
	(void)l;
	target->number ^= 0x800000;
}

static void queue_destroyed(struct line *l, struct xrc_target *target)
{
	(void)target;
	xrc_queue_close(&l->queue[1]);
	xrc_queue_open(&l->queue[1], &resources, l->xrcd); /* a number is not used again soon */
}

static struct ibv_xrcd *foreign_xrcd;
static struct xrc_queue foreign;

static void queue_of_another_domain(struct line *l, struct xrc_target *target)
{
	(void)l;
	*target = xrc_target(&foreign);
}

static void key_of_another_queue(struct line *l, struct xrc_target *target)
{
	target->rkey = xrc_target(&l->queue[0]).rkey;
	target->addr = xrc_target(&l->queue[0]).addr;
}

static void errors(void)
{
	static const struct wrong table[] = {
		{"no such queue", IBV_WR_SEND, IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR,
		 no_such_queue},
		{"no such queue, READ", IBV_WR_RDMA_READ, IBV_WC_REM_INV_REQ_ERR,
		 IBV_EVENT_QP_REQ_ERR, no_such_queue},
		{"destroyed queue", IBV_WR_RDMA_WRITE, IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR,
		 queue_destroyed},
		{"queue of another domain", IBV_WR_SEND, IBV_WC_REM_INV_REQ_ERR,
		 IBV_EVENT_QP_REQ_ERR, queue_of_another_domain},
		{"WRITE with a key of another queue's PD", IBV_WR_RDMA_WRITE, IBV_WC_REM_ACCESS_ERR,
		 IBV_EVENT_QP_ACCESS_ERR, key_of_another_queue},
		{"READ with a key of another queue's PD", IBV_WR_RDMA_READ, IBV_WC_REM_ACCESS_ERR,
		 IBV_EVENT_QP_ACCESS_ERR, key_of_another_queue},
		{"ATOMIC with a key of another queue's PD", IBV_WR_ATOMIC_FETCH_AND_ADD,
		 IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR, key_of_another_queue},
	};

	foreign_xrcd = xrc_domain(resources.context, NULL, O_CREAT);
	xrc_queue_open(&foreign, &resources, foreign_xrcd);
	xrc_post(&foreign, 1, 0, 64);
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct xrc_target target;
		struct line l;

		promise(table[i].what);
		line_open(&l);
		xrc_post(&l.queue[1], 3, 0, 64);
		target = xrc_target(&l.queue[1]);
		table[i].spoil(&l, &target);
		CHECK_ZERO(xrc_request(&l.sender, table[i].opcode, &target, 8));
		completion_expect(resources.cq, 1, table[i].status, NULL);
		CHECK_EQ(qp_state(l.sender.qp), IBV_QPS_ERR);
		CHECK_EQ(qp_state(l.qp), IBV_QPS_ERR);
		/* Every holder is told. */
		CHECK_EQ(event_next(resources.context, 5000), table[i].event);
		CHECK_EQ(event_next(resources.context, 5000), table[i].event);
		CHECK_EQ(event_next(resources.context, 0), -1);
		/* Receives belong to the queue, which serves others. */
		completion_none(l.queue[1].cq, 1);
		completion_none(foreign.cq, 1);
		line_close(&l);
	}
	xrc_queue_close(&foreign);
	CHECK_ZERO(ibv_close_xrcd(foreign_xrcd));
}

/* PSNs that do not fit end a request as on other queue pairs; the receiver and its queue go on. */
static void psns(void)
{
	static const enum ibv_wr_opcode opcodes[] = {IBV_WR_SEND, IBV_WR_RDMA_WRITE,
						     IBV_WR_RDMA_READ};
	static const uint32_t offs[] = {1, 0xffffff};

	for (size_t i = 0; i < 6; i++) {
		struct xrc_target target;
		struct ibv_wc wc;
		struct line l;

		promise("PSNs that do not fit");
		line_open_off(&l, offs[i / 3]);
		xrc_post(&l.queue[1], 3, 0, 64);
		target = xrc_target(&l.queue[1]);
		CHECK_ZERO(xrc_request(&l.sender, opcodes[i % 3], &target, 8));
		completion_expect(resources.cq, 1, IBV_WC_RETRY_EXC_ERR, &wc);
		CHECK_EQ(wc.vendor_err, 0x510);
		CHECK_EQ(qp_state(l.qp), IBV_QPS_RTS);
		completion_none(l.queue[1].cq, 1);
		line_close(&l);
	}
}

/*
 * Attributes of the half that a type does not have are ignored, as Linux does; the others are
 * needed and shown.
 */
static void attributes(void)
{
	struct ibv_xrcd *xrcd = xrc_domain(resources.context, NULL, O_CREAT);
	struct ibv_qp *qp = xrc_receiver(resources.context, xrcd);
	struct ep_config config;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr shown,
		attr = {
			.qp_state = IBV_QPS_RTR,
			.path_mtu = IBV_MTU_512,
			.dest_qp_num = 0x1234,
			.rq_psn = 0x4321,
			.max_dest_rd_atomic = 3,
			.min_rnr_timer = 5,
			.ah_attr = {.is_global = 1,
				    .port_num = EP_PORT,
				    .grh = {.dgid = resources.gid, .hop_limit = 1}},
		};
	const int av = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	const int responder = IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	const int requester = IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
	struct endpoint sender;

	promise("each XRC type takes the attributes of its half");
	attr.ah_attr.grh.sgid_index = (uint8_t)resources.gid_index;
	config = ep_defaults(IBV_QPT_XRC_RECV);
	ep_init_qp(qp, &config);
	CHECK_EQ(ibv_modify_qp(qp, &attr, av), EINVAL);
	CHECK_EQ(ibv_modify_qp(qp, &attr, av | IBV_QP_MAX_DEST_RD_ATOMIC), EINVAL);
	CHECK_EQ(qp_state(qp), IBV_QPS_INIT);
	CHECK_ZERO(ibv_modify_qp(qp, &attr, av | responder));
	attr.qp_state = IBV_QPS_RTS;
	attr.timeout = 9;
	attr.sq_psn = 77;
	attr.retry_cnt = 7;
	CHECK_EQ(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN), EINVAL);
	CHECK_ZERO(ibv_modify_qp(qp, &attr,
				 IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | requester));
	CHECK_ZERO(ibv_query_qp(qp, &shown, IBV_QP_STATE, &init));
	CHECK(shown.qp_state == IBV_QPS_RTS && shown.dest_qp_num == 0x1234 &&
	      shown.rq_psn == 0x4321 && shown.sq_psn == 77 && shown.max_dest_rd_atomic == 3 &&
	      shown.min_rnr_timer == 5 && shown.path_mtu == IBV_MTU_512 && shown.timeout == 9);
	qp_move(qp, IBV_QPS_ERR);
	qp_move(qp, IBV_QPS_RESET);
	ep_init_qp(qp, &config);
	CHECK_ZERO(ibv_destroy_qp(qp));
	CHECK_ZERO(ibv_close_xrcd(xrcd));

	xrc_sender_open(&sender, &resources);
	attr.qp_state = IBV_QPS_RTR;
	CHECK_ZERO(ibv_modify_qp(sender.qp, &attr, av | responder));
	attr.qp_state = IBV_QPS_RTS;
	CHECK_EQ(ibv_modify_qp(sender.qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT),
		 EINVAL);
	CHECK_ZERO(ibv_modify_qp(sender.qp, &attr,
				 IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | requester));
	ep_close(&sender);
}

/* The queue's limit and its CQ's channel work as those of other queues. */
static void events(void)
{
	struct ibv_srq_attr limit = {.srq_limit = 2};
	struct xrc_target target;
	struct line l;

	promise("an XRC queue raises its limit event, and is quiet before that");
	line_open(&l);
	target = xrc_target(&l.queue[0]);
	for (int i = 0; i < 3; i++)
		xrc_post(&l.queue[0], 1, 0, 64);
	CHECK_ZERO(ibv_modify_srq(l.queue[0].srq, &limit, IBV_SRQ_LIMIT));
	for (int i = 0; i < 2; i++) {
		CHECK_EQ(event_next(resources.context, 0), -1);
		CHECK_ZERO(xrc_request(&l.sender, IBV_WR_SEND, &target, 8));
		completion_expect(resources.cq, 1, IBV_WC_SUCCESS, NULL);
		receive_expect(&l, 0, 1, IBV_WC_RECV, 8);
	}
	CHECK_EQ(event_next(resources.context, 5000), IBV_EVENT_SRQ_LIMIT_REACHED);
	CHECK_EQ(qp_state(l.qp), IBV_QPS_RTS);
	line_close(&l);
}

static void destroyed_under_way(void)
{
	struct xrc_target target;
	struct line l;

	promise("a queue, and a receiver, can be destroyed with receives posted and completions unpolled");
	line_open(&l);
	target = xrc_target(&l.queue[0]);
	for (int i = 0; i < 8; i++)
		xrc_post(&l.queue[0], 1, 0, 64);
	for (int i = 0; i < 4; i++)
		CHECK_ZERO(xrc_request(&l.sender, IBV_WR_SEND, &target, 8));
	for (int i = 0; i < 4; i++)
		completion_expect(resources.cq, 1, IBV_WC_SUCCESS, NULL);
	line_close(&l);
}

/* The receives that were used belong to the queue; its program must post others. */
static void destroyed_receiver(void)
{
	struct xrc_target target;
	struct ibv_wc wc;
	struct line l;

	promise("what a receiver has received is told after it was reset or destroyed");
	line_open(&l);
	target = xrc_target(&l.queue[0]);
	for (int i = 0; i < 4; i++) {
		xrc_post(&l.queue[0], (uint64_t)i, 0, 64);
		CHECK_ZERO(xrc_request(&l.sender, IBV_WR_SEND, &target, 8));
		completion_expect(resources.cq, 1, IBV_WC_SUCCESS, NULL);
	}
	uint32_t number = l.qp->qp_num;

	CHECK_ZERO(ibv_destroy_qp(l.other_handle));
	CHECK_ZERO(ibv_destroy_qp(l.qp));
	l.qp = xrc_receiver(resources.context, l.xrcd);
	l.other_handle = xrc_receiver_open(resources.context, l.xrcd, l.qp->qp_num);
	for (uint64_t i = 0; i < 4; i++) {
		completion_expect(l.queue[0].cq, i, IBV_WC_SUCCESS, &wc);
		CHECK_EQ(wc.qp_num, number);
	}
	line_close(&l);
}

int main(void)
{
	watchdog(60);
	snprintf(path, sizeof(path), "/tmp/verbatim-xrc-test-%d", (int)getpid());
	snprintf(moved, sizeof(moved), "%s.moved", path);
	resources_open(&resources, 256, false);
	domains();
	queues();
	queue_pairs();
	requests();
	windows();
	errors();
	psns();
	attributes();
	events();
	destroyed_under_way();
	destroyed_receiver();
	resources_close(&resources);
	return 0;
}
