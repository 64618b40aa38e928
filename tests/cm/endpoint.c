/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Names and addresses (rdma_getaddrinfo(3)), endpoints (rdma_create_ep(3)), queue pairs and shared
 * receive queues of ids, extended connection options, multicast groups: what they make and refuse.
 */
#include <arpa/inet.h>
#include <netdb.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/rdma_verbs.h>

#include "cm.h"
#include "support/check.h"

enum { MS = 2000, BYTES = 16 };

static struct rdma_event_channel *channel;

static void test_getaddrinfo(void)
{
	struct rdma_addrinfo hints = {.ai_flags = RAI_PASSIVE}, *res = NULL;
	struct sockaddr_in *addr;

	expect_case("getaddrinfo without hints: a destination of connections");
	CHECK_ZERO(rdma_getaddrinfo(OWN_V4, "7174", NULL, &res));
	EXPECT_EQ(res->ai_family, AF_INET);
	EXPECT_EQ(res->ai_qp_type, IBV_QPT_RC);
	EXPECT_EQ(res->ai_port_space, RDMA_PS_TCP);
	EXPECT(!res->ai_src_addr && !res->ai_next);
	CHECK(res->ai_dst_addr && res->ai_dst_len == sizeof(struct sockaddr_in));
	EXPECT_EQ(ntohs(((struct sockaddr_in *)res->ai_dst_addr)->sin_port), 7174);
	rdma_freeaddrinfo(res);

	expect_case("getaddrinfo passive without a node: the wildcard");
	hints.ai_port_space = RDMA_PS_UDP;
	CHECK_ZERO(rdma_getaddrinfo(NULL, "7174", &hints, &res));
	EXPECT_EQ(res->ai_flags, RAI_PASSIVE);
	EXPECT_EQ(res->ai_qp_type, IBV_QPT_UD);
	EXPECT(!res->ai_dst_addr);
	CHECK(res->ai_src_addr);
	rdma_freeaddrinfo(res);

	expect_case("getaddrinfo copies the addresses of hints");
	memset(&hints, 0, sizeof(hints));
	hints.ai_src_addr = cm_address(OWN_V4, 0);
	hints.ai_src_len = sizeof(struct sockaddr_in);
	CHECK_ZERO(rdma_getaddrinfo(OTHER_V4, "1", &hints, &res));
	CHECK(res->ai_src_addr && res->ai_dst_addr && res->ai_src_addr != hints.ai_src_addr);
	addr = (struct sockaddr_in *)res->ai_src_addr;
	EXPECT_EQ(addr->sin_addr.s_addr,
		  ((struct sockaddr_in *)hints.ai_src_addr)->sin_addr.s_addr);
	rdma_freeaddrinfo(res);
	hints.ai_dst_addr = cm_address(OTHER_V4, 9);
	hints.ai_dst_len = sizeof(struct sockaddr_in);
	CHECK_ZERO(rdma_getaddrinfo(NULL, NULL, &hints, &res));
	EXPECT(res->ai_src_len && res->ai_dst_len);
	rdma_freeaddrinfo(res);

	expect_case("getaddrinfo: failures of the resolver are returned, others are in errno");
	hints = (struct rdma_addrinfo){.ai_flags = RAI_NUMERICHOST};
	EXPECT_EQ(rdma_getaddrinfo("localhost", "1", &hints, &res), EAI_NONAME);
	EXPECT_MINUS1(rdma_getaddrinfo(NULL, NULL, NULL, &res), EINVAL);
	EXPECT_MINUS1(rdma_getaddrinfo(OWN_V4, "1", NULL, NULL), EINVAL);
	hints.ai_flags = RAI_SA;
	EXPECT_MINUS1(rdma_getaddrinfo(OWN_V4, "1", &hints, &res), EOPNOTSUPP);
	rdma_freeaddrinfo(NULL);
}

