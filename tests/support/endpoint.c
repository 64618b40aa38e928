/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Endpoints from opening to closing: resources, the queue pair and its states. */
#include "support/endpoint.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "support/check.h"
#include "support/endpoint_apart.h"
#include "support/qp_state.h"

void resources_open(struct resources *resources, int cqe, bool with_channel)
{
	struct ibv_port_attr port = {0};

	memset(resources, 0, sizeof(*resources));
	resources->context = device_open();
	resources->pd = ibv_alloc_pd(resources->context);
	CHECK(resources->pd);
	if (with_channel) {
		resources->channel = ibv_create_comp_channel(resources->context);
		CHECK(resources->channel);
	}
	if (cqe) {
		resources->cq = ibv_create_cq(resources->context, cqe, NULL, resources->channel, 0);
		CHECK(resources->cq);
	}
	CHECK_ZERO(ibv_query_port(resources->context, EP_PORT, &port));
	resources->mtu = port.active_mtu;
	resources_use_gid(resources, 0);
}

void resources_use_gid(struct resources *resources, int gid_index)
{
	resources->gid_index = gid_index;
	CHECK_ZERO(ibv_query_gid(resources->context, EP_PORT, gid_index, &resources->gid));
}

void resources_close(struct resources *resources)
{
	if (resources->cq)
		CHECK_ZERO(ibv_destroy_cq(resources->cq));
	if (resources->channel)
		CHECK_ZERO(ibv_destroy_comp_channel(resources->channel));
	CHECK_ZERO(ibv_dealloc_pd(resources->pd));
	CHECK_ZERO(ibv_close_device(resources->context));
	memset(resources, 0, sizeof(*resources));
}

struct ep_config ep_defaults(enum ibv_qp_type type)
{
	struct ep_config config = {
		.type = type,
		.cap = {.max_send_wr = 64,
			.max_recv_wr = 64,
			.max_send_sge = 4,
			.max_recv_sge = 4,
			.max_inline_data = 64},
		.mr_access = EP_ACCESS,
		.qp_access_flags = EP_ACCESS,
		.qkey = EP_QKEY,
		.max_rd_atomic = 4,
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = 1,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.buf_len = 1 << 16,
		.cqe = 256,
		.srq_sge = 4,
	};

	/* UC serves neither READ nor ATOMIC, but ibv_modify_qp(3) still requires the mask bit. */
	if (type == IBV_QPT_UC)
		config.qp_access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
	return config;
}

/* @cap gets what the queue pair has. */
static struct ibv_qp *create_extended(struct resources *resources, const struct ep_config *config,
				      void *qp_context, struct ibv_qp_cap *cap)
{
	struct ibv_qp_init_attr_ex init = {
		.qp_context = qp_context,
		.send_cq = config->send_cq ? config->send_cq : resources->cq,
		.recv_cq = config->recv_cq ? config->recv_cq : resources->cq,
		.srq = config->srq,
		.cap = config->cap,
		.qp_type = config->type,
		.sq_sig_all = config->sq_sig_all,
		.pd = resources->pd,
		.comp_mask = IBV_QP_INIT_ATTR_PD |
			     (config->send_ops ? IBV_QP_INIT_ATTR_SEND_OPS_FLAGS : 0),
		.send_ops_flags = config->send_ops,
	};
	struct ibv_qp *qp = ibv_create_qp_ex(resources->context, &init);

	CHECK_SAY(qp, "ibv_create_qp_ex: errno %d", errno);
	*cap = init.cap;
	return qp;
}

static struct ibv_qp *create_plain(struct resources *resources, const struct ep_config *config,
				   void *qp_context, struct ibv_qp_cap *cap)
{
	struct ibv_qp_init_attr init = {
		.qp_context = qp_context,
		.send_cq = config->send_cq,
		.recv_cq = config->recv_cq,
		.srq = config->srq,
		.cap = config->cap,
		.qp_type = config->type,
		.sq_sig_all = config->sq_sig_all,
	};
	struct ibv_qp *qp = ibv_create_qp(resources->pd, &init);

	CHECK_SAY(qp, "ibv_create_qp: errno %d", errno);
	*cap = init.cap;
	return qp;
}

void ep_init_qp(struct ibv_qp *qp, const struct ep_config *config)
{
	struct peer nobody = {0};
	struct ibv_qp_attr attr = ep_attr(config, &nobody, &nobody);

	CHECK_ZERO(qp_step(qp, &attr, IBV_QPS_INIT));
}

struct ibv_qp *ep_create_qp(struct resources *resources, const struct ep_config *config)
{
	struct ibv_qp_cap cap;
	struct ibv_qp *qp = create_extended(resources, config, NULL, &cap);

	ep_init_qp(qp, config);
	return qp;
}

/* The first PSN of an endpoint that asks for none: another one each time, and in each process. */
static uint32_t next_psn(void)
{
	static uint32_t psn = 0x5a17;
	uint32_t number = __atomic_add_fetch(&psn, 7919, __ATOMIC_RELAXED);

	return (number + (uint32_t)getpid() * 101) & 0xffffff;
}

