/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * ibv_modify_qp(3): the values of each attribute, at their edges. When a value is refused, the call
 * changes nothing, and the correct call works afterwards. A value that is taken is the one that
 * ibv_query_qp(3) gives back.
 */
#include <arpa/inet.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "support/check.h"
#include "support/endpoint.h"

#define RC       (1u << IBV_QPT_RC)
#define UC       (1u << IBV_QPT_UC)
#define UD       (1u << IBV_QPT_UD)
#define EACH     (RC | UC | UD)
#define NOBODY   65534
#define ALL_BITS ((IBV_QP_DEST_QPN << 1) - 1)

static const enum ibv_qp_type types[] = {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD};
static struct endpoint ep;

/* A member of struct ibv_qp_attr. */
struct member {
	size_t offset, size;
};

#define MEMBER(name)                                                                            \
	{                                                                                       \
		offsetof(struct ibv_qp_attr, name), sizeof(((struct ibv_qp_attr *)NULL)->name), \
	}

static void member_set(struct ibv_qp_attr *attr, const struct member *m, uint32_t value)
{
	uint8_t byte = (uint8_t)value;
	uint16_t two = (uint16_t)value;
	const void *from = m->size == 1   ? (const void *)&byte
			   : m->size == 2 ? (void *)&two
					  : &value;

	memcpy((char *)attr + m->offset, from, m->size);
}

static uint32_t member_get(const struct ibv_qp_attr *attr, const struct member *m)
{
	uint8_t byte;
	uint16_t two;
	uint32_t four;

	switch (m->size) {
	case 1:
		memcpy(&byte, (const char *)attr + m->offset, 1);
		return byte;
	case 2:
		memcpy(&two, (const char *)attr + m->offset, 2);
		return two;
	default:
		memcpy(&four, (const char *)attr + m->offset, 4);
		return four;
	}
}

struct value {
	const char *name;
	struct member member;
	int bit;
	uint32_t types;
	enum ibv_qp_state to; /* the step that sets it */
	uint32_t value;
	int err;
	uint32_t shown;
};

#define TAKEN(name, bit, types, to, value)                           \
	{                                                            \
#name, MEMBER(name), bit, types, to, value, 0, value \
	}
#define MASKED(name, bit, types, to, value, shown)                   \
	{                                                            \
#name, MEMBER(name), bit, types, to, value, 0, shown \
	}
#define REFUSED(name, bit, types, to, value)                          \
	{                                                             \
#name, MEMBER(name), bit, types, to, value, EINVAL, 0 \
	}

