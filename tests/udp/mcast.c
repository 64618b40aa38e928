/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Usage: udp-mcast DEVICE GROUP GID_INDEX receive|send|apart|idle|stand
 *
 * receive: two queue pairs join the group, and a third joins with another Q_Key. Each of the two
 * must get every datagram once, with the sender's address in its GRH; the third must get none.
 * send: a member itself; sends DATAGRAMS of them and must get its own. idle: joins, waits two
 * seconds, and must have used nearly no processor time. stand: joins and does nothing until it is
 * killed.
 */
#include "support/check.h"
#include "support/clock.h"
#include "support/endpoint.h"
#include "support/qp_state.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define DATAGRAMS 20
#define BYTES     512
#define GRH       40
#define GROUP_QPN 0xffffffu
#define WAIT_MS   20000

/* One queue pair that joins the group. */
struct member {
	struct ibv_qp *qp;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	uint8_t *memory;
	uint32_t got;
	uint32_t seen; /* one bit for each datagram */
};

static struct resources r;
static union ibv_gid group;

static void parse_group(const char *text)
{
	if (inet_pton(AF_INET6, text, &group) == 1)
		return;
	group.raw[10] = group.raw[11] = 0xff;
	CHECK_SAY(inet_pton(AF_INET, text, group.raw + 12) == 1, "%s is no address", text);
}

static void post(struct member *m, uint32_t slot)
{
	struct ibv_sge sge = {(uintptr_t)(m->memory + slot * (BYTES + GRH)), BYTES + GRH,
			      m->mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = slot, .sg_list = &sge, .num_sge = 1};
	struct ibv_recv_wr *bad;

	CHECK_ZERO(ibv_post_recv(m->qp, &wr, &bad));
}

static void member_open(struct member *m, uint32_t qkey, uint32_t create_flags)
{
	size_t bytes = (size_t)(DATAGRAMS * 2 + 1) * (BYTES + GRH);
	struct ibv_qp_attr attr = {.port_num = EP_PORT, .qkey = qkey};

	m->memory = calloc(1, bytes);
	CHECK(m->memory);
	m->cq = ibv_create_cq(r.context, DATAGRAMS * 4, NULL, NULL, 0);
	CHECK(m->cq);
	m->mr = ibv_reg_mr(r.pd, m->memory, bytes, IBV_ACCESS_LOCAL_WRITE);
	CHECK(m->mr);
	struct ibv_qp_init_attr_ex init = {
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS,
		.pd = r.pd,
		.create_flags = create_flags,
		.send_cq = m->cq,
		.recv_cq = m->cq,
		.cap = {.max_send_wr = DATAGRAMS,
			.max_recv_wr = DATAGRAMS * 2,
			.max_send_sge = 1,
			.max_recv_sge = 1},
		.qp_type = IBV_QPT_UD,
	};

	m->qp = ibv_create_qp_ex(r.context, &init);
	CHECK(m->qp);
	CHECK_ZERO(qp_step(m->qp, &attr, IBV_QPS_INIT));
	for (int times = 0; times < 2; times++)
		CHECK_SAY(!ibv_attach_mcast(m->qp, &group, 0),
			  "ibv_attach_mcast, attached %d times before", times);
	for (uint32_t i = 0; i < DATAGRAMS * 2; i++)
		post(m, i);
	CHECK_ZERO(qp_step(m->qp, &attr, IBV_QPS_RTR));
	CHECK_ZERO(qp_step(m->qp, &attr, IBV_QPS_RTS));
}

static void member_close(struct member *m)
{
	CHECK_SAY(ibv_destroy_qp(m->qp), "a member was destroyed");
	CHECK_ZERO(ibv_detach_mcast(m->qp, &group, 0));
	CHECK_SAY(ibv_detach_mcast(m->qp, &group, 0), "a queue pair left a group twice");
	CHECK_ZERO(ibv_destroy_qp(m->qp));
}

static void arrived(struct member *m, const struct ibv_wc *wc, bool own_sender)
{
	const uint8_t *at = m->memory + wc->wr_id * (BYTES + GRH);
	uint32_t number = at[GRH];

	CHECK_SAY(wc->status == IBV_WC_SUCCESS && wc->byte_len == BYTES + GRH &&
			  wc->wc_flags & IBV_WC_GRH,
		  "completion: status %d, %u bytes, flags 0x%x", (int)wc->status, wc->byte_len,
		  wc->wc_flags);
	for (uint32_t i = 0; i < BYTES; i++)
		CHECK_SAY(at[GRH + i] == (uint8_t)(number + i), "byte %u of datagram %u is wrong",
			  i, number);
	CHECK_SAY(number < DATAGRAMS && !(m->seen >> number & 1), "datagram %u came twice", number);
	bool ipv4 = group.raw[0] != 0xff;
	const uint8_t *dgid = at + (ipv4 ? 36 : 24);

	CHECK_SAY(!memcmp(dgid, group.raw + (ipv4 ? 12 : 0), ipv4 ? 4 : 16),
		  "the GRH names another destination");
	CHECK_SAY(!own_sender ||
			  !memcmp(at + (ipv4 ? 32 : 8), r.gid.raw + (ipv4 ? 12 : 0), ipv4 ? 4 : 16),
		  "the GRH names another source");
	m->seen |= 1u << number;
	m->got++;
}

