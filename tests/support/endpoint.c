/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Opening devices, making and connecting queue pairs for tests. */
#include "support/endpoint.h"

#include "support/check.h"
#include "support/process.h"
#include "support/walk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

void endpoint_open(struct endpoint *endpoint, int cqe, bool with_channel)
{
	struct ibv_port_attr port = {0};

	memset(endpoint, 0, sizeof(*endpoint));
	endpoint->context = device_open();
	endpoint->pd = ibv_alloc_pd(endpoint->context);
	CHECK(endpoint->pd);
	if (with_channel) {
		endpoint->channel = ibv_create_comp_channel(endpoint->context);
		CHECK(endpoint->channel);
	}
	endpoint->cq = ibv_create_cq(endpoint->context, cqe, NULL, endpoint->channel, 0);
	CHECK(endpoint->cq);
	CHECK_ZERO(ibv_query_port(endpoint->context, ENDPOINT_PORT, &port));
	endpoint->mtu = port.active_mtu;
	CHECK_ZERO(ibv_query_gid(endpoint->context, ENDPOINT_PORT, 0, &endpoint->gid));
}

void endpoint_close(struct endpoint *endpoint)
{
	CHECK_ZERO(ibv_destroy_cq(endpoint->cq));
	if (endpoint->channel)
		CHECK_ZERO(ibv_destroy_comp_channel(endpoint->channel));
	CHECK_ZERO(ibv_dealloc_pd(endpoint->pd));
	CHECK_ZERO(ibv_close_device(endpoint->context));
	memset(endpoint, 0, sizeof(*endpoint));
}

void qp_settings_default(struct qp_settings *settings, enum ibv_qp_type type)
{
	*settings = (struct qp_settings){
		.type = type,
		.cap = {.max_send_wr = 64, .max_recv_wr = 64, .max_send_sge = 1, .max_recv_sge = 1},
		.access = ENDPOINT_ALL_ACCESS,
		.timeout = 14,
		.retry_count = 7,
		.rnr_retry = 7,
		.min_rnr_timer = 1,
		.rd_atomic = 4,
	};
}

void qp_to_init(struct ibv_qp *qp, const struct qp_settings *settings)
{
	struct ibv_qp_attr attr = {
		.port_num = ENDPOINT_PORT,
		.qkey = ENDPOINT_QKEY,
		.qp_access_flags = settings->access,
	};

	/* UC serves neither READ nor ATOMIC, but ibv_modify_qp(3) still requires the mask bit. */
	if (settings->type == IBV_QPT_UC)
		attr.qp_access_flags &= IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
	CHECK_ZERO(walk_step(qp, &attr, IBV_QPS_INIT));
}

struct ibv_qp *qp_create(struct endpoint *endpoint, const struct qp_settings *settings)
{
	struct ibv_qp_init_attr_ex init = {
		.send_cq = settings->send_cq ? settings->send_cq : endpoint->cq,
		.recv_cq = settings->recv_cq ? settings->recv_cq : endpoint->cq,
		.srq = settings->srq,
		.cap = settings->cap,
		.qp_type = settings->type,
		.sq_sig_all = settings->signal_all,
		.pd = endpoint->pd,
		.comp_mask = IBV_QP_INIT_ATTR_PD |
			     (settings->send_ops ? IBV_QP_INIT_ATTR_SEND_OPS_FLAGS : 0),
		.send_ops_flags = settings->send_ops,
	};
	struct ibv_qp *qp = ibv_create_qp_ex(endpoint->context, &init);

	CHECK_SAY(qp, "ibv_create_qp_ex: errno %d", errno);
	qp_to_init(qp, settings);
	return qp;
}

void qp_to_rtr(struct ibv_qp *qp, const struct qp_settings *settings, const struct peer *local,
	       const struct peer *remote, int gid_index)
{
	struct ibv_qp_attr attr = {
		.path_mtu = (enum ibv_mtu)(local->mtu < remote->mtu ? local->mtu : remote->mtu),
		.dest_qp_num = remote->qpn,
		.rq_psn = remote->psn,
		.max_dest_rd_atomic = settings->rd_atomic,
		.min_rnr_timer = settings->min_rnr_timer,
		.ah_attr = {.is_global = 1,
			    .port_num = ENDPOINT_PORT,
			    .grh = {.dgid = remote->gid,
				    .sgid_index = (uint8_t)gid_index,
				    .hop_limit = 64}},
	};

	CHECK_ZERO(walk_step(qp, &attr, IBV_QPS_RTR));
}