static const struct value values[] = {
	REFUSED(port_num, IBV_QP_PORT, EACH, IBV_QPS_INIT, 0),
	TAKEN(port_num, IBV_QP_PORT, EACH, IBV_QPS_INIT, 1),
	REFUSED(port_num, IBV_QP_PORT, EACH, IBV_QPS_INIT, 2),
	REFUSED(port_num, IBV_QP_PORT, EACH, IBV_QPS_INIT, 255),
	TAKEN(pkey_index, IBV_QP_PKEY_INDEX, EACH, IBV_QPS_INIT, 0),
	REFUSED(pkey_index, IBV_QP_PKEY_INDEX, EACH, IBV_QPS_INIT, 1),
	REFUSED(pkey_index, IBV_QP_PKEY_INDEX, EACH, IBV_QPS_INIT, 65535),
	REFUSED(pkey_index, IBV_QP_PKEY_INDEX, EACH, IBV_QPS_RTR, 1),
	TAKEN(qkey, IBV_QP_QKEY, UD, IBV_QPS_INIT, 0),
	TAKEN(qkey, IBV_QP_QKEY, UD, IBV_QPS_INIT, 0x7fffffff),
	TAKEN(qkey, IBV_QP_QKEY, UD, IBV_QPS_RTR, 5),
	TAKEN(qkey, IBV_QP_QKEY, UD, IBV_QPS_RTS, 6),
	REFUSED(path_mtu, IBV_QP_PATH_MTU, RC | UC, IBV_QPS_RTR, 0),
	TAKEN(path_mtu, IBV_QP_PATH_MTU, RC | UC, IBV_QPS_RTR, IBV_MTU_256),
	TAKEN(path_mtu, IBV_QP_PATH_MTU, RC | UC, IBV_QPS_RTR, IBV_MTU_4096),
	REFUSED(path_mtu, IBV_QP_PATH_MTU, RC | UC, IBV_QPS_RTR, IBV_MTU_4096 + 1),
	REFUSED(path_mtu, IBV_QP_PATH_MTU, RC | UC, IBV_QPS_RTR, UINT32_MAX),
	TAKEN(dest_qp_num, IBV_QP_DEST_QPN, RC | UC, IBV_QPS_RTR, 0xffffff),
	REFUSED(dest_qp_num, IBV_QP_DEST_QPN, RC | UC, IBV_QPS_RTR, 0x1000000),
	REFUSED(dest_qp_num, IBV_QP_DEST_QPN, RC | UC, IBV_QPS_RTR, UINT32_MAX),
	TAKEN(rq_psn, IBV_QP_RQ_PSN, RC | UC, IBV_QPS_RTR, 0),
	TAKEN(rq_psn, IBV_QP_RQ_PSN, RC | UC, IBV_QPS_RTR, 0xffffff),
	MASKED(rq_psn, IBV_QP_RQ_PSN, RC | UC, IBV_QPS_RTR, 0x1000000, 0),
	MASKED(rq_psn, IBV_QP_RQ_PSN, RC | UC, IBV_QPS_RTR, UINT32_MAX, 0xffffff),
	TAKEN(max_dest_rd_atomic, IBV_QP_MAX_DEST_RD_ATOMIC, RC, IBV_QPS_RTR, 0),
	TAKEN(max_dest_rd_atomic, IBV_QP_MAX_DEST_RD_ATOMIC, RC, IBV_QPS_RTR, 128),
	REFUSED(max_dest_rd_atomic, IBV_QP_MAX_DEST_RD_ATOMIC, RC, IBV_QPS_RTR, 129),
	REFUSED(max_dest_rd_atomic, IBV_QP_MAX_DEST_RD_ATOMIC, RC, IBV_QPS_RTR, 255),
	TAKEN(min_rnr_timer, IBV_QP_MIN_RNR_TIMER, RC, IBV_QPS_RTR, 0),
	TAKEN(min_rnr_timer, IBV_QP_MIN_RNR_TIMER, RC, IBV_QPS_RTR, 31),
	REFUSED(min_rnr_timer, IBV_QP_MIN_RNR_TIMER, RC, IBV_QPS_RTR, 32),
	REFUSED(min_rnr_timer, IBV_QP_MIN_RNR_TIMER, RC, IBV_QPS_RTR, 255),
	REFUSED(min_rnr_timer, IBV_QP_MIN_RNR_TIMER, RC, IBV_QPS_RTS, 32),
	TAKEN(sq_psn, IBV_QP_SQ_PSN, EACH, IBV_QPS_RTS, 0),
	TAKEN(sq_psn, IBV_QP_SQ_PSN, EACH, IBV_QPS_RTS, 0xffffff),
	MASKED(sq_psn, IBV_QP_SQ_PSN, EACH, IBV_QPS_RTS, 0x1000000, 0),
	MASKED(sq_psn, IBV_QP_SQ_PSN, EACH, IBV_QPS_RTS, UINT32_MAX, 0xffffff),
	TAKEN(timeout, IBV_QP_TIMEOUT, RC, IBV_QPS_RTS, 0),
	TAKEN(timeout, IBV_QP_TIMEOUT, RC, IBV_QPS_RTS, 31),
	REFUSED(timeout, IBV_QP_TIMEOUT, RC, IBV_QPS_RTS, 32),
	REFUSED(timeout, IBV_QP_TIMEOUT, RC, IBV_QPS_RTS, 255),
	TAKEN(retry_cnt, IBV_QP_RETRY_CNT, RC, IBV_QPS_RTS, 0),
	TAKEN(retry_cnt, IBV_QP_RETRY_CNT, RC, IBV_QPS_RTS, 7),
	REFUSED(retry_cnt, IBV_QP_RETRY_CNT, RC, IBV_QPS_RTS, 8),
	REFUSED(retry_cnt, IBV_QP_RETRY_CNT, RC, IBV_QPS_RTS, 255),
	TAKEN(rnr_retry, IBV_QP_RNR_RETRY, RC, IBV_QPS_RTS, 0),
	TAKEN(rnr_retry, IBV_QP_RNR_RETRY, RC, IBV_QPS_RTS, 7),
	REFUSED(rnr_retry, IBV_QP_RNR_RETRY, RC, IBV_QPS_RTS, 8),
	REFUSED(rnr_retry, IBV_QP_RNR_RETRY, RC, IBV_QPS_RTS, 255),
	TAKEN(max_rd_atomic, IBV_QP_MAX_QP_RD_ATOMIC, RC, IBV_QPS_RTS, 0),
	TAKEN(max_rd_atomic, IBV_QP_MAX_QP_RD_ATOMIC, RC, IBV_QPS_RTS, 128),
	REFUSED(max_rd_atomic, IBV_QP_MAX_QP_RD_ATOMIC, RC, IBV_QPS_RTS, 129),
	REFUSED(max_rd_atomic, IBV_QP_MAX_QP_RD_ATOMIC, RC, IBV_QPS_RTS, 255),
	/* There is no migration, so the state of it is only kept. */
	TAKEN(path_mig_state, IBV_QP_PATH_MIG_STATE, RC | UC, IBV_QPS_RTS, IBV_MIG_MIGRATED),
	TAKEN(path_mig_state, IBV_QP_PATH_MIG_STATE, RC | UC, IBV_QPS_RTS, IBV_MIG_REARM),
	TAKEN(path_mig_state, IBV_QP_PATH_MIG_STATE, RC | UC, IBV_QPS_RTS, IBV_MIG_ARMED),
	REFUSED(path_mig_state, IBV_QP_PATH_MIG_STATE, RC | UC, IBV_QPS_RTS, IBV_MIG_ARMED + 1),
	REFUSED(path_mig_state, IBV_QP_PATH_MIG_STATE, RC | UC, IBV_QPS_RTS, UINT32_MAX),
	MASKED(cur_qp_state, IBV_QP_CUR_STATE, EACH, IBV_QPS_RTS, IBV_QPS_RTR, IBV_QPS_RTS),
	REFUSED(cur_qp_state, IBV_QP_CUR_STATE, EACH, IBV_QPS_RTS, IBV_QPS_RESET),
	REFUSED(cur_qp_state, IBV_QP_CUR_STATE, EACH, IBV_QPS_RTS, IBV_QPS_RTS),
	REFUSED(cur_qp_state, IBV_QP_CUR_STATE, EACH, IBV_QPS_RTS, IBV_QPS_UNKNOWN),
	REFUSED(cur_qp_state, IBV_QP_CUR_STATE, EACH, IBV_QPS_RTS, UINT32_MAX),
	REFUSED(qp_state, IBV_QP_STATE, EACH, IBV_QPS_RTS, IBV_QPS_UNKNOWN),
	REFUSED(qp_state, IBV_QP_STATE, EACH, IBV_QPS_RTS, UINT32_MAX),
};