static void test_addrinfo_event(void)
{
	struct rdma_cm_id *id = cm_id(channel, RDMA_PS_TCP);
	struct rdma_addrinfo hints = {.ai_flags = RAI_NUMERICHOST}, *res = NULL;

	expect_case("resolve_addrinfo and query_addrinfo");
	EXPECT_MINUS1(rdma_query_addrinfo(id, &res), ENOENT);
	EXPECT_EQ(rdma_resolve_addrinfo(id, OWN_V4, "7", NULL), 0);
	EXPECT_EQ(cm_pass(channel, RDMA_CM_EVENT_ADDRINFO_RESOLVED), 0);
	EXPECT_MINUS1(rdma_resolve_addrinfo(id, OWN_V4, "7", NULL), EBUSY);
	EXPECT_EQ(rdma_query_addrinfo(id, &res), 0);
	CHECK(res && res->ai_dst_addr);
	rdma_freeaddrinfo(res);
	EXPECT_MINUS1(rdma_query_addrinfo(id, &res), ENOENT);
	EXPECT_EQ(rdma_resolve_addrinfo(id, "localhost", "7", &hints), 0);
	EXPECT(cm_pass(channel, RDMA_CM_EVENT_ADDRINFO_ERROR) < 0);
	EXPECT_MINUS1(rdma_query_addrinfo(id, NULL), EINVAL);
	CHECK_ZERO(rdma_destroy_id(id));
}

static void test_queue_pair(void)
{
	struct rdma_cm_id *id = cm_id(channel, RDMA_PS_TCP), *ud;
	struct ibv_qp_init_attr attr = {
		.cap = {.max_send_wr = 2, .max_recv_wr = 3, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_qp_init_attr init, plain = attr;
	struct ibv_qp_attr now;

	expect_case("create_qp needs a device");
	EXPECT_MINUS1(rdma_create_qp(id, NULL, &attr), EINVAL);
	EXPECT_MINUS1(rdma_create_qp(id, NULL, NULL), EINVAL);
	CHECK_ZERO(rdma_destroy_id(id));

	expect_case("create_qp makes the queues that the program did not bring");
	id = cm_routed(channel, RDMA_PS_TCP, OWN_V4, 1);
	CHECK_ZERO(rdma_create_qp(id, NULL, &attr));
	CHECK(id->send_cq && id->recv_cq);
	EXPECT(id->send_cq != id->recv_cq);
	EXPECT(attr.send_cq == id->send_cq && attr.recv_cq == id->recv_cq);
	EXPECT(id->send_cq->cq_context == id && id->send_cq->channel == id->send_cq_channel);
	EXPECT(id->qp->pd == id->pd && id->qp_type == IBV_QPT_RC);
	EXPECT(attr.cap.max_send_wr >= 2 && attr.cap.max_recv_wr >= 3);
	CHECK_ZERO(ibv_query_qp(id->qp, &now, IBV_QP_STATE, &init));
	EXPECT_EQ(now.qp_state, IBV_QPS_INIT);
	EXPECT(!memcmp(&attr.cap, &init.cap, sizeof(init.cap)));
	EXPECT(attr.cap.max_inline_data >= 8); /* not asked for */
	EXPECT_MINUS1(rdma_create_qp(id, NULL, &plain), EINVAL);
	rdma_destroy_qp(id);
	EXPECT(!id->qp && !id->send_cq && !id->recv_cq && !id->send_cq_channel);
	rdma_destroy_qp(id);

	expect_case("create_qp uses the program's queues, and leaves them");
	attr = plain;
	attr.send_cq = attr.recv_cq = ibv_create_cq(id->verbs, 8, NULL, NULL, 0);
	CHECK(attr.send_cq);
	CHECK_ZERO(rdma_create_qp(id, id->pd, &attr));
	EXPECT(!id->send_cq && id->qp->send_cq == attr.send_cq);
	rdma_destroy_qp(id);
	CHECK_ZERO(ibv_destroy_cq(attr.send_cq));
	CHECK_ZERO(rdma_destroy_id(id));

	expect_case("queue pairs of datagrams are ready at once");
	ud = cm_routed(channel, RDMA_PS_UDP, OWN_V4, 1);
	plain.qp_type = IBV_QPT_UD;
	CHECK_ZERO(rdma_create_qp(ud, NULL, &plain));
	CHECK_ZERO(ibv_query_qp(ud->qp, &now, IBV_QP_STATE | IBV_QP_QKEY, &init));
	EXPECT_EQ(now.qp_state, IBV_QPS_RTS);
	EXPECT_EQ(now.qkey, RDMA_UDP_QKEY);
	rdma_destroy_qp(ud);
	CHECK_ZERO(rdma_destroy_id(ud));
}

static void test_srq(void)
{
	struct rdma_cm_id *id = cm_id(channel, RDMA_PS_TCP);
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = 4}};
	struct ibv_qp_init_attr qp = {.cap = {.max_send_wr = 1, .max_send_sge = 1},
				      .qp_type = IBV_QPT_RC};

	expect_case("create_srq");
	EXPECT_MINUS1(rdma_create_srq(id, NULL, &attr), EINVAL);
	CHECK_ZERO(rdma_destroy_id(id));
	id = cm_routed(channel, RDMA_PS_TCP, OWN_V4, 1);
	EXPECT_MINUS1(rdma_create_srq(id, NULL, NULL), EINVAL);
	EXPECT_EQ(rdma_create_srq(id, NULL, &attr), 0);
	EXPECT_EQ(attr.attr.max_sge, 1); /* the room that a receive has */
	EXPECT_MINUS1(rdma_create_srq(id, NULL, &attr), EINVAL);
	CHECK_ZERO(rdma_create_qp(id, NULL, &qp));
	EXPECT(id->qp->srq == id->srq);
	rdma_destroy_qp(id);
	rdma_destroy_srq(id);
	EXPECT(!id->srq);
	CHECK_ZERO(rdma_destroy_id(id));
}

