/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The end of a connection itself: its objects, and what each request does to them. */
#include "support/end_server.h"

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "support/check.h"
#include "support/clock.h"
#include "support/walk.h"

static struct ibv_qp *create_extended(struct end *end, struct ibv_qp_init_attr *attr)
{
	struct ibv_qp_init_attr_ex ex = {
		.qp_context = attr->qp_context,
		.send_cq = attr->send_cq,
		.recv_cq = attr->recv_cq,
		.srq = attr->srq,
		.cap = attr->cap,
		.qp_type = attr->qp_type,
		.sq_sig_all = attr->sq_sig_all,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = end->pd,
		.send_ops_flags = end->config.send_ops,
	};
	struct ibv_qp *qp = ibv_create_qp_ex(end->ctx, &ex);

	attr->cap = ex.cap;
	return qp;
}

static void open_queues(struct end *end)
{
	const struct end_config *config = &end->config;
	struct ibv_srq_init_attr srq_attr = {
		.attr = {.max_wr = config->srq_wr, .max_sge = config->srq_sge},
	};
	struct ibv_qp_init_attr attr = {
		.qp_context = end,
		.qp_type = config->type,
		.sq_sig_all = config->sig_all,
		.cap = {.max_send_wr = config->send_wr,
			.max_recv_wr = config->recv_wr,
			.max_send_sge = config->send_sge,
			.max_recv_sge = config->recv_sge,
			.max_inline_data = config->inline_data},
	};

	for (int i = 0; i < 2; i++) {
		end->cq[i] = ibv_create_cq(end->ctx, (int)config->cqe, end, NULL, 0);
		CHECK(end->cq[i]);
	}
	if (config->srq_wr) {
		end->srq =
			ibv_create_srq(config->srq_other_pd ? end->other_pd : end->pd, &srq_attr);
		CHECK(end->srq);
	}
	attr.send_cq = end->cq[END_SEND_CQ];
	attr.recv_cq = end->cq[END_RECV_CQ];
	attr.srq = end->srq;
	end->qp = config->send_ops ? create_extended(end, &attr) : ibv_create_qp(end->pd, &attr);
	CHECK(end->qp);
	end->info.max_send_wr = attr.cap.max_send_wr;
	end->info.max_recv_wr = attr.cap.max_recv_wr;
	end->info.max_send_sge = attr.cap.max_send_sge;
	end->info.max_recv_sge = attr.cap.max_recv_sge;
	end->info.max_inline = attr.cap.max_inline_data;
}

static void serve_open(struct end *end)
{
	const struct end_config *config = &end->config;
	int flags;

	end->ctx = device_open();
	flags = fcntl(end->ctx->async_fd, F_GETFL);
	CHECK(flags >= 0);
	CHECK(fcntl(end->ctx->async_fd, F_SETFL, flags | O_NONBLOCK) == 0);
	end->pd = ibv_alloc_pd(end->ctx);
	CHECK(end->pd);
	end->other_pd = ibv_alloc_pd(end->ctx);
	CHECK(end->other_pd);
	end->buf = mmap(NULL, config->buf_len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			-1, 0);
	CHECK(end->buf != MAP_FAILED);
	end->mr = ibv_reg_mr(end->pd, end->buf, config->buf_len, (int)config->mr_access);
	CHECK(end->mr);
	open_queues(end);
	end->info.qpn = end->qp->qp_num;
	end->info.psn = config->psn;
	end->info.rkey = end->mr->rkey;
	end->info.lkey = end->mr->lkey;
	end->info.addr = (uintptr_t)end->buf;
	CHECK(ibv_query_gid(end->ctx, 1, config->sgid_index, &end->info.gid) == 0);
}

static int serve_close(struct end *end)
{
	EXPECT_EQ(ibv_destroy_qp(end->qp), 0);
	if (end->srq)
		EXPECT_EQ(ibv_destroy_srq(end->srq), 0);
	for (int i = 0; i < 2; i++)
		EXPECT_EQ(ibv_destroy_cq(end->cq[i]), 0);
	for (int i = 0; i < END_WINDOWS; i++)
		if (end->window[i])
			EXPECT_EQ(ibv_dealloc_mw(end->window[i]), 0);
	for (int i = 0; i < END_EXTRA_MRS; i++)
		if (end->extra[i])
			EXPECT_EQ(ibv_dereg_mr(end->extra[i]), 0);
	EXPECT_EQ(ibv_dereg_mr(end->mr), 0);
	EXPECT_EQ(ibv_dealloc_pd(end->other_pd), 0);
	EXPECT_EQ(ibv_dealloc_pd(end->pd), 0);
	EXPECT_EQ(ibv_close_device(end->ctx), 0);
	munmap(end->buf, end->config.buf_len);
	return 0;
}