static int required(enum ibv_qp_type type, enum ibv_qp_state to)
{
	const int path = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;

	switch (to) {
	case IBV_QPS_INIT:
		return IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
		       (type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS);
	case IBV_QPS_RTR:
		if (type == IBV_QPT_UD)
			return IBV_QP_STATE;
		return IBV_QP_STATE | path |
		       (type == IBV_QPT_RC ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0);
	default:
		return IBV_QP_STATE | IBV_QP_SQ_PSN |
		       (type == IBV_QPT_RC ? IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
						     IBV_QP_MAX_QP_RD_ATOMIC
					   : 0);
	}
}

static struct ibv_qp_attr right(enum ibv_qp_state to)
{
	struct ibv_qp_attr attr = {
		.qp_state = to,
		.cur_qp_state = (enum ibv_qp_state)(to - 1),
		.path_mtu = IBV_MTU_1024,
		.qkey = 0x1234,
		.dest_qp_num = ep.local.qpn,
		.port_num = 1,
		.max_rd_atomic = 1,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 12,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.ah_attr = {.is_global = 1, .port_num = 1, .grh = {.dgid = ep.local.gid}},
	};

	return attr;
}

/* The state that @to is reached from. */
static void go_before(enum ibv_qp_state to)
{
	CHECK(ep_move(&ep, IBV_QPS_RESET) == 0);
	for (int state = IBV_QPS_INIT; state < (int)to; state++) {
		struct ibv_qp_attr attr = right((enum ibv_qp_state)state);

		CHECK(!ibv_modify_qp(ep.qp, &attr,
				     required(ep.config.type, (enum ibv_qp_state)state)));
	}
}