static void collect(struct member *m, uint32_t wanted, bool own_sender)
{
	uint64_t until = now_ms() + WAIT_MS;
	struct ibv_wc wc;

	while (m->got < wanted && now_ms() < until) {
		int n = ibv_poll_cq(m->cq, 1, &wc);

		CHECK(n >= 0);
		if (n && wc.opcode == IBV_WC_RECV)
			arrived(m, &wc, own_sender);
		else if (n)
			CHECK_SAY(wc.status == IBV_WC_SUCCESS, "send: status %d", (int)wc.status);
		if (!n)
			usleep(100);
	}
	CHECK_SAY(m->got >= wanted, "%u of %u datagrams came", m->got, wanted);
}

static void send_all(struct member *m)
{
	struct ibv_ah_attr attr = {
		.is_global = 1,
		.port_num = EP_PORT,
		.grh = {.dgid = group, .sgid_index = (uint8_t)r.gid_index, .hop_limit = 5},
	};
	struct ibv_ah *ah = ibv_create_ah(r.pd, &attr);

	CHECK(ah);
	for (uint32_t n = 0; n < DATAGRAMS; n++) {
		uint8_t *data = m->memory + DATAGRAMS * 2 * (BYTES + GRH);
		struct ibv_sge sge = {(uintptr_t)data, BYTES, m->mr->lkey};
		struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND};
		struct ibv_send_wr *bad;

		for (uint32_t i = 0; i < BYTES; i++)
			data[i] = (uint8_t)(n + i);
		wr.wr.ud.ah = ah;
		wr.wr.ud.remote_qpn = GROUP_QPN;
		wr.wr.ud.remote_qkey = EP_QKEY;
		CHECK_ZERO(ibv_post_send(m->qp, &wr, &bad));
		usleep(1000);
	}
	ibv_destroy_ah(ah);
}

/*
 * IBV_QP_CREATE_BLOCK_SELF_MCAST_LB: the other member of the process receives the sender's
 * messages, the sender does not.
 */
static void send_apart(struct member m[2])
{
	struct ibv_wc wc;

	send_all(&m[0]);
	collect(&m[1], DATAGRAMS, true);
	usleep(20000);
	CHECK_SAY(!ibv_poll_cq(m[0].cq, 1, &wc), "the sender heard itself");
}

static void receive_all(struct member m[3])
{
	struct ibv_wc wc;

	puts("ready");
	fflush(stdout);
	collect(&m[0], DATAGRAMS, false);
	collect(&m[1], DATAGRAMS, false);
	usleep(20000);
	for (int i = 0; i < 3; i++)
		CHECK_SAY(!ibv_poll_cq(m[i].cq, 1, &wc), "queue pair %d got one too many", i);
}

static void idle(void)
{
	clock_t before;

	usleep(200000);
	before = clock();
	sleep(2);
	double used = (double)(clock() - before) / CLOCKS_PER_SEC;

	CHECK_SAY(used <= 0.01, "%.3f s of processor time in 2 s of waiting", used);
}

int main(int argc, char **argv)
{
	struct member m[3] = {0};

	CHECK_SAY(argc == 5,
		  "usage: udp-mcast DEVICE GROUP GID_INDEX receive|send|apart|idle|stand");
	promise("a datagram to a group reaches each member once");
	parse_group(argv[2]);
	setenv("VB_TEST_DEVICE", argv[1], 1);
	resources_open(&r, 0, false);
	resources_use_gid(&r, atoi(argv[3]));
	bool many = !strcmp(argv[4], "receive");
	bool apart = !strcmp(argv[4], "apart");

	member_open(&m[0], EP_QKEY, apart ? IBV_QP_CREATE_BLOCK_SELF_MCAST_LB : 0);
	if (many || apart)
		member_open(&m[1], EP_QKEY, 0);
	if (many)
		member_open(&m[2], EP_QKEY + 1, 0);
	if (many) {
		receive_all(m);
	} else if (apart) {
		send_apart(m);
	} else if (!strcmp(argv[4], "send")) {
		send_all(&m[0]);
		collect(&m[0], DATAGRAMS, true);
	} else if (!strcmp(argv[4], "stand")) {
		puts("ready");
		fflush(stdout);
		pause();
	} else {
		idle();
	}
	for (int k = 0; k < 3 && m[k].qp; k++)
		member_close(&m[k]);
	return 0;
}
