/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * One side of the transfer: an RC queue pair, a SEND, a WRITE and a READ of 64 KiB each, whose bytes
 * are compared.
 */
#include "doctor/transfer.h"

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#define BYTES     65536
#define PORT      1
#define WAIT_S    15
#define LO_DEVICE "vb_lo"
#define ACCESS    (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)
#define OTHER_HOST                                             \
	{                                                      \
		[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 2 \
	} /* ::ffff:127.0.0.2 */

/* The buffer: what is sent or read from here, what a SEND brings, what a WRITE or READ brings. */
enum { OWN, SENT, COPIED, AREAS };

struct facts {
	union ibv_gid gid;
	uint64_t addr;
	uint32_t rkey;
	uint32_t qpn;
};

struct side {
	const struct transfer_plan *plan;
	int sock;
	bool active;
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	uint8_t *buffer;
	int gid_index;
	enum ibv_mtu mtu;
	struct facts here, there;
};

static int fail(struct side *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The first failure of the two sides is kept. */
static int fail(struct side *s, const char *fmt, ...)
{
	va_list ap;

	if (s->plan->why[0])
		return -1;
	va_start(ap, fmt);
	vsnprintf(s->plan->why, TRANSFER_WHY, fmt, ap);
	va_end(ap);
	return -1;
}

static uint8_t pattern(bool active, unsigned int at)
{
	return (uint8_t)(at * 7 + at / 251 + (active ? 13 : 101));
}

static int compare(struct side *s, int area, const char *what)
{
	for (unsigned int i = 0; i < BYTES; i++) {
		if (s->buffer[area * BYTES + i] != pattern(!s->active, i))
			return fail(s, "%s: byte %u is wrong", what, i);
	}
	return 0;
}

static int open_first(struct side *s)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	for (int i = 0; list && list[i] && !s->ctx; i++)
		s->ctx = ibv_open_device(list[i]);
	if (list)
		ibv_free_device_list(list);
	return s->ctx ? 0 : fail(s, "there is no device that can be opened");
}

/*
 * An IPv4 address, if there is one: a link-local IPv6 address, which is always there, is the worst
 * to be reached.
 */
static int choose_gid(struct side *s)
{
	static const uint8_t ipv4[12] = {[10] = 0xff, [11] = 0xff};
	static const union ibv_gid none;
	struct ibv_port_attr port;
	bool found = false;

	if (ibv_query_port(s->ctx, PORT, &port))
		return fail(s, "ibv_query_port: %s", strerror(errno));
	s->mtu = port.active_mtu;
	for (int i = 0; i < port.gid_tbl_len; i++) {
		union ibv_gid gid;
		bool better;

		if (ibv_query_gid(s->ctx, PORT, i, &gid) || !memcmp(&gid, &none, sizeof(none)))
			continue;
		better = !memcmp(gid.raw, ipv4, sizeof(ipv4)) &&
			 memcmp(s->here.gid.raw, ipv4, sizeof(ipv4)) != 0;
		if (found && !better)
			continue;
		found = true;
		s->here.gid = gid;
		s->gid_index = i;
	}
	return found ? 0 : fail(s, "the device has no address");
}

static int make(struct side *s)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
		.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1}};

	s->buffer = calloc(AREAS, BYTES);
	for (unsigned int i = 0; s->buffer && i < BYTES; i++)
		s->buffer[OWN * BYTES + i] = pattern(s->active, i);
	s->pd = s->buffer ? ibv_alloc_pd(s->ctx) : NULL;
	s->mr = s->pd ? ibv_reg_mr(s->pd, s->buffer, (size_t)AREAS * BYTES, ACCESS) : NULL;
	s->cq = s->mr ? ibv_create_cq(s->ctx, 16, NULL, NULL, 0) : NULL;
	attr.send_cq = attr.recv_cq = s->cq;
	s->qp = s->cq ? ibv_create_qp(s->pd, &attr) : NULL;
	if (!s->qp)
		return fail(s, "%s: %s",
			    !s->pd   ? "ibv_alloc_pd"
			    : !s->mr ? "ibv_reg_mr"
			    : !s->cq ? "ibv_create_cq"
				     : "ibv_create_qp",
			    strerror(errno));
	s->here.addr = (uintptr_t)s->buffer;
	s->here.rkey = s->mr->rkey;
	s->here.qpn = s->qp->qp_num;
	return 0;
}

static int swap(struct side *s, const void *mine, void *theirs, size_t size)
{
	if (send(s->sock, mine, size, MSG_NOSIGNAL) != (ssize_t)size ||
	    recv(s->sock, theirs, size, MSG_WAITALL) != (ssize_t)size)
		return fail(s, "the other process has ended or does not answer");
	return 0;
}

static int meet(struct side *s)
{
	char mine = 'm', theirs;

	return swap(s, &mine, &theirs, 1);
}