static struct ibv_qp_attr shown(void)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	CHECK(!ibv_query_qp(ep.qp, &attr, ALL_BITS, &init));
	return attr;
}

/* Byte for byte: whatever was written, padding too, would be seen. */
static bool same_bytes(const void *a, const void *b, size_t length)
{
	return !memcmp(a, b, length);
}

/* Refused, nothing of it is seen, and the right call works. */
static void refused(struct ibv_qp_attr *attr, int mask, int err, enum ibv_qp_state to)
{
	struct ibv_qp_attr before = shown(), after;

	EXPECT_REFUSED(ibv_modify_qp(ep.qp, attr, mask), err);
	after = shown();
	EXPECT_SAY(same_bytes(&before, &after, sizeof(before)),
		   "a refused call has changed something");
	*attr = right(to);
	EXPECT_EQ(ibv_modify_qp(ep.qp, attr, required(ep.config.type, to)), 0);
}

static void numbers(enum ibv_qp_type type)
{
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		const struct value *v = &values[i];
		struct ibv_qp_attr attr = right(v->to);
		int mask = required(type, v->to) | v->bit;

		if (!(v->types & 1u << type))
			continue;
		expect_case("type %d to %d: %s %#x", (int)type, (int)v->to, v->name, v->value);
		go_before(v->to);
		member_set(&attr, &v->member, v->value);
		if (v->err) {
			refused(&attr, mask, v->err, v->to);
			continue;
		}
		EXPECT_EQ(ibv_modify_qp(ep.qp, &attr, mask), 0);
		attr = shown();
		EXPECT_EQ(member_get(&attr, &v->member), v->shown);
	}
}

/*
 * Flags of ibv_reg_mr(3), also those that mean nothing to a queue pair; the optional ones may be
 * what they like.
 */
static void access_flags(enum ibv_qp_type type)
{
	const uint32_t known = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			       IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |
			       IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED | IBV_ACCESS_ON_DEMAND |
			       IBV_ACCESS_HUGETLB | IBV_ACCESS_FLUSH_GLOBAL |
			       IBV_ACCESS_FLUSH_PERSISTENT | IBV_ACCESS_OPTIONAL_RANGE;

	for (int bit = 0; bit < 32; bit++) {
		struct ibv_qp_attr attr = right(IBV_QPS_INIT);

		expect_case("type %d: access flag bit %d", (int)type, bit);
		go_before(IBV_QPS_INIT);
		attr.qp_access_flags = 1u << bit;
		if (!(known & 1u << bit)) {
			refused(&attr, required(type, IBV_QPS_INIT), EINVAL, IBV_QPS_INIT);
			continue;
		}
		EXPECT_EQ(ibv_modify_qp(ep.qp, &attr, required(type, IBV_QPS_INIT)), 0);
		EXPECT_EQ(shown().qp_access_flags, 1u << bit);
	}
}

