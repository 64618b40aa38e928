/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The queue pair state machine, every type, pair of states and attribute bit, against a table
 * written out by hand from ibv_modify_qp(3): one line for each transition and type.
 */
#include "transport/operation.h"
#include "transport/qp_state.h"

#include "stand.h"

#include <stdio.h>
#include <string.h>

struct row {
	enum ibv_qp_type type;
	enum ibv_qp_state from;
	enum ibv_qp_state to;
	const char *required;
	const char *optional;
};

static const struct row rows[] = {
	{IBV_QPT_RC, IBV_QPS_RESET, IBV_QPS_INIT, "pkey port access", ""},
	{IBV_QPT_UC, IBV_QPS_RESET, IBV_QPS_INIT, "pkey port access", ""},
	{IBV_QPT_XRC_SEND, IBV_QPS_RESET, IBV_QPS_INIT, "pkey port access", ""},
	{IBV_QPT_XRC_RECV, IBV_QPS_RESET, IBV_QPS_INIT, "pkey port access", ""},
	{IBV_QPT_UD, IBV_QPS_RESET, IBV_QPS_INIT, "pkey port qkey", ""},

	{IBV_QPT_RC, IBV_QPS_INIT, IBV_QPS_INIT, "", "pkey port access"},
	{IBV_QPT_UC, IBV_QPS_INIT, IBV_QPS_INIT, "", "pkey port access"},
	{IBV_QPT_XRC_SEND, IBV_QPS_INIT, IBV_QPS_INIT, "", "pkey port access"},
	{IBV_QPT_XRC_RECV, IBV_QPS_INIT, IBV_QPS_INIT, "", "pkey port access"},
	{IBV_QPT_UD, IBV_QPS_INIT, IBV_QPS_INIT, "", "pkey port qkey"},

	{IBV_QPT_RC, IBV_QPS_INIT, IBV_QPS_RTR, "av mtu dqpn rqpsn mdra mrnr", "alt access pkey"},
	{IBV_QPT_XRC_RECV, IBV_QPS_INIT, IBV_QPS_RTR, "av mtu dqpn rqpsn mdra mrnr",
	 "alt access pkey"},
	{IBV_QPT_UC, IBV_QPS_INIT, IBV_QPS_RTR, "av mtu dqpn rqpsn", "alt access pkey"},
	{IBV_QPT_XRC_SEND, IBV_QPS_INIT, IBV_QPS_RTR, "av mtu dqpn rqpsn", "alt access pkey"},
	{IBV_QPT_UD, IBV_QPS_INIT, IBV_QPS_RTR, "", "pkey qkey"},

	{IBV_QPT_RC, IBV_QPS_RTR, IBV_QPS_RTS, "timeout retry rnr sqpsn mra",
	 "cur alt access mrnr mig"},
	{IBV_QPT_XRC_SEND, IBV_QPS_RTR, IBV_QPS_RTS, "timeout retry rnr sqpsn mra",
	 "cur alt access mig"},
	{IBV_QPT_XRC_RECV, IBV_QPS_RTR, IBV_QPS_RTS, "timeout sqpsn", "cur alt access mrnr mig"},
	{IBV_QPT_UC, IBV_QPS_RTR, IBV_QPS_RTS, "sqpsn", "cur alt access mig"},
	{IBV_QPT_UD, IBV_QPS_RTR, IBV_QPS_RTS, "sqpsn", "cur qkey"},

	{IBV_QPT_RC, IBV_QPS_RTS, IBV_QPS_RTS, "", "cur access alt mig mrnr"},
	{IBV_QPT_XRC_RECV, IBV_QPS_RTS, IBV_QPS_RTS, "", "cur access alt mig mrnr"},
	{IBV_QPT_UC, IBV_QPS_RTS, IBV_QPS_RTS, "", "cur access alt mig"},
	{IBV_QPT_XRC_SEND, IBV_QPS_RTS, IBV_QPS_RTS, "", "cur access alt mig"},
	{IBV_QPT_UD, IBV_QPS_RTS, IBV_QPS_RTS, "", "cur qkey"},

	{IBV_QPT_RC, IBV_QPS_RTS, IBV_QPS_SQD, "", "notify"},
	{IBV_QPT_UC, IBV_QPS_RTS, IBV_QPS_SQD, "", "notify"},
	{IBV_QPT_UD, IBV_QPS_RTS, IBV_QPS_SQD, "", "notify"},
	{IBV_QPT_XRC_SEND, IBV_QPS_RTS, IBV_QPS_SQD, "", "notify"},
	{IBV_QPT_XRC_RECV, IBV_QPS_RTS, IBV_QPS_SQD, "", "notify"},

	{IBV_QPT_RC, IBV_QPS_SQD, IBV_QPS_RTS, "", "cur access alt mig mrnr"},
	{IBV_QPT_XRC_RECV, IBV_QPS_SQD, IBV_QPS_RTS, "", "cur access alt mig mrnr"},
	{IBV_QPT_UC, IBV_QPS_SQD, IBV_QPS_RTS, "", "cur access alt mig"},
	{IBV_QPT_XRC_SEND, IBV_QPS_SQD, IBV_QPS_RTS, "", "cur access alt mig"},
	{IBV_QPT_UD, IBV_QPS_SQD, IBV_QPS_RTS, "", "cur qkey"},

	{IBV_QPT_RC, IBV_QPS_SQD, IBV_QPS_SQD, "",
	 "port av timeout retry rnr mra mdra alt access pkey mrnr mig"},
	{IBV_QPT_XRC_SEND, IBV_QPS_SQD, IBV_QPS_SQD, "",
	 "port av timeout retry rnr mra alt access pkey mig"},
	{IBV_QPT_XRC_RECV, IBV_QPS_SQD, IBV_QPS_SQD, "",
	 "port av timeout mdra alt access pkey mrnr mig"},
	{IBV_QPT_UC, IBV_QPS_SQD, IBV_QPS_SQD, "", "av alt access pkey mig"},
	{IBV_QPT_UD, IBV_QPS_SQD, IBV_QPS_SQD, "", "pkey qkey"},

	{IBV_QPT_UC, IBV_QPS_SQE, IBV_QPS_RTS, "", "cur access"},
	{IBV_QPT_UD, IBV_QPS_SQE, IBV_QPS_RTS, "", "cur qkey"},
};

