/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Connections between two ids of one process: what each side's events say, the paddings of private
 * data, rejections, ends, and what rdma_connect(3), rdma_accept(3) and their neighbours refuse. The
 * data path and other processes are in the tests of programs.
 */
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/rdma_verbs.h>

#include "cm.h"
#include "support/check.h"

enum { MS = 2000, PORT = 7100 };

static struct rdma_event_channel *active, *passive;
static struct rdma_cm_id *listener;

static void make_qp(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = {
		.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = id->qp_type,
		.sq_sig_all = 1,
	};

	CHECK_ZERO(rdma_create_qp(id, NULL, &attr));
	CHECK(id->qp && id->send_cq && id->recv_cq && id->send_cq_channel);
}

/* The active id of a request that the passive side has; the event stays to be acknowledged. */
static struct rdma_cm_id *ask(enum rdma_port_space ps, struct rdma_conn_param *param,
			      struct rdma_cm_event **request)
{
	struct rdma_cm_id *id = cm_routed(active, ps, OWN_V4, PORT);

	make_qp(id);
	CHECK_ZERO(rdma_connect(id, param));
	*request = cm_event(passive, RDMA_CM_EVENT_CONNECT_REQUEST);
	return id;
}

static bool padded(const void *data, unsigned int length, const char *text)
{
	const char *bytes = data;
	size_t used = strlen(text);

	if (!bytes || length < used || memcmp(bytes, text, used))
		return false;
	for (size_t i = used; i < length; i++) {
		if (bytes[i])
			return false;
	}
	return true;
}

static void end(struct rdma_cm_id *id)
{
	if (id->qp)
		rdma_destroy_qp(id);
	CHECK_ZERO(rdma_destroy_id(id));
}