/* What of an address vector is judged, and what is only kept. */
static void address(enum ibv_qp_type type)
{
	static const struct {
		const char *name;
		struct member member;
		uint32_t value;
		int err;
	} rows[] = {
		{"port 0", MEMBER(ah_attr.port_num), 0, EINVAL},
		{"port 2", MEMBER(ah_attr.port_num), 2, EINVAL},
		{"no global route", MEMBER(ah_attr.is_global), 0, EINVAL},
		{"an empty entry of the GID table", MEMBER(ah_attr.grh.sgid_index), 63, EINVAL},
		{"one beyond the GID table", MEMBER(ah_attr.grh.sgid_index), 64, EINVAL},
		{"the last number of a GID index", MEMBER(ah_attr.grh.sgid_index), 255, EINVAL},
		{"flow label", MEMBER(ah_attr.grh.flow_label), 0xfffff, 0},
		{"traffic class", MEMBER(ah_attr.grh.traffic_class), 255, 0},
		{"hop limit 0", MEMBER(ah_attr.grh.hop_limit), 0, 0},
		{"hop limit 255", MEMBER(ah_attr.grh.hop_limit), 255, 0},
		{"service level", MEMBER(ah_attr.sl), 255, 0},
		{"static rate", MEMBER(ah_attr.static_rate), 255, 0},
		{"local identifier", MEMBER(ah_attr.dlid), 65535, 0},
		{"path bits", MEMBER(ah_attr.src_path_bits), 255, 0},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct ibv_qp_attr attr = right(IBV_QPS_RTR);

		expect_case("type %d: address with %s", (int)type, rows[i].name);
		go_before(IBV_QPS_RTR);
		member_set(&attr, &rows[i].member, rows[i].value);
		if (rows[i].err) {
			refused(&attr, required(type, IBV_QPS_RTR), rows[i].err, IBV_QPS_RTR);
			continue;
		}
		EXPECT_EQ(ibv_modify_qp(ep.qp, &attr, required(type, IBV_QPS_RTR)), 0);
		attr = shown();
		EXPECT_EQ(member_get(&attr, &rows[i].member), rows[i].value);
	}
}

/* An own address of the family, or -1. */
static int own_gid(bool ipv4)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
	const union ibv_gid none = {.raw = {0}};
	struct ibv_port_attr port;
	union ibv_gid gid;

	CHECK(!ibv_query_port(ep.context, 1, &port));
	for (int i = 0; i < port.gid_tbl_len; i++) {
		if (ibv_query_gid(ep.context, 1, i, &gid) || !memcmp(&gid, &none, sizeof(gid)))
			continue;
		if (!memcmp(gid.raw, mapped, sizeof(mapped)) == ipv4)
			return i;
	}
	return -1;
}

/*
 * To another host (an address for documentation, RFC 5737 and 3849) both ends have to be of one
 * family.
 */
static void families(enum ibv_qp_type type)
{
	for (int ipv4 = 0; ipv4 < 2; ipv4++) {
		struct ibv_qp_attr attr = right(IBV_QPS_RTR);
		int index = own_gid(ipv4);

		if (index < 0)
			continue;
		expect_case("type %d: from IPv%d to IPv%d", (int)type, ipv4 ? 4 : 6, ipv4 ? 6 : 4);
		go_before(IBV_QPS_RTR);
		attr.path_mtu = IBV_MTU_256;
		attr.ah_attr.grh.sgid_index = (uint8_t)index;
		memset(&attr.ah_attr.grh.dgid, 0, sizeof(attr.ah_attr.grh.dgid));
		CHECK(inet_pton(AF_INET6, ipv4 ? "2001:db8::9" : "::ffff:192.0.2.9",
				&attr.ah_attr.grh.dgid) == 1);
		refused(&attr, required(type, IBV_QPS_RTR), EINVAL, IBV_QPS_RTR);
	}
}

/*
 * A packet that the interface cannot carry: 4096 bytes of payload and its headers in less than
 * that.
 */