static const struct {
	const char *name;
	int bit;
} attributes[] = {
	{"pkey", IBV_QP_PKEY_INDEX},
	{"port", IBV_QP_PORT},
	{"access", IBV_QP_ACCESS_FLAGS},
	{"qkey", IBV_QP_QKEY},
	{"av", IBV_QP_AV},
	{"mtu", IBV_QP_PATH_MTU},
	{"dqpn", IBV_QP_DEST_QPN},
	{"rqpsn", IBV_QP_RQ_PSN},
	{"mdra", IBV_QP_MAX_DEST_RD_ATOMIC},
	{"mrnr", IBV_QP_MIN_RNR_TIMER},
	{"alt", IBV_QP_ALT_PATH},
	{"timeout", IBV_QP_TIMEOUT},
	{"retry", IBV_QP_RETRY_CNT},
	{"rnr", IBV_QP_RNR_RETRY},
	{"sqpsn", IBV_QP_SQ_PSN},
	{"mra", IBV_QP_MAX_QP_RD_ATOMIC},
	{"cur", IBV_QP_CUR_STATE},
	{"mig", IBV_QP_PATH_MIG_STATE},
	{"notify", IBV_QP_EN_SQD_ASYNC_NOTIFY},
	{"cap", IBV_QP_CAP},
};

#define ATTRIBUTES (sizeof(attributes) / sizeof(attributes[0]))

static const enum ibv_qp_type types[] = {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD, IBV_QPT_XRC_SEND,
					 IBV_QPT_XRC_RECV};

static int bits_of(const char *words)
{
	char copy[200];
	int bits = 0;

	snprintf(copy, sizeof(copy), "%s", words);
	for (char *save = NULL, *word = strtok_r(copy, " ", &save); word;
	     word = strtok_r(NULL, " ", &save)) {
		int bit = 0;

		for (size_t i = 0; i < ATTRIBUTES; i++)
			bit |= strcmp(attributes[i].name, word) == 0 ? attributes[i].bit : 0;
		assert_int_not_equal(bit, 0);
		bits |= bit;
	}
	return bits;
}

static bool expected(enum ibv_qp_type type, enum ibv_qp_state from, enum ibv_qp_state to,
		     int *required, int *optional)
{
	*required = *optional = 0;
	if (to == IBV_QPS_RESET)
		return true;
	if (to == IBV_QPS_ERR)
		return from != IBV_QPS_RESET;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (rows[i].type != type || rows[i].from != from || rows[i].to != to)
			continue;
		*required = bits_of(rows[i].required);
		*optional = bits_of(rows[i].optional);
		return true;
	}
	return false;
}

static void check_bits(enum ibv_qp_type type, enum ibv_qp_state from, enum ibv_qp_state to,
		       int required, int optional)
{
	int bits;

	assert_int_equal(vb_qp_state_check(type, from, to, required, &bits), VB_REASON_NONE);
	assert_int_equal(vb_qp_state_check(type, from, to, required | optional | IBV_QP_STATE,
					   &bits),
			 VB_REASON_NONE);
	assert_int_equal(bits, 0);
	for (size_t i = 0; i < ATTRIBUTES; i++) {
		int bit = attributes[i].bit;

		if (required & bit) {
			assert_int_equal(vb_qp_state_check(type, from, to, required & ~bit, &bits),
					 VB_REASON_QP_ATTR_MISSING);
			assert_int_equal(bits, bit);
		} else if (optional & bit) {
			assert_int_equal(vb_qp_state_check(type, from, to, required | bit, &bits),
					 VB_REASON_NONE);
		} else {
			assert_int_equal(vb_qp_state_check(type, from, to, required | bit, &bits),
					 VB_REASON_QP_ATTR_EXTRA);
			assert_int_equal(bits, bit);
		}
	}
}