static void test_connect(void)
{
	struct rdma_conn_param ask_param = {.private_data = "hello",
					    .private_data_len = 5,
					    .responder_resources = 3,
					    .initiator_depth = 2,
					    .retry_count = 10,
					    .rnr_retry_count = 5,
					    .flow_control = 1};
	struct rdma_conn_param answer = {.private_data = "welcome",
					 .private_data_len = 7,
					 .responder_resources = 2,
					 .initiator_depth = 3,
					 .rnr_retry_count = 6};
	struct rdma_cm_event *event;
	struct rdma_cm_id *id, *child;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	expect_case("CONNECT_REQUEST says what the peer asked for, from this side");
	id = ask(RDMA_PS_TCP, &ask_param, &event);
	child = event->id;
	EXPECT(event->listen_id == listener && child->context == listener->context);
	EXPECT_EQ(event->param.conn.private_data_len, 56);
	EXPECT(padded(event->param.conn.private_data, 56, "hello"));
	EXPECT_EQ(event->param.conn.responder_resources, 2);
	EXPECT_EQ(event->param.conn.initiator_depth, 3);
	EXPECT_EQ(event->param.conn.retry_count, 7);
	EXPECT_EQ(event->param.conn.rnr_retry_count, 5);
	EXPECT_EQ(event->param.conn.flow_control, 1);
	EXPECT_EQ(event->param.conn.qp_num, id->qp->qp_num);
	EXPECT(child->verbs == id->verbs && child->pd == id->pd);
	EXPECT_EQ(ntohs(rdma_get_src_port(child)), PORT);
	EXPECT_EQ(rdma_get_dst_port(child), rdma_get_src_port(id));
	EXPECT_EQ(child->route.num_paths, 1);
	make_qp(child);
	CHECK_ZERO(rdma_accept(child, &answer));
	CHECK_ZERO(rdma_ack_cm_event(event));

	expect_case("ESTABLISHED at the active side says what was answered");
	event = cm_event(active, RDMA_CM_EVENT_ESTABLISHED);
	EXPECT_EQ(event->status, 0);
	EXPECT_EQ(event->param.conn.private_data_len, 196);
	EXPECT(padded(event->param.conn.private_data, 196, "welcome"));
	EXPECT_EQ(event->param.conn.responder_resources, 3);
	EXPECT_EQ(event->param.conn.initiator_depth, 2);
	EXPECT_EQ(event->param.conn.qp_num, child->qp->qp_num);
	CHECK_ZERO(rdma_ack_cm_event(event));
	event = cm_event(passive, RDMA_CM_EVENT_ESTABLISHED);
	EXPECT(event->id == child && !event->param.conn.private_data_len);
	CHECK_ZERO(rdma_ack_cm_event(event));

	expect_case("the queue pairs have what was agreed on");
	CHECK_ZERO(ibv_query_qp(id->qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT, &init));
	EXPECT_EQ(attr.qp_state, IBV_QPS_RTS);
	EXPECT_EQ(attr.dest_qp_num, child->qp->qp_num);
	EXPECT_EQ(attr.max_rd_atomic, 2);
	EXPECT_EQ(attr.max_dest_rd_atomic, 3);
	EXPECT_EQ(attr.retry_cnt, 7);
	EXPECT_EQ(attr.rnr_retry, 6);
	EXPECT_EQ(attr.timeout, 19);
	CHECK_ZERO(ibv_query_qp(child->qp, &attr, IBV_QP_STATE, &init));
	EXPECT_EQ(attr.qp_state, IBV_QPS_RTS);
	EXPECT_EQ(attr.max_rd_atomic, 3);
	EXPECT_EQ(attr.max_dest_rd_atomic, 2);
	EXPECT_EQ(attr.rnr_retry, 5);

	expect_case("the wrong calls on a connection");
	EXPECT_MINUS1(rdma_connect(id, &ask_param), EINVAL);
	EXPECT_MINUS1(rdma_accept(child, &answer), EINVAL);
	EXPECT_MINUS1(rdma_establish(id), EINVAL);
	EXPECT_MINUS1(rdma_notify(child, IBV_EVENT_COMM_EST), EISCONN);
	EXPECT_MINUS1(rdma_notify(child, IBV_EVENT_QP_FATAL), EINVAL);
	EXPECT_MINUS1(rdma_listen(id, 1), EINVAL);

	expect_case("each side gets DISCONNECTED once");
	EXPECT_EQ(rdma_disconnect(id), 0);
	EXPECT_EQ(cm_pass(passive, RDMA_CM_EVENT_DISCONNECTED), 0);
	CHECK_ZERO(ibv_query_qp(child->qp, &attr, IBV_QP_STATE, &init));
	EXPECT_EQ(attr.qp_state, IBV_QPS_RTS);
	EXPECT(!cm_waits(active)); /* the answer is the program's */
	EXPECT_EQ(rdma_disconnect(child), 0);
	EXPECT_EQ(cm_pass(active, RDMA_CM_EVENT_DISCONNECTED), 0);
	CHECK_ZERO(ibv_query_qp(id->qp, &attr, IBV_QP_STATE, &init));
	EXPECT_EQ(attr.qp_state, IBV_QPS_ERR);
	EXPECT_EQ(rdma_disconnect(id), 0);
	EXPECT_EQ(cm_pass(active, RDMA_CM_EVENT_TIMEWAIT_EXIT), 0);
	end(id);
	end(child);
}

static void test_reject(void)
{
	struct rdma_conn_param param = {.retry_count = 1};
	struct rdma_cm_event *event;
	struct rdma_cm_id *id, *child;
	char much[256] = {0};

	expect_case("REJECTED brings the reason and the text");
	id = ask(RDMA_PS_TCP, &param, &event);
	child = event->id;
	EXPECT_MINUS1(rdma_reject(child, much, 149), EINVAL);
	EXPECT_EQ(rdma_reject(child, "not now", 7), 0);
	CHECK_ZERO(rdma_ack_cm_event(event));
	end(child);
	event = cm_event(active, RDMA_CM_EVENT_REJECTED);
	EXPECT_EQ(event->status, 28);
	EXPECT_EQ(event->param.conn.private_data_len, 148);
	EXPECT(padded(event->param.conn.private_data, 148, "not now"));
	CHECK_ZERO(rdma_ack_cm_event(event));
	end(id);

	expect_case("a request that is not answered is rejected with its id");
	id = ask(RDMA_PS_TCP, &param, &event);
	child = event->id;
	CHECK_ZERO(rdma_ack_cm_event(event));
	end(child);
	EXPECT_EQ(cm_pass(active, RDMA_CM_EVENT_REJECTED), 28);
	end(id);

	expect_case("nobody listens");
	id = cm_routed(active, RDMA_PS_TCP, OWN_V4, PORT + 1);
	make_qp(id);
	CHECK_ZERO(rdma_connect(id, &param));
	EXPECT_EQ(cm_pass(active, RDMA_CM_EVENT_REJECTED), 8);
	end(id);

	expect_case("a peer that gives up before it is answered");
	id = ask(RDMA_PS_TCP, &param, &event);
	child = event->id;
	CHECK_ZERO(rdma_ack_cm_event(event));
	end(id);
	make_qp(child);
	for (int i = 0; i < 1000 && !rdma_accept(child, &param); i++)
		break;
	end(child);
}

