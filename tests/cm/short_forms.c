/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The short forms of the verbs (rdma_post_send(3)) move data between two connected ids; extended
 * queue pairs and shared receive queues serve ids; and what a connection may be told on its way.
 */
#include <errno.h>
#include <string.h>

#include <rdma/rdma_verbs.h>

#include "cm.h"
#include "support/check.h"

enum { PORT = 7471, BYTES = 64, GRH = 40 };

static struct rdma_event_channel *active, *passive;
static struct rdma_cm_id *listener, *id, *child;
static struct rdma_conn_param param = {
	.responder_resources = 1, .initiator_depth = 1, .retry_count = 7};
static const struct ibv_qp_cap cap = {
	.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1};

/* The request of `id`, which stays the caller's; `child` is the other end. */
static void ask(void)
{
	struct rdma_cm_event *event;

	id = cm_routed(active, RDMA_PS_TCP, OWN_V4, PORT);
	struct ibv_qp_init_attr_ex attr = {
		.cap = cap, .qp_type = IBV_QPT_RC, .comp_mask = IBV_QP_INIT_ATTR_PD, .pd = id->pd};

	CHECK_ZERO(rdma_create_qp_ex(id, &attr));
	CHECK_ZERO(rdma_connect(id, &param));
	event = cm_event(passive, RDMA_CM_EVENT_CONNECT_REQUEST);
	child = event->id;
	CHECK_ZERO(rdma_ack_cm_event(event));
}

static void end(struct rdma_cm_id *one)
{
	rdma_destroy_qp(one);
	rdma_destroy_srq(one);
	CHECK_ZERO(rdma_destroy_id(one));
}

static void test_reject_ece(void)
{
	expect_case("reject_ece: the vendor's options do not fit");
	ask();
	CHECK_ZERO(rdma_reject_ece(child, "x", 1));
	EXPECT_EQ(cm_pass(active, RDMA_CM_EVENT_REJECTED), 35);
	end(child);
	end(id);
}

/* The data come before the RTU, so the program notifies: the connection is established at once. */
static void connect_early(void)
{
	struct ibv_srq_init_attr_ex srq = {
		.attr = {.max_wr = 4, .max_sge = 1},
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD,
		.srq_type = IBV_SRQT_BASIC,
	};
	struct ibv_qp_init_attr attr = {.cap = cap, .qp_type = IBV_QPT_RC};

	expect_case("notify: established before the RTU");
	ask();
	srq.pd = child->pd;
	CHECK_ZERO(rdma_create_srq_ex(child, &srq));
	CHECK_ZERO(rdma_create_qp(child, NULL, &attr));
	EXPECT(child->qp->srq == child->srq);
	CHECK_ZERO(rdma_accept(child, &param));
	EXPECT_EQ(rdma_notify(child, IBV_EVENT_COMM_EST), 0);
	EXPECT_EQ(cm_pass(passive, RDMA_CM_EVENT_ESTABLISHED), 0);
	EXPECT_EQ(cm_pass(active, RDMA_CM_EVENT_ESTABLISHED), 0);
}

static void sent(struct rdma_cm_id *by)
{
	struct ibv_wc wc;

	CHECK_EQ(rdma_get_send_comp(by, &wc), 1);
	EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
}

static void test_messages(void)
{
	char out[BYTES] = "a message in a list", in[BYTES] = "";
	struct ibv_mr *from = rdma_reg_msgs(id, out, BYTES), *to = rdma_reg_msgs(child, in, BYTES);
	struct ibv_sge sge = {.length = BYTES};
	struct ibv_wc wc;

	expect_case("post_sendv and post_recvv");
	CHECK(from && to);
	sge.addr = (uintptr_t)in;
	sge.lkey = to->lkey;
	CHECK_ZERO(rdma_post_recvv(child, NULL, &sge, 1));
	sge.addr = (uintptr_t)out;
	sge.lkey = from->lkey;
	CHECK_ZERO(rdma_post_sendv(id, NULL, &sge, 1, IBV_SEND_SIGNALED));
	sent(id);
	CHECK_EQ(rdma_get_recv_comp(child, &wc), 1);
	EXPECT(!strcmp(in, out));
	CHECK_ZERO(rdma_dereg_mr(from));
	CHECK_ZERO(rdma_dereg_mr(to));
}