static void every_transition(void **state)
{
	int required;
	int optional;
	int bits;

	(void)state;
	for (size_t t = 0; t < sizeof(types) / sizeof(types[0]); t++) {
		for (int from = IBV_QPS_RESET; from <= IBV_QPS_ERR; from++) {
			for (int to = IBV_QPS_RESET; to <= IBV_QPS_ERR; to++) {
				if (expected(types[t], from, to, &required, &optional))
					check_bits(types[t], from, to, required, optional);
				else
					assert_int_equal(vb_qp_state_check(types[t], from, to, 0,
									   &bits),
							 VB_REASON_QP_TRANSITION);
			}
		}
	}
}

static void values_that_are_no_states(void **state)
{
	int bits;

	(void)state;
	assert_int_equal(vb_qp_state_check(IBV_QPT_RC, IBV_QPS_RESET, IBV_QPS_UNKNOWN, 0, &bits),
			 VB_REASON_QP_TRANSITION);
	assert_int_equal(vb_qp_state_check(IBV_QPT_RC, IBV_QPS_UNKNOWN, IBV_QPS_RESET, 0, &bits),
			 VB_REASON_QP_TRANSITION);
	assert_int_equal(vb_qp_state_check(IBV_QPT_RC, (enum ibv_qp_state)77, IBV_QPS_ERR, 0,
					   &bits),
			 VB_REASON_QP_TRANSITION);
	assert_int_equal(vb_qp_state_check((enum ibv_qp_type)0xff, IBV_QPS_INIT, IBV_QPS_ERR, 0,
					   &bits),
			 VB_REASON_QP_TRANSITION);
	assert_int_equal(vb_qp_state_check(IBV_QPT_DRIVER, IBV_QPS_INIT, IBV_QPS_ERR, 0, &bits),
			 VB_REASON_QP_TRANSITION);
}

static void names(void **state)
{
	(void)state;
	assert_string_equal(vb_qp_state_name(IBV_QPS_RESET), "RESET");
	assert_string_equal(vb_qp_state_name(IBV_QPS_SQE), "SQE");
	assert_string_equal(vb_qp_state_name(IBV_QPS_ERR), "ERR");
	assert_string_equal(vb_qp_state_name(IBV_QPS_UNKNOWN), "?");
	assert_string_equal(vb_qp_state_name((enum ibv_qp_state) - 1), "?");
}

static void opcodes(void **state)
{
	static const struct {
		enum ibv_wr_opcode opcode;
		bool rc, uc, ud, xs;
	} table[] = {
		{IBV_WR_SEND, true, true, true, true},
		{IBV_WR_SEND_WITH_IMM, true, true, true, true},
		{IBV_WR_RDMA_WRITE, true, true, false, true},
		{IBV_WR_RDMA_WRITE_WITH_IMM, true, true, false, true},
		{IBV_WR_SEND_WITH_INV, true, false, false, true},
		{IBV_WR_BIND_MW, true, true, false, true},
		{IBV_WR_LOCAL_INV, true, true, false, true},
		{IBV_WR_RDMA_READ, true, false, false, true},
		{IBV_WR_ATOMIC_CMP_AND_SWP, true, false, false, true},
		{IBV_WR_ATOMIC_FETCH_AND_ADD, true, false, false, true},
		{IBV_WR_FLUSH, true, false, false, true},
		{IBV_WR_ATOMIC_WRITE, true, false, false, true},
		{IBV_WR_TSO, false, false, false, false},
		{(enum ibv_wr_opcode)99, false, false, false, false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		assert_int_equal(vb_qp_type_has_opcode(IBV_QPT_RC, table[i].opcode), table[i].rc);
		assert_int_equal(vb_qp_type_has_opcode(IBV_QPT_UC, table[i].opcode), table[i].uc);
		assert_int_equal(vb_qp_type_has_opcode(IBV_QPT_UD, table[i].opcode), table[i].ud);
		assert_int_equal(vb_qp_type_has_opcode(IBV_QPT_XRC_SEND, table[i].opcode),
				 table[i].xs);
		assert_false(vb_qp_type_has_opcode(IBV_QPT_XRC_RECV, table[i].opcode));
		assert_false(vb_qp_type_has_opcode((enum ibv_qp_type)0xff, table[i].opcode));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_transition),
		cmocka_unit_test(values_that_are_no_states),
		cmocka_unit_test(names),
		cmocka_unit_test(opcodes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