static void test_arguments(void)
{
	struct rdma_cm_id *id = cm_id(active, RDMA_PS_TCP);
	struct rdma_conn_param param = {.private_data = "x", .private_data_len = 57};

	expect_case("connect: states and limits");
	EXPECT_MINUS1(rdma_connect(id, &param), EINVAL);
	EXPECT_MINUS1(rdma_disconnect(id), EINVAL);
	EXPECT_MINUS1(rdma_accept(id, NULL), EINVAL);
	EXPECT_MINUS1(rdma_reject(id, NULL, 0), EINVAL);
	CHECK_ZERO(rdma_destroy_id(id));
	id = cm_routed(active, RDMA_PS_TCP, OWN_V4, PORT);
	EXPECT_MINUS1(rdma_connect(id, NULL), EINVAL); /* neither a queue pair nor its number */
	make_qp(id);
	EXPECT_MINUS1(rdma_connect(id, &param), EINVAL); /* 56 bytes at most */
	param.private_data_len = 0;
	param.initiator_depth = 254;
	EXPECT_MINUS1(rdma_connect(id, &param), EINVAL);
	param.initiator_depth = 0;
	param.responder_resources = 254;
	EXPECT_MINUS1(rdma_connect(id, &param), EINVAL);
	EXPECT(!cm_waits(active));
	end(id);
}