static void *pages(size_t size)
{
	void *buffer = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(buffer != MAP_FAILED);
	return buffer;
}

/* ep->config is set. `buffer` NULL: makes one. */
static void make(struct endpoint *ep, struct resources *resources, void *buffer, size_t size)
{
	struct ep_config *config = &ep->config;

	ep->sock = -1;
	ep->resources = resources;
	ep->context = resources->context;
	ep->pd = resources->pd;
	ep->cq[EP_SEND_CQ] = config->send_cq ? config->send_cq : resources->cq;
	ep->cq[EP_RECV_CQ] = config->recv_cq ? config->recv_cq : resources->cq;
	ep->srq = config->srq;
	ep->size = size;
	ep->owns_buffer = !buffer;
	ep->buffer = buffer ? buffer : pages(size);
	ep->mr = ibv_reg_mr(ep->pd, ep->buffer, size, (int)config->mr_access);
	CHECK_SAY(ep->mr, "ibv_reg_mr of %zu bytes: errno %d", size, errno);
	ep->lkey = ep->mr->lkey;
	/* Both ways to create queue pairs are used. */
	ep->qp = ep->owns_resources && !config->send_ops
			 ? create_plain(resources, config, ep, &ep->cap)
			 : create_extended(resources, config, ep, &ep->cap);
	ep->local = (struct peer){
		.gid = resources->gid,
		.addr = (uintptr_t)ep->buffer,
		.length = size,
		.qpn = ep->qp->qp_num,
		.psn = config->psn,
		.rkey = ep->mr->rkey,
		.mtu = resources->mtu,
	};
}

void ep_open_on(struct endpoint *ep, struct resources *resources, const struct ep_config *config,
		void *buffer, size_t size)
{
	memset(ep, 0, sizeof(*ep));
	ep->config = config ? *config : ep_defaults(IBV_QPT_RC);
	ep->config.sgid_index = (uint8_t)resources->gid_index;
	if (!ep->config.psn)
		ep->config.psn = next_psn();
	make(ep, resources, buffer, size);
	ep_init_qp(ep->qp, &ep->config);
}

static void open_here(struct endpoint *ep)
{
	struct ep_config *config = &ep->config;
	struct resources *own = calloc(1, sizeof(*own));
	struct ibv_srq_init_attr srq = {
		.attr = {.max_wr = config->srq_wr, .max_sge = config->srq_sge},
	};
	int flags;

	CHECK(own);
	resources_open(own, 0, false);
	resources_use_gid(own, config->sgid_index);
	flags = fcntl(own->context->async_fd, F_GETFL);
	CHECK(flags >= 0 && !fcntl(own->context->async_fd, F_SETFL, flags | O_NONBLOCK));
	ep->owns_resources = true;
	ep->other_pd = ibv_alloc_pd(own->context);
	CHECK(ep->other_pd);
	config->send_cq = ibv_create_cq(own->context, (int)config->cqe, ep, NULL, 0);
	config->recv_cq = ibv_create_cq(own->context, (int)config->cqe, ep, NULL, 0);
	CHECK(config->send_cq && config->recv_cq);
	if (config->srq_wr) {
		config->srq = ibv_create_srq(config->srq_other_pd ? ep->other_pd : own->pd, &srq);
		CHECK(config->srq);
	}
	make(ep, own, NULL, config->buf_len);
}

void ep_open(struct endpoint *ep, const struct ep_config *config, enum ep_place place)
{
	memset(ep, 0, sizeof(*ep));
	ep->place = place;
	ep->config = *config;
	/* What is seen of messages shall not depend on the machine's ports; PSNs soon wrap. */
	if (!config->mtu)
		ep->config.mtu = IBV_MTU_1024;
	if (!config->psn)
		ep->config.psn = 0xfffff0;
	if (place == EP_APART)
		apart_open(ep);
	else
		open_here(ep);
}

static void close_own(struct endpoint *ep)
{
	if (ep->srq)
		CHECK_ZERO(ibv_destroy_srq(ep->srq));
	for (int i = 0; i < 2; i++)
		CHECK_ZERO(ibv_destroy_cq(ep->cq[i]));
	CHECK_ZERO(ibv_dealloc_pd(ep->other_pd));
	resources_close(ep->resources);
	free(ep->resources);
}

