/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The functions that give values as words or in other units: every value that exists, and values
 * that do not.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include <infiniband/verbs.h>

/* Every value from first to last has words of its own; those around them do not. */
#define EACH_HAS_WORDS(function, type, first, last)                                            \
	do {                                                                                   \
		assert_string_equal(function((type)((first)-1)), "unknown");                   \
		assert_string_equal(function((type)((last) + 1)), "unknown");                  \
		assert_string_equal(function((type)-5), "unknown");                            \
		assert_string_equal(function((type)100000), "unknown");                        \
		for (int a = (first); a <= (int)(last); a++) {                                 \
			assert_string_not_equal(function((type)a), "unknown");                 \
			for (int b = (first); b < a; b++)                                      \
				assert_string_not_equal(function((type)a), function((type)b)); \
		}                                                                              \
	} while (0)

static void words(void **state)
{
	(void)state;
	EACH_HAS_WORDS(ibv_node_type_str, enum ibv_node_type, IBV_NODE_CA, IBV_NODE_UNSPECIFIED);
	EACH_HAS_WORDS(ibv_port_state_str, enum ibv_port_state, IBV_PORT_NOP,
		       IBV_PORT_ACTIVE_DEFER);
	EACH_HAS_WORDS(ibv_event_type_str, enum ibv_event_type, IBV_EVENT_CQ_ERR,
		       IBV_EVENT_DEVICE_SPEED_CHANGE);
	EACH_HAS_WORDS(ibv_wc_status_str, enum ibv_wc_status, IBV_WC_SUCCESS,
		       IBV_WC_TM_RNDV_INCOMPLETE);
	assert_string_equal(ibv_wc_status_str(IBV_WC_SUCCESS), "success");
}

/* By the value of the enumerator: times 2.5 Gbit/s and megabits, as programs know them. */
static const struct {
	int rate, mult, mbps;
} rates[] = {
	{2, 1, 2500},      {3, 4, 10000},     {4, 12, 30000},     {5, 2, 5000},
	{6, 8, 20000},     {7, 16, 40000},    {8, 24, 60000},     {9, 32, 80000},
	{10, 48, 120000},  {11, -1, 14062},   {12, -1, 56250},    {13, -1, 112500},
	{14, -1, 168750},  {15, -1, 25781},   {16, -1, 103125},   {17, -1, 206250},
	{18, -1, 309375},  {19, 11, 28125},   {20, 20, 53125},    {21, 160, 425000},
	{22, 240, 637500}, {23, 320, 850000}, {24, 480, 1275000},
};

enum { NUM_RATES = sizeof(rates) / sizeof(rates[0]) };

static void rates_forth(void **state)
{
	static const int none[] = {-1, 0, 1, 25, 1000};

	(void)state;
	for (int i = 0; i < NUM_RATES; i++) {
		assert_int_equal(ibv_rate_to_mult((enum ibv_rate)rates[i].rate), rates[i].mult);
		assert_int_equal(ibv_rate_to_mbps((enum ibv_rate)rates[i].rate), rates[i].mbps);
	}
	for (int i = 0; i < 5; i++) {
		assert_int_equal(ibv_rate_to_mult((enum ibv_rate)none[i]), -1);
		assert_int_equal(ibv_rate_to_mbps((enum ibv_rate)none[i]), -1);
	}
}

static int rate_of_mult(int mult)
{
	for (int i = 0; i < NUM_RATES; i++) {
		if (rates[i].mult == mult && mult > 0)
			return rates[i].rate;
	}
	return IBV_RATE_MAX;
}

static int rate_of_mbps(int mbps)
{
	for (int i = 0; i < NUM_RATES; i++) {
		if (rates[i].mbps == mbps)
			return rates[i].rate;
	}
	return IBV_RATE_MAX;
}

static void rates_back(void **state)
{
	(void)state;
	for (int mult = -2; mult < 500; mult++)
		assert_int_equal(mult_to_ibv_rate(mult), rate_of_mult(mult));
	for (int mbps = -2; mbps < 1300000; mbps++) {
		if ((int)mbps_to_ibv_rate(mbps) != rate_of_mbps(mbps))
			fail_msg("%d Mbit/s", mbps);
	}
}

/* RoCE v2 (Annex 17): the port says what the label does, and lies in the dynamic range. */
static void flow_label_ports(void **state)
{
	(void)state;
	assert_int_equal(ibv_flow_label_to_udp_sport(0), 0xc000);
	assert_int_equal(ibv_flow_label_to_udp_sport(0x3fff), 0xffff);
	assert_int_equal(ibv_flow_label_to_udp_sport(0x4000), 0xc001);
	assert_int_equal(ibv_flow_label_to_udp_sport(0xfffff), 0xc000 | (0x3fff ^ 0x3f));
}

static void types_in_masks(void **state)
{
	const uint32_t mask = 1u << IBV_QPT_UD | 1u << IBV_QPT_RAW_PACKET;

	(void)state;
	assert_int_equal(ibv_is_qpt_supported(mask, IBV_QPT_UD), 1);
	assert_int_equal(ibv_is_qpt_supported(mask, IBV_QPT_RAW_PACKET), 1);
	assert_int_equal(ibv_is_qpt_supported(mask, IBV_QPT_RC), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(words),          cmocka_unit_test(rates_forth),
		cmocka_unit_test(rates_back),     cmocka_unit_test(flow_label_ports),
		cmocka_unit_test(types_in_masks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