void qp_to_rts(struct ibv_qp *qp, const struct qp_settings *settings, const struct peer *local)
{
	struct ibv_qp_attr attr = {
		.sq_psn = local->psn,
		.timeout = settings->timeout,
		.retry_cnt = settings->retry_count,
		.rnr_retry = settings->rnr_retry,
		.max_rd_atomic = settings->rd_atomic,
	};

	CHECK_ZERO(walk_step(qp, &attr, IBV_QPS_RTS));
}

void qp_to_state(struct ibv_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = {.qp_state = state};

	CHECK_ZERO(ibv_modify_qp(qp, &attr, IBV_QP_STATE));
}

enum ibv_qp_state qp_state(struct ibv_qp *qp)
{
	struct ibv_qp_init_attr init = {0};
	struct ibv_qp_attr attr = {0};

	CHECK_ZERO(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init));
	return attr.qp_state;
}

void side_open(struct side *side, struct endpoint *endpoint, const struct qp_settings *settings,
	       void *buffer, size_t size)
{
	static uint32_t psn = 0x5a17;
	int access = ENDPOINT_ALL_ACCESS;
	uint32_t number;

	memset(side, 0, sizeof(*side));
	side->endpoint = endpoint;
	if (settings)
		side->settings = *settings;
	else
		qp_settings_default(&side->settings, IBV_QPT_RC);
	side->size = size;
	side->owns_buffer = !buffer;
	if (!buffer) {
		buffer = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			      0);
		CHECK(buffer != MAP_FAILED);
	}
	side->buffer = buffer;
	side->mr = ibv_reg_mr(endpoint->pd, buffer, size, access);
	CHECK_SAY(side->mr, "ibv_reg_mr of %zu bytes: errno %d", size, errno);
	side->qp = qp_create(endpoint, &side->settings);
	number = __atomic_add_fetch(&psn, 7919, __ATOMIC_RELAXED);
	side->local = (struct peer){
		.gid = endpoint->gid,
		.addr = (uintptr_t)buffer,
		.length = size,
		.qpn = side->qp->qp_num,
		.psn = (number + (uint32_t)getpid() * 101) & 0xffffff,
		.rkey = side->mr->rkey,
		.mtu = endpoint->mtu,
	};
}

void side_connect(struct side *side, const struct peer *remote)
{
	side->remote = *remote;
	qp_to_rtr(side->qp, &side->settings, &side->local, remote, side->endpoint->gid_index);
	qp_to_rts(side->qp, &side->settings, &side->local);
	if (side->settings.type == IBV_QPT_UD) {
		struct ibv_ah_attr attr = {
			.is_global = 1,
			.port_num = ENDPOINT_PORT,
			.grh = {.dgid = remote->gid,
				.sgid_index = (uint8_t)side->endpoint->gid_index,
				.hop_limit = 64},
		};

		side->ah = ibv_create_ah(side->endpoint->pd, &attr);
		CHECK(side->ah);
	}
}

void side_exchange(struct side *side, int sock)
{
	struct peer remote;

	message_swap(sock, &side->local, &remote, sizeof(remote));
	side_connect(side, &remote);
	message_meet(sock);
}

void side_close(struct side *side)
{
	if (side->ah)
		CHECK_ZERO(ibv_destroy_ah(side->ah));
	if (side->qp)
		CHECK_ZERO(ibv_destroy_qp(side->qp));
	if (side->mr)
		CHECK_ZERO(ibv_dereg_mr(side->mr));
	if (side->owns_buffer)
		munmap(side->buffer, side->size);
	memset(side, 0, sizeof(*side));
}

void sides_connect(struct side *a, struct side *b)
{
	side_connect(a, &b->local);
	side_connect(b, &a->local);
}