static void test_ece(void)
{
	struct rdma_cm_id *id = cm_id(channel, RDMA_PS_TCP);
	struct ibv_ece ece = {0};

	expect_case("extended connection options");
	EXPECT_MINUS1(rdma_set_local_ece(id, &ece), EINVAL);
	EXPECT_MINUS1(rdma_set_local_ece(id, NULL), EINVAL);
	ece.vendor_id = 7;
	EXPECT_EQ(rdma_set_local_ece(id, &ece), 0);
	EXPECT_EQ(rdma_get_remote_ece(id, &ece), 0);
	EXPECT_EQ(ece.vendor_id, 0);
	CHECK_ZERO(rdma_destroy_id(id));
}

static struct ibv_qp_init_attr ep_attr(void)
{
	return (struct ibv_qp_init_attr){
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
		.sq_sig_all = 1,
	};
}

static char sent[BYTES] = "over endpoints", received[BYTES];

static void *client(void *unused)
{
	struct ibv_qp_init_attr attr = ep_attr();
	struct rdma_addrinfo *res;
	struct rdma_cm_id *id;
	struct ibv_wc wc;
	struct ibv_mr *mr;

	CHECK_ZERO(rdma_getaddrinfo(OWN_V4, "7471", NULL, &res));
	CHECK_ZERO(rdma_create_ep(&id, res, NULL, &attr));
	rdma_freeaddrinfo(res);
	mr = rdma_reg_msgs(id, sent, BYTES);
	CHECK(mr);
	CHECK_ZERO(rdma_connect(id, NULL));
	CHECK_EQ(id->event->event, RDMA_CM_EVENT_ESTABLISHED);
	CHECK_ZERO(rdma_post_send(id, NULL, sent, BYTES, mr, 0));
	CHECK_EQ(rdma_get_send_comp(id, &wc), 1);
	CHECK_EQ(wc.status, IBV_WC_SUCCESS);
	CHECK_ZERO(rdma_disconnect(id));
	CHECK_ZERO(rdma_dereg_mr(mr));
	rdma_destroy_ep(id);
	return unused;
}

