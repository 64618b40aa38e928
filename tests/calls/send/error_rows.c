/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The rows of the error matrix and how each spoils its request (IBA 9.7.5, 9.9, 10.7.3). */
#include <sys/mman.h>

#include <infiniband/verbs.h>

#include "error_matrix.h"
#include "support/check.h"

/* Spoilers of the requester's memory. */
static void near_unknown_key(struct scene *s)
{
	s->sge[0].lkey = 0xdeadbeef;
}

static void near_other_pd(struct scene *s)
{
	struct ep_key key;

	CHECK(ep_reg(&s->near, 0, 16384, IBV_ACCESS_LOCAL_WRITE, true, &key) == 0);
	s->sge[0].lkey = key.lkey;
}

static void near_freed_key(struct scene *s)
{
	struct ep_key key;

	CHECK(ep_reg(&s->near, 0, 16384, IBV_ACCESS_LOCAL_WRITE, false, &key) == 0);
	CHECK(ep_dereg(&s->near, key.index) == 0);
	s->sge[0].lkey = key.lkey;
}

static void near_outside(struct scene *s)
{
	struct ep_key key;

	CHECK(ep_reg(&s->near, 0, s->sge[0].length - 1, IBV_ACCESS_LOCAL_WRITE, false, &key) == 0);
	s->sge[0].lkey = key.lkey;
}

static void near_before(struct scene *s)
{
	s->sge[0].addr = s->near.local.addr - 1;
}

static void near_wrap(struct scene *s)
{
	s->sge[0].addr = UINT64_MAX - 100;
}

static void near_second_element(struct scene *s)
{
	s->sge[0].length = 2048;
	s->sge[1] = ep_sge(&s->near, 2048, 2048);
	s->sge[1].lkey = 0xdeadbeef;
	s->wr.num_sge = 2;
}

static void near_read_only(struct scene *s)
{
	struct ep_key key;

	CHECK(ep_reg(&s->near, 0, 16384, 0, false, &key) == 0);
	s->sge[0].lkey = key.lkey;
}

static void near_key_and_rkey(struct scene *s)
{
	s->sge[0].lkey = 0xdeadbeef;
	s->wr.wr.rdma.rkey = 0xdeadbeef;
}

static void near_key_and_misaligned(struct scene *s)
{
	s->sge[0].lkey = 0xdeadbeef;
	s->wr.wr.atomic.remote_addr += 4;
}

static void seven_bytes(struct scene *s)
{
	s->sge[0].length = 7;
}

static void nine_bytes(struct scene *s)
{
	s->sge[0].length = 9;
}

static void eight_and_eight(struct scene *s)
{
	s->sge[1] = ep_sge(&s->near, 64, 8);
	s->wr.num_sge = 2;
}

static void no_bytes(struct scene *s)
{
	s->wr.num_sge = 0;
}