static int to_init(struct side *s)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT, .port_num = PORT, .qp_access_flags = ACCESS};

	return ibv_modify_qp(s->qp, &attr,
			     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

static int to_rtr(struct side *s)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR,
				   .path_mtu = s->mtu,
				   .dest_qp_num = s->there.qpn,
				   .max_dest_rd_atomic = 1,
				   .min_rnr_timer = 12,
				   .ah_attr = {.is_global = 1,
					       .port_num = PORT,
					       .grh = {.dgid = s->there.gid,
						       .sgid_index = (uint8_t)s->gid_index,
						       .hop_limit = 64}}};

	return ibv_modify_qp(s->qp, &attr,
			     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				     IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				     IBV_QP_MIN_RNR_TIMER);
}

static int to_rts(struct side *s)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS,
				   .timeout = 14,
				   .retry_cnt = 7,
				   .rnr_retry = 7,
				   .max_rd_atomic = 1};

	return ibv_modify_qp(s->qp, &attr,
			     IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				     IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
}

static int connect_qp(struct side *s)
{
	int err = to_init(s);

	if (err)
		return fail(s, "ibv_modify_qp to INIT: %s", strerror(err));
	err = to_rtr(s);
	if (err)
		return fail(s, "ibv_modify_qp to RTR: %s", strerror(err));
	err = to_rts(s);
	if (err)
		return fail(s, "ibv_modify_qp to RTS: %s", strerror(err));
	return 0;
}

static uint64_t now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec;
}

static bool has_left(const struct side *s)
{
	char byte;

	return recv(s->sock, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

static int await(struct side *s, const char *what)
{
	uint64_t end = now_s() + WAIT_S;
	struct ibv_wc wc;
	int n;

	while (!(n = ibv_poll_cq(s->cq, 1, &wc))) {
		if (has_left(s))
			return fail(s, "%s: the other process has ended", what);
		if (now_s() > end)
			return fail(s, "%s: no completion after %d seconds", what, WAIT_S);
	}
	if (n < 0)
		return fail(s, "ibv_poll_cq failed");
	if (wc.status != IBV_WC_SUCCESS)
		return fail(s, "%s: %s, vendor_err 0x%x (verbatim explain 0x%x)", what,
			    ibv_wc_status_str(wc.status), wc.vendor_err, wc.vendor_err);
	return 0;
}

static int operation(struct side *s, enum ibv_wr_opcode opcode, int area, const char *what)
{
	struct ibv_sge sge = {(uintptr_t)s->buffer + (size_t)area * BYTES, BYTES, s->mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = opcode};
	struct ibv_send_wr *bad;
	int to = opcode == IBV_WR_RDMA_WRITE ? COPIED : OWN;
	int err;

	wr.wr.rdma.remote_addr = s->there.addr + (uint64_t)to * BYTES;
	wr.wr.rdma.rkey = s->there.rkey;
	err = ibv_post_send(s->qp, &wr, &bad);
	if (err)
		return fail(s, "%s: ibv_post_send: %s", what, strerror(err));
	return await(s, what);
}

static int run_active(struct side *s)
{
	int err = operation(s, IBV_WR_SEND, OWN, "SEND");

	if (!err)
		err = operation(s, IBV_WR_RDMA_WRITE, OWN, "WRITE");
	if (!err)
		err = operation(s, IBV_WR_RDMA_READ, COPIED, "READ");
	if (!err)
		err = compare(s, COPIED, "READ");
	return err ? err : meet(s);
}

static int run_passive(struct side *s)
{
	int err = await(s, "receive of the SEND");

	if (!err)
		err = compare(s, SENT, "SEND");
	if (!err)
		err = meet(s);
	return err ? err : compare(s, COPIED, "WRITE");
}

static int post_receive(struct side *s)
{
	struct ibv_sge sge = {(uintptr_t)s->buffer + (size_t)SENT * BYTES, BYTES, s->mr->lkey};
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1};
	struct ibv_recv_wr *bad;
	int err = ibv_post_recv(s->qp, &wr, &bad);

	return err ? fail(s, "ibv_post_recv: %s", strerror(err)) : 0;
}

static void destroy(struct side *s)
{
	if (s->qp)
		ibv_destroy_qp(s->qp);
	if (s->cq)
		ibv_destroy_cq(s->cq);
	if (s->mr)
		ibv_dereg_mr(s->mr);
	if (s->pd)
		ibv_dealloc_pd(s->pd);
	if (s->ctx)
		ibv_close_device(s->ctx);
	free(s->buffer);
}

int transfer_side(const struct transfer_plan *plan, int sock, bool active)
{
	struct side s = {.plan = plan, .sock = sock, .active = active};
	int err;

	if (plan->udp)
		setenv("VERBATIM_LINK", "udp", 1);
	err = open_first(&s);
	if (!err)
		err = choose_gid(&s);
	if (!err)
		err = make(&s);
	if (!err)
		err = swap(&s, &s.here, &s.there, sizeof(s.here));
	if (!err)
		err = connect_qp(&s);
	if (!err)
		err = post_receive(&s);
	if (!err)
		err = meet(&s);
	if (!err)
		err = active ? run_active(&s) : run_passive(&s);
	/* Acknowledgements of the last operation are still to be answered. */
	if (!err)
		err = meet(&s);
	destroy(&s);
	return err;
}
