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
#include <arpa/inet.h>
#include <infiniband/verbs.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define DATAGRAMS 20
#define BYTES     512
#define GRH       40
#define QKEY      0x11111111u
#define GROUP_QPN 0xffffffu
#define SECONDS   8

struct end {
	struct ibv_qp *qp;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	uint8_t *memory;
	uint32_t got;
	uint32_t seen; /* one bit for each datagram */
};

static struct ibv_context *context;
static struct ibv_pd *pd;
static union ibv_gid group;
static union ibv_gid own;
static int gid_index;

_Noreturn static void fail(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vfprintf(stderr, format, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(1);
}

static void parse_group(const char *text)
{
	if (inet_pton(AF_INET6, text, &group) == 1)
		return;
	group.raw[10] = group.raw[11] = 0xff;
	if (inet_pton(AF_INET, text, group.raw + 12) != 1)
		fail("%s is no address", text);
}

static void open_device(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	for (int i = 0; list && list[i]; i++) {
		if (!strcmp(ibv_get_device_name(list[i]), name))
			context = ibv_open_device(list[i]);
	}
	if (!context)
		fail("no device %s", name);
	ibv_free_device_list(list);
	pd = ibv_alloc_pd(context);
	if (!pd || ibv_query_gid(context, 1, gid_index, &own))
		fail("pd or gid");
}

static void post(struct end *e, uint32_t slot)
{
	struct ibv_sge sge = {(uintptr_t)(e->memory + slot * (BYTES + GRH)), BYTES + GRH,
			      e->mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = slot, .sg_list = &sge, .num_sge = 1};
	struct ibv_recv_wr *bad;

	if (ibv_post_recv(e->qp, &wr, &bad))
		fail("post_recv");
}

static void modify(struct ibv_qp *qp, struct ibv_qp_attr attr, int mask)
{
	if (ibv_modify_qp(qp, &attr, mask | IBV_QP_STATE))
		fail("modify_qp to %d", (int)attr.qp_state);
}

static void end_open_flags(struct end *e, uint32_t qkey, uint32_t create_flags)
{
	size_t bytes = (size_t)(DATAGRAMS * 2 + 1) * (BYTES + GRH);

	e->memory = calloc(1, bytes);
	e->cq = ibv_create_cq(context, DATAGRAMS * 4, NULL, NULL, 0);
	e->mr = e->memory ? ibv_reg_mr(pd, e->memory, bytes, IBV_ACCESS_LOCAL_WRITE) : NULL;
	struct ibv_qp_init_attr_ex init = {
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS,
		.pd = pd,
		.create_flags = create_flags,
		.send_cq = e->cq,
		.recv_cq = e->cq,
		.cap = {.max_send_wr = DATAGRAMS,
			.max_recv_wr = DATAGRAMS * 2,
			.max_send_sge = 1,
			.max_recv_sge = 1},
		.qp_type = IBV_QPT_UD,
	};

	e->qp = e->mr && e->cq ? ibv_create_qp_ex(context, &init) : NULL;
	if (!e->qp)
		fail("no queue pair");
	modify(e->qp, (struct ibv_qp_attr){.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = qkey},
	       IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);
	for (int times = 0; times < 2; times++) {
		if (ibv_attach_mcast(e->qp, &group, 0))
			fail("attach_mcast (attached %d times before)", times);
	}
	for (uint32_t i = 0; i < DATAGRAMS * 2; i++)
		post(e, i);
	modify(e->qp, (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR}, 0);
	modify(e->qp, (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS}, IBV_QP_SQ_PSN);
}

static void end_open(struct end *e, uint32_t qkey)
{
	end_open_flags(e, qkey, 0);
}

static void end_close(struct end *e)
{
	if (ibv_destroy_qp(e->qp) == 0)
		fail("a member was destroyed");
	if (ibv_detach_mcast(e->qp, &group, 0))
		fail("detach_mcast");
	if (ibv_detach_mcast(e->qp, &group, 0) == 0)
		fail("a queue pair left a group twice");
	if (ibv_destroy_qp(e->qp))
		fail("destroy_qp after leaving");
}

static void check(struct end *e, const struct ibv_wc *wc, bool own_sender)
{
	const uint8_t *at = e->memory + wc->wr_id * (BYTES + GRH);
	uint32_t number = at[GRH];

	if (wc->status != IBV_WC_SUCCESS || wc->byte_len != BYTES + GRH ||
	    !(wc->wc_flags & IBV_WC_GRH))
		fail("completion: status %d, %u bytes, flags 0x%x", (int)wc->status, wc->byte_len,
		     wc->wc_flags);
	for (uint32_t i = 0; i < BYTES; i++) {
		if (at[GRH + i] != (uint8_t)(number + i))
			fail("byte %u of datagram %u is wrong", i, number);
	}
	if (number >= DATAGRAMS || e->seen >> number & 1)
		fail("datagram %u came twice", number);
	bool ipv4 = group.raw[0] != 0xff;
	const uint8_t *dgid = at + (ipv4 ? 36 : 24);

	if (memcmp(dgid, group.raw + (ipv4 ? 12 : 0), ipv4 ? 4 : 16))
		fail("the GRH names another destination");
	if (own_sender && memcmp(at + (ipv4 ? 32 : 8), own.raw + (ipv4 ? 12 : 0), ipv4 ? 4 : 16))
		fail("the GRH names another source");
	e->seen |= 1u << number;
	e->got++;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void collect(struct end *e, uint32_t wanted, double seconds, bool own_sender)
{
	double until = now() + seconds;
	struct ibv_wc wc;

	while (e->got < wanted && now() < until) {
		int n = ibv_poll_cq(e->cq, 1, &wc);

		if (n < 0)
			fail("poll_cq");
		if (n && wc.opcode == IBV_WC_RECV)
			check(e, &wc, own_sender);
		else if (n && wc.status != IBV_WC_SUCCESS)
			fail("send: status %d", (int)wc.status);
		if (!n)
			usleep(100);
	}
	if (e->got < wanted)
		fail("%u of %u datagrams came", e->got, wanted);
}

static void send_all(struct end *e)
{
	struct ibv_ah_attr attr = {
		.is_global = 1,
		.port_num = 1,
		.grh = {.dgid = group, .sgid_index = (uint8_t)gid_index, .hop_limit = 5},
	};
	struct ibv_ah *ah = ibv_create_ah(pd, &attr);

	if (!ah)
		fail("create_ah");
	for (uint32_t n = 0; n < DATAGRAMS; n++) {
		uint8_t *data = e->memory + DATAGRAMS * 2 * (BYTES + GRH);
		struct ibv_sge sge = {(uintptr_t)data, BYTES, e->mr->lkey};
		struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND};
		struct ibv_send_wr *bad;

		for (uint32_t i = 0; i < BYTES; i++)
			data[i] = (uint8_t)(n + i);
		wr.wr.ud.ah = ah;
		wr.wr.ud.remote_qpn = GROUP_QPN;
		wr.wr.ud.remote_qkey = QKEY;
		if (ibv_post_send(e->qp, &wr, &bad))
			fail("post_send");
		usleep(1000);
	}
	ibv_destroy_ah(ah);
}

/*
 * IBV_QP_CREATE_BLOCK_SELF_MCAST_LB: the other member of the process receives the sender's
 * messages, the sender does not.
 */
static void send_apart(struct end e[2])
{
	struct ibv_wc wc;

	send_all(&e[0]);
	collect(&e[1], DATAGRAMS, SECONDS, true);
	usleep(20000);
	if (ibv_poll_cq(e[0].cq, 1, &wc))
		fail("the sender heard itself");
}

static void receive_all(struct end e[3])
{
	struct ibv_wc wc;

	puts("ready");
	fflush(stdout);
	collect(&e[0], DATAGRAMS, SECONDS, false);
	collect(&e[1], DATAGRAMS, SECONDS, false);
	usleep(20000);
	for (int i = 0; i < 3; i++) {
		if (ibv_poll_cq(e[i].cq, 1, &wc))
			fail("queue pair %d got one too many", i);
	}
}

static void idle(void)
{
	clock_t before;

	usleep(200000);
	before = clock();
	sleep(2);
	double used = (double)(clock() - before) / CLOCKS_PER_SEC;

	if (used > 0.01)
		fail("%.3f s of processor time in 2 s of waiting", used);
}

int main(int argc, char **argv)
{
	struct end e[3] = {0};

	if (argc != 5)
		fail("usage: udp-mcast DEVICE GROUP GID_INDEX receive|send|apart|idle|stand");
	parse_group(argv[2]);
	gid_index = atoi(argv[3]);
	open_device(argv[1]);
	bool many = !strcmp(argv[4], "receive");
	bool apart = !strcmp(argv[4], "apart");

	end_open_flags(&e[0], QKEY, apart ? IBV_QP_CREATE_BLOCK_SELF_MCAST_LB : 0);
	if (many || apart)
		end_open(&e[1], QKEY);
	if (many)
		end_open(&e[2], QKEY + 1);
	if (many) {
		receive_all(e);
	} else if (apart) {
		send_apart(e);
	} else if (!strcmp(argv[4], "send")) {
		send_all(&e[0]);
		collect(&e[0], DATAGRAMS, SECONDS, true);
	} else if (!strcmp(argv[4], "stand")) {
		puts("ready");
		fflush(stdout);
		pause();
	} else {
		idle();
	}
	for (int k = 0; k < 3 && e[k].qp; k++)
		end_close(&e[k]);
	return 0;
}