static void test_endpoint(void)
{
	struct rdma_addrinfo hints = {.ai_flags = RAI_PASSIVE}, *res;
	struct ibv_qp_init_attr attr = ep_attr();
	struct rdma_cm_id *listener, *id;
	pthread_t thread;
	struct ibv_wc wc;
	struct ibv_mr *mr;

	expect_case("two synchronous endpoints: connect, send, disconnect");
	CHECK_ZERO(rdma_getaddrinfo(NULL, "7471", &hints, &res));
	CHECK_ZERO(rdma_create_ep(&listener, res, NULL, &attr));
	rdma_freeaddrinfo(res);
	EXPECT_MINUS1(rdma_get_request(listener, &id), EINVAL); /* it does not listen yet */
	CHECK_ZERO(rdma_listen(listener, 0));
	CHECK_ZERO(pthread_create(&thread, NULL, client, NULL));
	CHECK_ZERO(rdma_get_request(listener, &id));
	EXPECT(id->qp && id->event && id->channel != listener->channel);
	EXPECT_EQ(id->event->event, RDMA_CM_EVENT_CONNECT_REQUEST);
	mr = rdma_reg_msgs(id, received, BYTES);
	CHECK(mr);
	CHECK_ZERO(rdma_post_recv(id, NULL, received, BYTES, mr));
	CHECK_ZERO(rdma_accept(id, NULL));
	EXPECT_EQ(id->event->event, RDMA_CM_EVENT_ESTABLISHED);
	EXPECT_EQ(rdma_get_recv_comp(id, &wc), 1);
	EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
	EXPECT(!memcmp(sent, received, BYTES));
	EXPECT_EQ(rdma_disconnect(id), 0);
	EXPECT_EQ(id->event->event, RDMA_CM_EVENT_DISCONNECTED);
	CHECK_ZERO(pthread_join(thread, NULL));
	CHECK_ZERO(rdma_dereg_mr(mr));
	rdma_destroy_ep(id);
	rdma_destroy_ep(listener);
	EXPECT_MINUS1(rdma_create_ep(&id, NULL, NULL, NULL), EINVAL);
}

static void test_multicast(void)
{
	struct rdma_cm_id *id = cm_id(channel, RDMA_PS_UDP), *rc;
	struct sockaddr *group = cm_address("230.1.2.3", 0);
	struct rdma_cm_join_mc_attr_ex attr = {.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS,
					       .addr = group};
	struct ibv_qp_init_attr qp = ep_attr();
	struct rdma_cm_event *event;
	int context;

	expect_case("join_multicast: states and arguments");
	EXPECT_MINUS1(rdma_join_multicast(id, group, NULL), EINVAL); /* no device */
	CHECK_ZERO(rdma_bind_addr(id, cm_address(OWN_V4, 0)));
	EXPECT_MINUS1(rdma_join_multicast(id, cm_address(OTHER_V4, 0), NULL), EINVAL);
	EXPECT_MINUS1(rdma_join_multicast(id, NULL, NULL), EINVAL);
	EXPECT_MINUS1(rdma_join_multicast_ex(id, NULL, NULL), EINVAL);
	EXPECT_MINUS1(rdma_join_multicast_ex(id, &attr, NULL), EINVAL);
	attr.comp_mask = 7;
	EXPECT_MINUS1(rdma_join_multicast_ex(id, &attr, NULL), ENOTSUP);
	EXPECT_MINUS1(rdma_leave_multicast(id, group), EADDRNOTAVAIL);
	rc = cm_routed(channel, RDMA_PS_TCP, OWN_V4, 1);
	EXPECT_MINUS1(rdma_join_multicast(rc, group, NULL), EINVAL);
	CHECK_ZERO(rdma_destroy_id(rc));

	expect_case("join_multicast and leave_multicast");
	qp.qp_type = IBV_QPT_UD;
	CHECK_ZERO(rdma_create_qp(id, NULL, &qp));
	EXPECT_EQ(rdma_join_multicast(id, group, &context), 0);
	event = cm_event(channel, RDMA_CM_EVENT_MULTICAST_JOIN);
	EXPECT_EQ(event->status, 0);
	EXPECT(event->param.ud.private_data == &context);
	EXPECT_EQ(event->param.ud.qp_num, 0xffffff);
	EXPECT_EQ(event->param.ud.qkey, RDMA_UDP_QKEY);
	EXPECT_EQ(event->param.ud.ah_attr.grh.dgid.raw[10], 0xff);
	EXPECT_EQ(event->param.ud.ah_attr.grh.dgid.raw[12], 230);
	CHECK_ZERO(rdma_ack_cm_event(event));
	EXPECT_EQ(rdma_leave_multicast(id, group), 0);
	EXPECT_MINUS1(rdma_leave_multicast(id, group), EADDRNOTAVAIL);
	CHECK_ZERO(rdma_join_multicast(id, group, NULL)); /* never read: it goes with the id */
	rdma_destroy_qp(id);
	CHECK_ZERO(rdma_destroy_id(id));
}