static int serve_bring_to(struct end *end, const struct end_info *peer, enum ibv_qp_state state)
{
	const struct end_config *c = &end->config;
	struct ibv_qp_attr attr = {
		.pkey_index = c->pkey_index,
		.port_num = 1,
		.qkey = c->qkey,
		.qp_access_flags = c->qp_access,
		.path_mtu = (enum ibv_mtu)c->mtu,
		.dest_qp_num = peer->qpn,
		.rq_psn = peer->psn,
		.sq_psn = c->psn,
		.max_rd_atomic = c->rd_atomic,
		.max_dest_rd_atomic = c->dest_rd_atomic,
		.min_rnr_timer = c->min_rnr_timer,
		.timeout = c->timeout,
		.retry_cnt = c->retry_cnt,
		.rnr_retry = c->rnr_retry,
		.ah_attr = {.is_global = 1,
			    .port_num = 1,
			    .grh = {.dgid = peer->gid,
				    .sgid_index = c->sgid_index,
				    .hop_limit = 64}},
	};

	return walk_to(end->qp, &attr, state);
}

static int serve_state(struct end *end)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	if (ibv_query_qp(end->qp, &attr, IBV_QP_STATE, &init))
		return -1;
	return (int)attr.qp_state;
}

static int serve_post_recv(struct end *end, struct end_request *request)
{
	struct ibv_recv_wr *bad = NULL;
	struct ibv_recv_wr wr = {
		.wr_id = request->wr.wr_id,
		.sg_list = request->sge,
		.num_sge = request->a,
	};

	return end->srq ? ibv_post_srq_recv(end->srq, &wr, &bad)
			: ibv_post_recv(end->qp, &wr, &bad);
}

static int serve_post_send(struct end *end, struct end_request *request)
{
	struct ibv_send_wr *bad = NULL;

	request->wr.sg_list = request->sge;
	request->wr.next = NULL;
	return ibv_post_send(end->qp, &request->wr, &bad);
}

static int serve_poll(struct end *end, int which, int max, int ms, struct ibv_wc *wc)
{
	uint64_t begun = now_us();
	int got = 0;

	for (;;) {
		int n = ibv_poll_cq(end->cq[which], max - got, wc + got);

		CHECK(n >= 0);
		got += n;
		if (got == max || (!n && now_us() - begun >= (uint64_t)ms * 1000u))
			return got;
		if (!n)
			wait_once(begun);
	}
}

static void serve_event(struct end *end, int ms, struct end_event *event)
{
	struct pollfd poller = {.fd = end->ctx->async_fd, .events = POLLIN};
	struct ibv_async_event got;

	memset(event, 0, sizeof(*event));
	event->type = -1;
	if (poll(&poller, 1, ms) != 1 || ibv_get_async_event(end->ctx, &got))
		return;
	event->type = (int)got.event_type;
	event->own_qp = got.element.qp == end->qp;
	event->own_srq = end->srq && got.element.srq == end->srq;
	for (int i = 0; i < 2; i++)
		event->own_cq[i] = got.element.cq == end->cq[i];
	ibv_ack_async_event(&got);
}

static int serve_reg(struct end *end, const struct end_request *request, struct end_key *key)
{
	struct ibv_pd *pd = request->b ? end->other_pd : end->pd;
	int index = 0;

	while (index < END_EXTRA_MRS && end->extra[index])
		index++;
	CHECK(index < END_EXTRA_MRS);
	end->extra[index] = ibv_reg_mr(pd, end->buf + request->offset, request->length, request->a);
	if (!end->extra[index])
		return errno;
	key->index = index;
	key->lkey = end->extra[index]->lkey;
	key->rkey = end->extra[index]->rkey;
	return 0;
}

static int serve_dereg(struct end *end, int index)
{
	int rc = ibv_dereg_mr(end->extra[index]);

	if (!rc)
		end->extra[index] = NULL;
	return rc;
}