/* The program moves its queue pair itself: rdma_init_qp_attr(3), rdma_establish(3). */
static void test_foreign(void)
{
	struct rdma_conn_param param = {.qp_num = 0x123456,
					.responder_resources = 1,
					.initiator_depth = 1,
					.retry_count = 3};
	struct rdma_cm_id *id = cm_routed(active, RDMA_PS_TCP, OWN_V4, PORT), *child;
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT}, other;
	struct rdma_cm_event *event;
	int mask = 0;

	expect_case("init_qp_attr before the exchange");
	EXPECT_EQ(rdma_init_qp_attr(id, &attr, &mask), 0);
	EXPECT_EQ(mask, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	EXPECT_EQ(attr.qp_access_flags, 0);
	EXPECT_EQ(attr.port_num, 1);
	EXPECT_MINUS1(rdma_init_qp_attr(id, NULL, &mask), EINVAL);

	expect_case("a connection of numbers without queue pairs");
	CHECK_ZERO(rdma_connect(id, &param));
	event = cm_event(passive, RDMA_CM_EVENT_CONNECT_REQUEST);
	child = event->id;
	EXPECT_EQ(event->param.conn.qp_num, 0x123456);
	CHECK_ZERO(rdma_ack_cm_event(event));
	attr.qp_state = IBV_QPS_RTR;
	EXPECT_EQ(rdma_init_qp_attr(child, &attr, &mask), 0);
	EXPECT_EQ(attr.dest_qp_num, 0x123456);
	EXPECT_EQ(attr.min_rnr_timer, 0);
	EXPECT_EQ(attr.path_mtu, IBV_MTU_1024);
	EXPECT_EQ(attr.ah_attr.is_global, 1);
	EXPECT(!memcmp(&attr.ah_attr.grh.dgid, &id->route.addr.addr.ibaddr.sgid, 16));
	EXPECT_EQ(mask, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	other.qp_state = IBV_QPS_RTS;
	EXPECT_EQ(rdma_init_qp_attr(child, &other, &mask), 0);
	EXPECT_EQ(mask, IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC);
	EXPECT_EQ(other.retry_cnt, 3);
	other.qp_state = IBV_QPS_SQD;
	EXPECT_MINUS1(rdma_init_qp_attr(child, &other, &mask), EINVAL);
	param.qp_num = 0x654321;
	CHECK_ZERO(rdma_accept(child, &param));
	event = cm_event(active, RDMA_CM_EVENT_CONNECT_RESPONSE);
	EXPECT_EQ(event->param.conn.qp_num, 0x654321);
	CHECK_ZERO(rdma_ack_cm_event(event));
	other.qp_state = IBV_QPS_RTS;
	EXPECT_EQ(rdma_init_qp_attr(id, &other, &mask), 0);
	EXPECT_EQ(other.sq_psn, attr.rq_psn); /* the two sides agree */
	EXPECT_EQ(rdma_establish(id), 0);
	EXPECT_MINUS1(rdma_establish(id), EINVAL);
	EXPECT_EQ(cm_pass(passive, RDMA_CM_EVENT_ESTABLISHED), 0);
	end(child);
	EXPECT_EQ(cm_pass(active, RDMA_CM_EVENT_DISCONNECTED), 0);
	end(id);
}

static void test_datagrams(void)
{
	struct rdma_conn_param param = {.private_data = "who", .private_data_len = 3};
	struct rdma_cm_id *service = cm_id(passive, RDMA_PS_UDP), *id, *child;
	struct rdma_cm_event *event;

	CHECK_ZERO(rdma_bind_addr(service, cm_address(OWN_V4, PORT)));
	CHECK_ZERO(rdma_listen(service, 4));
	expect_case("a datagram service tells its queue pair");
	id = ask(RDMA_PS_UDP, &param, &event);
	child = event->id;
	EXPECT_EQ(event->param.ud.private_data_len, 180);
	EXPECT(padded(event->param.ud.private_data, 180, "who"));
	make_qp(child);
	param.private_data = "me";
	param.private_data_len = 2;
	param.qp_num = child->qp->qp_num;
	CHECK_ZERO(rdma_accept(child, &param));
	CHECK_ZERO(rdma_ack_cm_event(event));
	event = cm_event(active, RDMA_CM_EVENT_ESTABLISHED);
	EXPECT_EQ(event->param.ud.private_data_len, 136);
	EXPECT(padded(event->param.ud.private_data, 136, "me"));
	EXPECT_EQ(event->param.ud.qp_num, child->qp->qp_num);
	EXPECT_EQ(event->param.ud.qkey, RDMA_UDP_QKEY);
	EXPECT_EQ(event->param.ud.ah_attr.is_global, 1);
	EXPECT_EQ(event->param.ud.ah_attr.port_num, 1);
	CHECK_ZERO(rdma_ack_cm_event(event));
	EXPECT(!cm_waits(passive));
	end(id);
	end(child);

	expect_case("a datagram service refuses");
	id = ask(RDMA_PS_UDP, NULL, &event);
	child = event->id;
	EXPECT_EQ(rdma_reject(child, "no", 2), 0);
	CHECK_ZERO(rdma_ack_cm_event(event));
	EXPECT_EQ(cm_pass(active, RDMA_CM_EVENT_UNREACHABLE), 2);
	end(id);
	end(child);
	CHECK_ZERO(rdma_destroy_id(service));
}

/* A listener's requests that nobody has read are rejected with it. */
static void test_listener_goes(void)
{
	struct rdma_cm_id *id, *other = cm_id(passive, RDMA_PS_TCP);
	struct rdma_conn_param param = {.retry_count = 1};

	expect_case("a listener goes with its unread requests");
	CHECK_ZERO(rdma_bind_addr(other, cm_address("0.0.0.0", PORT + 2)));
	CHECK_ZERO(rdma_listen(other, 0));
	id = cm_routed(active, RDMA_PS_TCP, OWN_V4, PORT + 2);
	make_qp(id);
	CHECK_ZERO(rdma_connect(id, &param));
	while (!cm_waits(passive))
		;
	CHECK_ZERO(rdma_destroy_id(other));
	EXPECT(!cm_waits(passive));
	EXPECT_EQ(cm_pass(active, RDMA_CM_EVENT_REJECTED), 28);
	end(id);
}

int main(void)
{
	cm_network();
	active = rdma_create_event_channel();
	passive = rdma_create_event_channel();
	CHECK(active && passive);
	listener = cm_id(passive, RDMA_PS_TCP);
	listener->context = &listener;
	CHECK_ZERO(rdma_bind_addr(listener, cm_address(OWN_V4, PORT)));
	CHECK_ZERO(rdma_listen(listener, 10));
	test_connect();
	test_reject();
	test_arguments();
	test_foreign();
	test_datagrams();
	test_listener_goes();
	CHECK_ZERO(rdma_destroy_id(listener));
	rdma_destroy_event_channel(active);
	rdma_destroy_event_channel(passive);
	return expect_done();
}