/* More than 2^31 bytes, all of them registered. */
static void too_long(struct scene *s)
{
	size_t length = 3ul << 30;

	s->big_buf = mmap(NULL, length, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	CHECK(s->big_buf != MAP_FAILED);
	s->big = ibv_reg_mr(s->near.pd, s->big_buf, length, IBV_ACCESS_LOCAL_WRITE);
	CHECK(s->big);
	for (int i = 0; i < 2; i++) {
		s->sge[i].addr = (uintptr_t)s->big_buf + (size_t)i * (length / 2);
		s->sge[i].length = (uint32_t)(length / 2);
		s->sge[i].lkey = s->big->lkey;
	}
	s->wr.num_sge = 2;
}

static void over_mtu(struct scene *s)
{
	struct ibv_port_attr port;

	CHECK(ibv_query_port(s->near.context, 1, &port) == 0);
	s->sge[0].length = (128u << port.active_mtu) + 1;
}

static void ah_of_other_pd(struct scene *s)
{
	struct ibv_ah_attr attr = {
		.is_global = 1,
		.port_num = 1,
		.grh = {.dgid = s->far.local.gid, .hop_limit = 64},
	};

	s->other_ah = ibv_create_ah(s->near.other_pd, &attr);
	CHECK(s->other_ah);
	s->wr.wr.ud.ah = s->other_ah;
}

/* Spoilers of the responder's receive. */
static void recv_unknown_key(struct scene *s)
{
	s->recv_sge.lkey = 0xdeadbeef;
}

static void recv_other_pd(struct scene *s)
{
	struct ep_key key;

	CHECK(ep_reg(&s->far, TARGET, 16384, IBV_ACCESS_LOCAL_WRITE, true, &key) == 0);
	s->recv_sge.lkey = key.lkey;
}

static void recv_freed_key(struct scene *s)
{
	struct ep_key key;

	CHECK(ep_reg(&s->far, TARGET, 16384, IBV_ACCESS_LOCAL_WRITE, false, &key) == 0);
	CHECK(ep_dereg(&s->far, key.index) == 0);
	s->recv_sge.lkey = key.lkey;
}

static void recv_outside(struct scene *s)
{
	struct ep_key key;

	CHECK(ep_reg(&s->far, TARGET, LENGTH / 2, IBV_ACCESS_LOCAL_WRITE, false, &key) == 0);
	s->recv_sge.lkey = key.lkey;
}

static void recv_read_only(struct scene *s)
{
	struct ep_key key;

	CHECK(ep_reg(&s->far, TARGET, 16384, 0, false, &key) == 0);
	s->recv_sge.lkey = key.lkey;
}

static void recv_short(struct scene *s)
{
	s->recv_sge.length = LENGTH - 1;
}

static void recv_none_of_it(struct scene *s)
{
	s->recv_num = 0;
}

/* The element goes beyond its region, the message does not. */
static void recv_generous(struct scene *s)
{
	struct ep_key key;

	CHECK(ep_reg(&s->far, TARGET, LENGTH, IBV_ACCESS_LOCAL_WRITE, false, &key) == 0);
	s->recv_sge.lkey = key.lkey;
	s->recv_sge.length = LENGTH + 100;
}

/* Spoilers of the remote key. */
static void far_key(struct scene *s, size_t length, int access, bool other_pd)
{
	struct ep_key key;

	CHECK(ep_reg(&s->far, TARGET, length, access, other_pd, &key) == 0);
	set_remote(s, target(s), key.rkey);
}

#define FULL_ACCESS                                                                  \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC)

static void far_unknown_key(struct scene *s)
{
	set_remote(s, target(s), 0xdeadbeef);
}

static void far_next_key(struct scene *s)
{
	set_remote(s, target(s), s->far.local.rkey + 1);
}

static void far_freed_key(struct scene *s)
{
	struct ep_key key;

	CHECK(ep_reg(&s->far, TARGET, LENGTH, FULL_ACCESS, false, &key) == 0);
	CHECK(ep_dereg(&s->far, key.index) == 0);
	set_remote(s, target(s), key.rkey);
}

static void far_other_pd(struct scene *s)
{
	far_key(s, LENGTH, FULL_ACCESS, true);
}

static void far_outside(struct scene *s)
{
	far_key(s, s->sge[0].length - 1, FULL_ACCESS, false);
}

static void far_before(struct scene *s)
{
	set_remote(s, s->far.local.addr - 8, s->far.local.rkey);
}

static void far_wrap(struct scene *s)
{
	set_remote(s, UINT64_MAX - 7, s->far.local.rkey);
}

static void far_only_read(struct scene *s)
{
	far_key(s, LENGTH, IBV_ACCESS_REMOTE_READ, false);
}

static void far_only_write(struct scene *s)
{
	far_key(s, LENGTH, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE, false);
}

static void far_only_atomic(struct scene *s)
{
	far_key(s, LENGTH, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_ATOMIC, false);
}

static void far_only_local(struct scene *s)
{
	far_key(s, LENGTH, IBV_ACCESS_LOCAL_WRITE, false);
}

static void far_misaligned(struct scene *s)
{
	s->wr.wr.atomic.remote_addr += 4;
}

static void far_misaligned_and_key(struct scene *s)
{
	s->wr.wr.atomic.remote_addr += 1;
	s->wr.wr.atomic.rkey = 0xdeadbeef;
}

static void far_vanished(struct scene *s)
{
	ep_vanish(&s->far, 61440, 4096);
	set_remote(s, s->far.local.addr + 61440, s->far.local.rkey);
}

static void nothing_to_nowhere(struct scene *s)
{
	s->wr.num_sge = 0;
	set_remote(s, 3, 0xdeadbeef);
}

/* Configurations of the two queue pairs. */
static void qp_without(struct ep_config *far, uint32_t flag)
{
	far->qp_access_flags &= ~flag;
}

static void no_qp_write(struct ep_config *near, struct ep_config *far)
{
	(void)near;
	qp_without(far, IBV_ACCESS_REMOTE_WRITE);
}

static void no_qp_read(struct ep_config *near, struct ep_config *far)
{
	(void)near;
	qp_without(far, IBV_ACCESS_REMOTE_READ);
}

static void no_qp_atomic(struct ep_config *near, struct ep_config *far)
{
	(void)near;
	qp_without(far, IBV_ACCESS_REMOTE_ATOMIC);
}

static void no_dest_rd_atomic(struct ep_config *near, struct ep_config *far)
{
	(void)near;
	far->max_dest_rd_atomic = 0;
}

static void no_rd_atomic(struct ep_config *near, struct ep_config *far)
{
	(void)far;
	near->max_rd_atomic = 0;
}

static void rnr_never(struct ep_config *near, struct ep_config *far)
{
	(void)far;
	near->rnr_retry = 0;
}

static void rnr_twice(struct ep_config *near, struct ep_config *far)
{
	(void)far;
	near->rnr_retry = 2;
}

#define RC        IBV_QPT_RC
#define UC        IBV_QPT_UC
#define UD        IBV_QPT_UD
#define RTS       IBV_QPS_RTS
#define ERR       IBV_QPS_ERR
#define SQE       IBV_QPS_SQE
#define SEND      IBV_WR_SEND
#define WRITE     IBV_WR_RDMA_WRITE
#define WRITE_IMM IBV_WR_RDMA_WRITE_WITH_IMM
#define READ      IBV_WR_RDMA_READ
#define CAS       IBV_WR_ATOMIC_CMP_AND_SWP
#define FAA       IBV_WR_ATOMIC_FETCH_AND_ADD
#define OK        IBV_WC_SUCCESS
#define LPE       IBV_WC_LOC_PROT_ERR
#define LLE       IBV_WC_LOC_LEN_ERR
#define LQO       IBV_WC_LOC_QP_OP_ERR
#define LAE       IBV_WC_LOC_ACCESS_ERR
#define RAE       IBV_WC_REM_ACCESS_ERR
#define RIR       IBV_WC_REM_INV_REQ_ERR
#define ROE       IBV_WC_REM_OP_ERR
#define RNR       IBV_WC_RNR_RETRY_EXC_ERR
#define FLUSH     IBV_WC_WR_FLUSH_ERR
#define ACCESS    IBV_EVENT_QP_ACCESS_ERR
#define REQUEST   IBV_EVENT_QP_REQ_ERR
#define FATAL     IBV_EVENT_QP_FATAL

/* A fault of the requester's own memory: the peer is not told, and its receive stays. */
#define LOCAL(name, type, opcode, spoil, status, after)                                \
	{                                                                              \
		name, type, opcode, NULL, spoil, true, status, NONE, after, RTS, NONE, \
			DATA_UNTOUCHED                                                 \
	}
/* A receive that cannot take the message. */
#define RECV_RC(name, spoil, near_wc, far_wc)                                                      \
	{                                                                                          \
		name, RC, SEND, NULL, spoil, true, near_wc, far_wc, ERR, ERR, NONE, DATA_UNTOUCHED \
	}
/* A remote key that does not allow the access. */
#define KEY(name, opcode, spoil)                                                                  \
	{                                                                                         \
		name, RC, opcode, NULL, spoil, true, RAE, FLUSH, ERR, ERR, ACCESS, DATA_UNTOUCHED \
	}
/* A request that is invalid whatever its key. */
#define INVALID(name, opcode, configure, spoil)                                          \
	{                                                                                \
		name, RC, opcode, configure, spoil, true, RIR, FLUSH, ERR, ERR, REQUEST, \
			DATA_UNTOUCHED                                                   \
	}
/* UC drops the message: no side is told. */
#define UC_DROP(name, opcode, configure, spoil)                                                    \
	{                                                                                          \
		name, UC, opcode, configure, spoil, true, OK, NONE, RTS, RTS, NONE, DATA_UNTOUCHED \
	}

const struct row error_rows[] = {
	LOCAL("RC SEND, unknown lkey", RC, SEND, near_unknown_key, LPE, ERR),
	LOCAL("RC SEND, lkey of another PD", RC, SEND, near_other_pd, LPE, ERR),
	LOCAL("RC SEND, freed lkey", RC, SEND, near_freed_key, LPE, ERR),
	LOCAL("RC SEND, beyond the region", RC, SEND, near_outside, LPE, ERR),
	LOCAL("RC SEND, before the region", RC, SEND, near_before, LPE, ERR),
	LOCAL("RC SEND, address wraps", RC, SEND, near_wrap, LPE, ERR),
	LOCAL("RC SEND, second element", RC, SEND, near_second_element, LPE, ERR),
	LOCAL("RC WRITE, unknown lkey", RC, WRITE, near_unknown_key, LPE, ERR),
	LOCAL("RC WRITE, lkey of another PD", RC, WRITE, near_other_pd, LPE, ERR),
	LOCAL("RC WRITE, freed lkey", RC, WRITE, near_freed_key, LPE, ERR),
	LOCAL("RC WRITE, beyond the region", RC, WRITE, near_outside, LPE, ERR),
	LOCAL("RC WRITE, second element", RC, WRITE, near_second_element, LPE, ERR),
	LOCAL("RC WRITE, lkey and rkey unknown", RC, WRITE, near_key_and_rkey, LPE, ERR),
	LOCAL("RC WRITE_IMM, unknown lkey", RC, WRITE_IMM, near_unknown_key, LPE, ERR),
	LOCAL("UC SEND, unknown lkey", UC, SEND, near_unknown_key, LPE, SQE),
	LOCAL("UC WRITE, beyond the region", UC, WRITE, near_outside, LPE, SQE),
	LOCAL("UD SEND, unknown lkey", UD, SEND, near_unknown_key, LPE, SQE),
	LOCAL("UD SEND, lkey of another PD", UD, SEND, near_other_pd, LPE, SQE),
	LOCAL("UD SEND, beyond the region", UD, SEND, near_outside, LPE, SQE),
	LOCAL("UD SEND above the MTU", UD, SEND, over_mtu, LLE, SQE),
	LOCAL("UD SEND, handle of another PD", UD, SEND, ah_of_other_pd, LQO, SQE),
	LOCAL("RC SEND above 2^31", RC, SEND, too_long, LLE, ERR),
	LOCAL("RC WRITE above 2^31", RC, WRITE, too_long, LLE, ERR),

	LOCAL("READ, unknown lkey", RC, READ, near_unknown_key, LPE, ERR),
	LOCAL("READ, lkey of another PD", RC, READ, near_other_pd, LPE, ERR),
	LOCAL("READ, freed lkey", RC, READ, near_freed_key, LPE, ERR),
	LOCAL("READ, beyond the region", RC, READ, near_outside, LPE, ERR),
	LOCAL("READ into a region without LOCAL_WRITE", RC, READ, near_read_only, LPE, ERR),
	{"FETCH_ADD, unknown lkey: the word did change", RC, FAA, NULL, near_unknown_key, true, LPE,
	 NONE, ERR, RTS, NONE, DATA_ARRIVED},
	{"CMP_SWAP, no LOCAL_WRITE: the word did change", RC, CAS, NULL, near_read_only, true, LPE,
	 NONE, ERR, RTS, NONE, DATA_ARRIVED},
	{"READ, lkey and rkey unknown", RC, READ, NULL, near_key_and_rkey, true, RAE, FLUSH, ERR,
	 ERR, ACCESS, DATA_UNTOUCHED},
	{"FETCH_ADD, lkey unknown and misaligned", RC, FAA, NULL, near_key_and_misaligned, true,
	 RIR, FLUSH, ERR, ERR, REQUEST, DATA_UNTOUCHED},
	{"SEND from a region without LOCAL_WRITE", RC, SEND, NULL, near_read_only, true, OK, OK,
	 RTS, RTS, NONE, DATA_ARRIVED},
	{"WRITE from a region without LOCAL_WRITE", RC, WRITE, NULL, near_read_only, true, OK, NONE,
	 RTS, RTS, NONE, DATA_ARRIVED},
	LOCAL("FETCH_ADD into 7 bytes", RC, FAA, seven_bytes, LLE, ERR),
	LOCAL("FETCH_ADD into 9 bytes", RC, FAA, nine_bytes, LLE, ERR),
	LOCAL("CMP_SWAP into 16 bytes", RC, CAS, eight_and_eight, LLE, ERR),
	LOCAL("CMP_SWAP into nothing", RC, CAS, no_bytes, LLE, ERR),
	{"READ, max_rd_atomic 0", RC, READ, no_rd_atomic, NULL, true, LQO, NONE, ERR, RTS, NONE,
	 DATA_UNTOUCHED},
	{"FETCH_ADD, max_rd_atomic 0", RC, FAA, no_rd_atomic, NULL, true, LQO, NONE, ERR, RTS, NONE,
	 DATA_UNTOUCHED},

	RECV_RC("receive with an unknown lkey", recv_unknown_key, ROE, LPE),
	RECV_RC("receive with an lkey of another PD", recv_other_pd, ROE, LPE),
	RECV_RC("receive with a freed lkey", recv_freed_key, ROE, LPE),
	RECV_RC("receive beyond its region", recv_outside, ROE, LPE),
	RECV_RC("receive without LOCAL_WRITE", recv_read_only, ROE, LPE),
	{"receive a byte too short", RC, SEND, NULL, recv_short, true, RIR, LLE, ERR, ERR, NONE,
	 DATA_ANY},
	{"receive of no elements", RC, SEND, NULL, recv_none_of_it, true, RIR, LLE, ERR, ERR, NONE,
	 DATA_UNTOUCHED},
	{"receive longer than its region, message fits", RC, SEND, NULL, recv_generous, true, OK,
	 OK, RTS, RTS, NONE, DATA_ARRIVED},
	{"UC receive with an unknown lkey", UC, SEND, NULL, recv_unknown_key, true, OK, LPE, RTS,
	 ERR, NONE, DATA_UNTOUCHED},
	{"UC receive without LOCAL_WRITE", UC, SEND, NULL, recv_read_only, true, OK, LPE, RTS, ERR,
	 NONE, DATA_UNTOUCHED},
	{"UD receive with an unknown lkey", UD, SEND, NULL, recv_unknown_key, true, OK, LPE, RTS,
	 ERR, NONE, DATA_UNTOUCHED},
	{"UD receive without LOCAL_WRITE", UD, SEND, NULL, recv_read_only, true, OK, LPE, RTS, ERR,
	 NONE, DATA_UNTOUCHED},
	{"UC receive too short: dropped", UC, SEND, NULL, recv_short, true, OK, NONE, RTS, RTS,
	 NONE, DATA_ANY},
	{"UD receive too short: dropped", UD, SEND, NULL, recv_none_of_it, true, OK, NONE, RTS, RTS,
	 NONE, DATA_UNTOUCHED},
	{"SEND without receive, rnr_retry 0", RC, SEND, rnr_never, NULL, false, RNR, NONE, ERR, RTS,
	 NONE, DATA_UNTOUCHED},
	{"SEND without receive, rnr_retry 2", RC, SEND, rnr_twice, NULL, false, RNR, NONE, ERR, RTS,
	 NONE, DATA_UNTOUCHED},
	{"WRITE_IMM without receive, rnr_retry 0", RC, WRITE_IMM, rnr_never, NULL, false, RNR, NONE,
	 ERR, RTS, NONE, DATA_ANY},
	{"UC SEND without receive: dropped", UC, SEND, NULL, NULL, false, OK, NONE, RTS, RTS, NONE,
	 DATA_UNTOUCHED},
	{"UD SEND without receive: dropped", UD, SEND, NULL, NULL, false, OK, NONE, RTS, RTS, NONE,
	 DATA_UNTOUCHED},

	KEY("WRITE, unknown rkey", WRITE, far_unknown_key),
	KEY("WRITE, rkey + 1", WRITE, far_next_key),
	KEY("WRITE, freed rkey", WRITE, far_freed_key),
	KEY("WRITE, rkey of another PD", WRITE, far_other_pd),
	KEY("WRITE, beyond the region", WRITE, far_outside),
	KEY("WRITE, before the region", WRITE, far_before),
	KEY("WRITE, address wraps", WRITE, far_wrap),
	KEY("READ, unknown rkey", READ, far_unknown_key),
	KEY("READ, freed rkey", READ, far_freed_key),
	KEY("READ, rkey of another PD", READ, far_other_pd),
	KEY("READ, beyond the region", READ, far_outside),
	KEY("READ, address wraps", READ, far_wrap),
	KEY("FETCH_ADD, unknown rkey", FAA, far_unknown_key),
	KEY("FETCH_ADD, freed rkey", FAA, far_freed_key),
	KEY("FETCH_ADD, rkey of another PD", FAA, far_other_pd),
	KEY("FETCH_ADD, beyond the region", FAA, far_outside),
	KEY("FETCH_ADD, address wraps", FAA, far_wrap),
	KEY("CMP_SWAP, unknown rkey", CAS, far_unknown_key),
	KEY("WRITE, region with REMOTE_READ only", WRITE, far_only_read),
	KEY("WRITE, region with REMOTE_ATOMIC only", WRITE, far_only_atomic),
	KEY("WRITE, region with LOCAL_WRITE only", WRITE, far_only_local),
	KEY("READ, region with REMOTE_WRITE only", READ, far_only_write),
	KEY("READ, region with REMOTE_ATOMIC only", READ, far_only_atomic),
	KEY("READ, region with LOCAL_WRITE only", READ, far_only_local),
	KEY("FETCH_ADD, region with REMOTE_WRITE only", FAA, far_only_write),
	KEY("FETCH_ADD, region with REMOTE_READ only", FAA, far_only_read),
	{"READ, REMOTE_READ alone suffices", RC, READ, NULL, far_only_read, true, OK, NONE, RTS,
	 RTS, NONE, DATA_UNTOUCHED},
	{"WRITE, REMOTE_WRITE alone suffices", RC, WRITE, NULL, far_only_write, true, OK, NONE, RTS,
	 RTS, NONE, DATA_ARRIVED},
	{"FETCH_ADD, REMOTE_ATOMIC alone suffices", RC, FAA, NULL, far_only_atomic, true, OK, NONE,
	 RTS, RTS, NONE, DATA_ARRIVED},
	{"WRITE_IMM, unknown rkey, receive posted", RC, WRITE_IMM, NULL, far_unknown_key, true, RAE,
	 LAE, ERR, ERR, NONE, DATA_UNTOUCHED},
	{"WRITE_IMM, beyond the region, receive posted", RC, WRITE_IMM, NULL, far_outside, true,
	 RAE, LAE, ERR, ERR, NONE, DATA_UNTOUCHED},

	INVALID("WRITE, queue pair without REMOTE_WRITE", WRITE, no_qp_write, NULL),
	INVALID("READ, queue pair without REMOTE_READ", READ, no_qp_read, NULL),
	INVALID("FETCH_ADD, queue pair without REMOTE_ATOMIC", FAA, no_qp_atomic, NULL),
	INVALID("WRITE of nothing, queue pair without REMOTE_WRITE", WRITE, no_qp_write,
		nothing_to_nowhere),
	INVALID("FETCH_ADD, misaligned", FAA, NULL, far_misaligned),
	INVALID("CMP_SWAP, misaligned", CAS, NULL, far_misaligned),
	INVALID("FETCH_ADD, misaligned and unknown rkey", FAA, NULL, far_misaligned_and_key),
	INVALID("READ, max_dest_rd_atomic 0", READ, no_dest_rd_atomic, NULL),
	INVALID("FETCH_ADD, max_dest_rd_atomic 0", FAA, no_dest_rd_atomic, NULL),
	{"WRITE of nothing to nowhere", RC, WRITE, NULL, nothing_to_nowhere, true, OK, NONE, RTS,
	 RTS, NONE, DATA_UNTOUCHED},
	{"READ of nothing from nowhere", RC, READ, NULL, nothing_to_nowhere, true, OK, NONE, RTS,
	 RTS, NONE, DATA_UNTOUCHED},

	UC_DROP("UC WRITE, unknown rkey", WRITE, NULL, far_unknown_key),
	UC_DROP("UC WRITE, rkey of another PD", WRITE, NULL, far_other_pd),
	UC_DROP("UC WRITE, beyond the region", WRITE, NULL, far_outside),
	UC_DROP("UC WRITE, region with REMOTE_READ only", WRITE, NULL, far_only_read),
	UC_DROP("UC WRITE, queue pair without REMOTE_WRITE", WRITE, no_qp_write, NULL),
	UC_DROP("UC WRITE_IMM, unknown rkey", WRITE_IMM, NULL, far_unknown_key),

	/* Last, because a device that gets them wrong takes the process along. */
	{"WRITE, memory behind the region is gone", RC, WRITE, NULL, far_vanished, true, ROE, FLUSH,
	 ERR, ERR, FATAL, DATA_UNTOUCHED},
	{"READ, memory behind the region is gone", RC, READ, NULL, far_vanished, true, ROE, FLUSH,
	 ERR, ERR, FATAL, DATA_UNTOUCHED},
};

const size_t error_row_count = sizeof(error_rows) / sizeof(error_rows[0]);