static int serve_window(struct end *end, int index, enum ibv_mw_type type)
{
	end->window[index] = ibv_alloc_mw(end->pd, type);
	return end->window[index] ? 0 : errno;
}

static int serve_bind(struct end *end, const struct end_request *request, struct end_key *key)
{
	struct ibv_mw *mw = end->window[request->a];
	struct ibv_mw_bind_info info = {
		.mr = request->b < 0 ? NULL : end->extra[request->b],
		.addr = request->b < 0 ? 0 : (uintptr_t)end->buf + request->offset,
		.length = request->length,
		.mw_access_flags = (unsigned int)request->c,
	};
	struct ibv_mw_bind bind = {.wr_id = 77, .send_flags = IBV_SEND_SIGNALED, .bind_info = info};
	struct ibv_send_wr wr = {
		.wr_id = 77, .send_flags = IBV_SEND_SIGNALED, .opcode = IBV_WR_BIND_MW};
	struct ibv_send_wr *bad;
	int rc;

	if (mw->type == IBV_MW_TYPE_1) {
		rc = ibv_bind_mw(end->qp, mw, &bind);
		key->rkey = mw->rkey;
		return rc;
	}
	wr.bind_mw.mw = mw;
	wr.bind_mw.rkey = key->rkey = ibv_inc_rkey(mw->rkey);
	wr.bind_mw.bind_info = info;
	return ibv_post_send(end->qp, &wr, &bad);
}

static int serve_window_free(struct end *end, int index)
{
	int rc = ibv_dealloc_mw(end->window[index]);

	if (!rc)
		end->window[index] = NULL;
	return rc;
}

/* Maps pages of an empty file: the addresses stay taken, so that no other mapping gets there. */
static void serve_vanish(struct end *end, const struct end_request *request)
{
	int fd = memfd_create("empty", MFD_CLOEXEC);

	CHECK(fd >= 0);
	CHECK(mmap(end->buf + request->offset, request->length, PROT_READ | PROT_WRITE,
		   MAP_SHARED | MAP_FIXED, fd, 0) != MAP_FAILED);
	close(fd);
}

static int serve_counter(struct end *end, int which)
{
	struct ibv_port_attr attr;

	CHECK(ibv_query_port(end->ctx, 1, &attr) == 0);
	return (int)(which ? attr.bad_pkey_cntr : attr.qkey_viol_cntr);
}

void end_serve(struct end *end, struct end_request *request, struct end_reply *reply)
{
	reply->result = 0;
	switch (request->verb) {
	case END_OPEN:
		end->config = request->config;
		serve_open(end);
		reply->info = end->info;
		break;
	case END_CLOSE:
		reply->result = serve_close(end);
		break;
	case END_BRING_TO:
		reply->result = serve_bring_to(end, &request->peer, (enum ibv_qp_state)request->a);
		break;
	case END_MODIFY:
		reply->result = ibv_modify_qp(end->qp, &request->attr, request->a);
		break;
	case END_STATE:
		reply->result = serve_state(end);
		break;
	case END_POST_RECV:
		reply->result = serve_post_recv(end, request);
		break;
	case END_POST_SEND:
		reply->result = serve_post_send(end, request);
		break;
	case END_POLL:
		reply->result = serve_poll(end, request->a, request->b, request->c, reply->wc);
		break;
	case END_EVENT:
		serve_event(end, request->a, &reply->event);
		break;
	case END_POKE:
		memcpy(end->buf + request->offset, request->data, request->length);
		break;
	case END_PEEK:
		memcpy(reply->data, end->buf + request->offset, request->length);
		break;
	case END_REG:
		reply->result = serve_reg(end, request, &reply->key);
		break;
	case END_DEREG:
		reply->result = serve_dereg(end, request->a);
		break;
	case END_WINDOW:
		reply->result = serve_window(end, request->a, (enum ibv_mw_type)request->b);
		break;
	case END_BIND:
		reply->result = serve_bind(end, request, &reply->key);
		break;
	case END_WINDOW_FREE:
		reply->result = serve_window_free(end, request->a);
		break;
	case END_VANISH:
		serve_vanish(end, request);
		break;
	case END_COUNTER:
		reply->result = serve_counter(end, request->a);
		break;
	}
}