void ep_close(struct endpoint *ep)
{
	/* A case that a test names may consist in the closing: it then has one fact that held. */
	if (ep->place == EP_APART) {
		apart_close(ep);
		EXPECT_SAY(true, "closed");
		return;
	}
	if (ep->ah)
		CHECK_ZERO(ibv_destroy_ah(ep->ah));
	if (ep->qp)
		CHECK_ZERO(ibv_destroy_qp(ep->qp));
	for (int i = 0; i < EP_WINDOWS; i++)
		if (ep->window[i])
			CHECK_ZERO(ibv_dealloc_mw(ep->window[i]));
	for (int i = 0; i < EP_EXTRA_MRS; i++)
		if (ep->extra[i])
			CHECK_ZERO(ibv_dereg_mr(ep->extra[i]));
	if (ep->mr)
		CHECK_ZERO(ibv_dereg_mr(ep->mr));
	if (ep->owns_resources) {
		close_own(ep);
		EXPECT_SAY(true, "closed");
	}
	if (ep->owns_buffer)
		munmap(ep->buffer, ep->size);
	*ep = (struct endpoint){.config = ep->config, .local = ep->local, .remote = ep->remote};
}

struct ibv_qp_attr ep_attr(const struct ep_config *config, const struct peer *local,
			   const struct peer *remote)
{
	uint32_t mtu = config->mtu                ? config->mtu
		       : local->mtu < remote->mtu ? local->mtu
						  : remote->mtu;

	return (struct ibv_qp_attr){
		.pkey_index = config->pkey_index,
		.port_num = EP_PORT,
		.qkey = config->qkey,
		.qp_access_flags = config->qp_access_flags,
		.path_mtu = (enum ibv_mtu)mtu,
		.dest_qp_num = remote->qpn,
		.rq_psn = remote->psn,
		.sq_psn = local->psn,
		.max_rd_atomic = config->max_rd_atomic,
		.max_dest_rd_atomic = config->max_dest_rd_atomic,
		.min_rnr_timer = config->min_rnr_timer,
		.timeout = config->timeout,
		.retry_cnt = config->retry_cnt,
		.rnr_retry = config->rnr_retry,
		.ah_attr = {.is_global = 1,
			    .port_num = EP_PORT,
			    .grh = {.dgid = remote->gid,
				    .sgid_index = config->sgid_index,
				    .hop_limit = 64}},
	};
}

int ep_bring_to(struct endpoint *ep, const struct peer *peer, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr;

	if (ep->place == EP_APART)
		return apart_do(ep, &(struct ep_request){
					    .verb = EP_BRING_TO, .a = (int)state, .peer = *peer});
	attr = ep_attr(&ep->config, &ep->local, peer);
	return qp_bring_to(ep->qp, &attr, state);
}

void ep_connect(struct endpoint *ep, const struct peer *peer)
{
	ep->remote = *peer;
	CHECK_ZERO(ep_bring_to(ep, peer, IBV_QPS_RTS));
}

void ep_link(struct endpoint *a, struct endpoint *b)
{
	ep_connect(a, &b->local);
	if (b != a)
		ep_connect(b, &a->local);
}

void ep_relink(struct endpoint *a, struct endpoint *b)
{
	CHECK_ZERO(ep_move(a, IBV_QPS_RESET));
	CHECK_ZERO(ep_move(b, IBV_QPS_RESET));
	ep_link(a, b);
}

void ep_pair(struct endpoint *near, struct endpoint *far, const struct ep_config *near_config,
	     const struct ep_config *far_config, enum ep_place place)
{
	ep_open(near, near_config, EP_HERE);
	ep_open(far, far_config, place);
	ep_link(near, far);
}

void ep_pair_close(struct endpoint *near, struct endpoint *far)
{
	ep_close(near);
	ep_close(far);
}

int ep_modify(struct endpoint *ep, const struct ibv_qp_attr *attr, int mask)
{
	struct ibv_qp_attr copy = *attr;

	if (ep->place == EP_APART)
		return apart_do(ep,
				&(struct ep_request){.verb = EP_MODIFY, .a = mask, .attr = *attr});
	return ibv_modify_qp(ep->qp, &copy, mask);
}

int ep_move(struct endpoint *ep, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = {.qp_state = state};

	return ep_modify(ep, &attr, IBV_QP_STATE);
}

enum ibv_qp_state ep_state(struct endpoint *ep)
{
	if (ep->place == EP_APART)
		return (enum ibv_qp_state)apart_do(ep, &(struct ep_request){.verb = EP_STATE});
	return qp_state(ep->qp);
}

struct ibv_ah *ep_ah(struct endpoint *ep, const struct peer *peer)
{
	struct ibv_ah_attr attr = ep_attr(&ep->config, &ep->local, peer).ah_attr;
	struct ibv_ah *ah = ibv_create_ah(ep->pd, &attr);

	CHECK(ah);
	return ah;
}

struct ibv_ah *ep_peer_ah(struct endpoint *ep)
{
	if (!ep->ah)
		ep->ah = ep_ah(ep, &ep->remote);
	return ep->ah;
}

uint32_t ep_port_counter(struct endpoint *ep, int which)
{
	struct ibv_port_attr attr;

	if (ep->place == EP_APART)
		return (uint32_t)apart_do(ep, &(struct ep_request){.verb = EP_COUNTER, .a = which});
	CHECK_ZERO(ibv_query_port(ep->context, EP_PORT, &attr));
	return which ? attr.bad_pkey_cntr : attr.qkey_viol_cntr;
}