/*
 * A server that is given a loopback address as a name, as libfabric's are, listens on a device, on
 * the port that it was given; a client of this host finds it by the loopback address.
 */
static void test_loopback_name(const char *name, const char *own, uint16_t port)
{
	struct rdma_addrinfo hints = {.ai_flags = RAI_PASSIVE | RAI_NUMERICHOST}, *res = NULL;
	struct rdma_conn_param param = {0};
	struct rdma_cm_id *listener, *client;
	struct sockaddr *wanted = cm_address(own, port);
	char service[8];

	expect_case("getaddrinfo passive of %s: an address of the device", name);
	snprintf(service, sizeof(service), "%u", port);
	CHECK_ZERO(rdma_getaddrinfo(name, service, &hints, &res));
	CHECK(res->ai_src_addr && !res->ai_dst_addr);
	EXPECT_EQ(res->ai_family, wanted->sa_family);
	EXPECT(!memcmp(res->ai_src_addr, wanted, res->ai_src_len));
	listener = cm_id(channel, RDMA_PS_TCP);
	CHECK_ZERO(rdma_bind_addr(listener, res->ai_src_addr));
	rdma_freeaddrinfo(res);
	EXPECT(listener->verbs && listener->port_num);
	EXPECT_EQ(ntohs(rdma_get_src_port(listener)), port);
	CHECK_ZERO(rdma_listen(listener, 1));
	client = cm_routed(channel, RDMA_PS_TCP, name, port);
	EXPECT(client->verbs == listener->verbs);
	cm_make_qp(client);
	CHECK_ZERO(rdma_connect(client, &param));
	struct rdma_cm_event *event = cm_event(channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	struct rdma_cm_id *child = event->id;

	CHECK_ZERO(rdma_ack_cm_event(event));
	CHECK_ZERO(rdma_destroy_id(child));
	EXPECT(cm_pass(channel, RDMA_CM_EVENT_REJECTED) > 0);
	rdma_destroy_qp(client);
	CHECK_ZERO(rdma_destroy_id(client));
	CHECK_ZERO(rdma_destroy_id(listener));
	/* As a destination it stays what it is. */
	hints.ai_flags = RAI_NUMERICHOST;
	CHECK_ZERO(rdma_getaddrinfo(name, service, &hints, &res));
	wanted = cm_address(name, port);
	EXPECT(!memcmp(res->ai_dst_addr, wanted, res->ai_dst_len));
	rdma_freeaddrinfo(res);
}

int main(void)
{
	cm_network();
	channel = rdma_create_event_channel();
	CHECK(channel);
	test_getaddrinfo();
	test_loopback_name("127.0.0.1", OWN_V4, 7480);
	test_loopback_name("::1", OWN_V6, 7481);
	test_addrinfo_event();
	test_queue_pair();
	test_srq();
	test_ece();
	test_endpoint();
	test_multicast();
	rdma_destroy_event_channel(channel);
	return expect_done();
}