static void test_one_sided(void)
{
	char own[BYTES], its[BYTES] = "";
	struct ibv_mr *mr = rdma_reg_msgs(id, own, BYTES);
	struct ibv_mr *writable = rdma_reg_write(child, its, BYTES);
	struct ibv_mr *readable = rdma_reg_read(child, its, BYTES);
	struct ibv_sge sge = {.addr = (uintptr_t)own, .length = BYTES};
	uint64_t at = (uintptr_t)its;

	expect_case("post_write, post_read and their forms with a list");
	CHECK(mr && writable && readable);
	sge.lkey = mr->lkey;
	strcpy(own, "written");
	CHECK_ZERO(
		rdma_post_write(id, NULL, own, BYTES, mr, IBV_SEND_SIGNALED, at, writable->rkey));
	sent(id);
	EXPECT(!strcmp(its, "written"));
	strcpy(own, "written by a list");
	CHECK_ZERO(rdma_post_writev(id, NULL, &sge, 1, IBV_SEND_SIGNALED, at, writable->rkey));
	sent(id);
	EXPECT(!strcmp(its, "written by a list"));
	strcpy(its, "to be read");
	CHECK_ZERO(rdma_post_read(id, NULL, own, BYTES, mr, IBV_SEND_SIGNALED, at, readable->rkey));
	sent(id);
	EXPECT(!strcmp(own, "to be read"));
	strcpy(its, "to be read by a list");
	CHECK_ZERO(rdma_post_readv(id, NULL, &sge, 1, IBV_SEND_SIGNALED, at, readable->rkey));
	sent(id);
	EXPECT(!strcmp(own, "to be read by a list"));
	CHECK_ZERO(rdma_dereg_mr(mr));
	CHECK_ZERO(rdma_dereg_mr(writable));
	CHECK_ZERO(rdma_dereg_mr(readable));
}

/* Place of the id's own address in the table of GIDs. */
static uint8_t own_index(struct rdma_cm_id *ud)
{
	union ibv_gid gid;

	for (int i = 0; i < 64; i++) {
		if (!ibv_query_gid(ud->verbs, 1, i, &gid) &&
		    !memcmp(&gid, &ud->route.addr.addr.ibaddr.sgid, sizeof(gid)))
			return (uint8_t)i;
	}
	CHECK(!"the id's address is in no GID");
	return 0;
}

static void test_datagram(void)
{
	char out[BYTES] = "a datagram", in[GRH + BYTES] = "";
	struct rdma_cm_id *ud = cm_routed(active, RDMA_PS_UDP, OWN_V4, PORT);
	struct ibv_qp_init_attr attr = {.cap = cap, .qp_type = IBV_QPT_UD};
	struct ibv_ah_attr to = {.is_global = 1, .port_num = 1, .grh = {.hop_limit = 64}};
	struct ibv_mr *from, *into;
	struct ibv_wc wc;
	struct ibv_ah *ah;

	expect_case("post_ud_send has the Q_Key of the port space");
	CHECK_ZERO(rdma_create_qp(ud, NULL, &attr));
	from = rdma_reg_msgs(ud, out, sizeof(out));
	into = rdma_reg_msgs(ud, in, sizeof(in));
	to.grh.dgid = ud->route.addr.addr.ibaddr.sgid;
	to.grh.sgid_index = own_index(ud);
	ah = ibv_create_ah(ud->pd, &to);
	CHECK(from && into && ah);
	CHECK_ZERO(rdma_post_recv(ud, NULL, in, sizeof(in), into));
	CHECK_ZERO(rdma_post_ud_send(ud, NULL, out, BYTES, from, IBV_SEND_SIGNALED, ah,
				     ud->qp->qp_num));
	sent(ud);
	CHECK_EQ(rdma_get_recv_comp(ud, &wc), 1);
	EXPECT(!strcmp(in + GRH, out));
	CHECK_ZERO(ibv_destroy_ah(ah));
	CHECK_ZERO(rdma_dereg_mr(from));
	CHECK_ZERO(rdma_dereg_mr(into));
	end(ud);
}

static void test_sender_of_a_group(void)
{
	struct rdma_cm_id *ud = cm_routed(active, RDMA_PS_UDP, OWN_V4, PORT);
	struct rdma_cm_join_mc_attr_ex join = {
		.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS,
		.join_flags = RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER,
		.addr = cm_address("239.1.2.3", 0),
	};

	expect_case("join_multicast_ex as a sender");
	CHECK_ZERO(rdma_join_multicast_ex(ud, &join, NULL));
	EXPECT_EQ(cm_pass(active, RDMA_CM_EVENT_MULTICAST_JOIN), 0);
	EXPECT_EQ(rdma_leave_multicast(ud, join.addr), 0);
	end(ud);
}

int main(void)
{
	cm_network();
	active = rdma_create_event_channel();
	passive = rdma_create_event_channel();
	CHECK(active && passive);
	listener = cm_id(passive, RDMA_PS_TCP);
	CHECK_ZERO(rdma_bind_addr(listener, cm_address(OWN_V4, PORT)));
	CHECK_ZERO(rdma_listen(listener, 4));

	expect_case("seterrno: a verb's result in the connection manager's form");
	EXPECT_EQ(rdma_seterrno(0), 0);
	EXPECT_MINUS1(rdma_seterrno(ENOMEM), ENOMEM);
	test_reject_ece();
	connect_early();
	test_messages();
	test_one_sided();
	end(id);
	end(child);
	test_datagram();
	test_sender_of_a_group();
	CHECK_ZERO(rdma_destroy_id(listener));
	rdma_destroy_event_channel(active);
	rdma_destroy_event_channel(passive);
	return expect_done();
}