static void too_big(enum ibv_qp_type type)
{
	struct ibv_qp_attr attr = right(IBV_QPS_RTR);
	int index = own_gid(true);
	struct ibv_port_attr port;

	CHECK(!ibv_query_port(ep.context, 1, &port));
	if (port.active_mtu == IBV_MTU_4096 || index < 0)
		return; /* none that is too big, or nowhere to send it from */
	expect_case("type %d: packets that the interface does not carry", (int)type);
	go_before(IBV_QPS_RTR);
	attr.path_mtu = IBV_MTU_4096;
	attr.ah_attr.grh.sgid_index = (uint8_t)index;
	memset(&attr.ah_attr.grh.dgid, 0, sizeof(attr.ah_attr.grh.dgid));
	CHECK(inet_pton(AF_INET6, "::ffff:192.0.2.9", &attr.ah_attr.grh.dgid) == 1);
	refused(&attr, required(type, IBV_QPS_RTR), EINVAL, IBV_QPS_RTR);
}

/* Only the superuser may set a Q_Key with bit 31. A program that has it set may go on with it. */
static void privileged_qkey(void)
{
	struct ibv_qp_attr attr = right(IBV_QPS_INIT);

	go_before(IBV_QPS_INIT);
	expect_case("privileged Q_Key");
	attr.qkey = 0x80000000;
	if (geteuid() == 0) {
		EXPECT_EQ(ibv_modify_qp(ep.qp, &attr, required(IBV_QPT_UD, IBV_QPS_INIT)), 0);
		EXPECT_EQ(shown().qkey, 0x80000000);
		go_before(IBV_QPS_INIT);
		CHECK(seteuid(NOBODY) == 0);
	}
	expect_case("privileged Q_Key, and no privilege");
	attr.qkey = 0x80000000;
	EXPECT_REFUSED(ibv_modify_qp(ep.qp, &attr, required(IBV_QPT_UD, IBV_QPS_INIT)), EPERM);
	attr.qkey = UINT32_MAX;
	refused(&attr, required(IBV_QPT_UD, IBV_QPS_INIT), EPERM, IBV_QPS_INIT);
	EXPECT_EQ(shown().qkey, 0x1234);
	if (getuid() == 0)
		CHECK(seteuid(0) == 0);
}

/* A call that names nothing changes nothing, where the state has a change to itself. */
static void nothing(enum ibv_qp_type type)
{
	static const int results[] = {
		[IBV_QPS_RESET] = 0, [IBV_QPS_INIT] = 0, [IBV_QPS_RTR] = EINVAL,
		[IBV_QPS_RTS] = 0,   [IBV_QPS_SQD] = 0,  [IBV_QPS_ERR] = 0,
	};

	for (int state = IBV_QPS_RESET; state <= IBV_QPS_ERR; state++) {
		struct ibv_qp_attr attr = right(IBV_QPS_RESET);

		if (state == IBV_QPS_SQE)
			continue;
		expect_case("type %d: nothing asked for in state %d", (int)type, state);
		go_before(state > IBV_QPS_RTS ? IBV_QPS_SQD : (enum ibv_qp_state)(state + 1));
		if (state > IBV_QPS_RTS)
			CHECK(ep_move(&ep, (enum ibv_qp_state)state) == 0);
		EXPECT_EQ(ibv_modify_qp(ep.qp, &attr, 0), results[state]);
		EXPECT_EQ(shown().qp_state, state);
		EXPECT_EQ(ep.qp->state, state);
	}
	CHECK(ep_move(&ep, IBV_QPS_RESET) == 0);
}

int main(int argc, char **argv)
{
	ep_main(argc, argv);
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		struct ep_config config = ep_defaults(types[i]);

		ep_open(&ep, &config, EP_HERE);
		numbers(types[i]);
		nothing(types[i]);
		if (types[i] == IBV_QPT_UD) {
			privileged_qkey();
		} else {
			access_flags(types[i]);
			address(types[i]);
			families(types[i]);
			too_big(types[i]);
		}
		ep_close(&ep);
	}
	return expect_done();
}
