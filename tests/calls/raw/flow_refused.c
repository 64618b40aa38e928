/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What rules of flow steering refuse, spec by spec: types, sizes, repetitions, how many
 * (ibv_create_flow(3)). No frame is sent. Needs CAP_NET_RAW.
 */
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include <infiniband/verbs.h>

#include "support/check.h"
#include "support/endpoint.h"

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))
#define MOST_SPECS  16
#define MOST_RULES  4096 /* ibv_create_flow(3) */

static struct ibv_context *ctx, *other;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_qp *qp;

/* A rule and the specs that follow it, packed. */
struct rule {
	struct ibv_flow_attr attr;
	char specs[2048];
	size_t used;
};

static struct rule rule_begin(void)
{
	struct rule rule = {.attr = {.type = IBV_FLOW_ATTR_NORMAL, .port = 1}};

	return rule;
}

static void rule_add(struct rule *rule, const void *spec, size_t size)
{
	memcpy((char *)(&rule->attr + 1) + rule->used, spec, size);
	rule->used += size;
	rule->attr.num_of_specs++;
	rule->attr.size = (uint16_t)(sizeof(rule->attr) + rule->used);
}

/* A header's spec of that size, whose masks want nothing. */
static void header_add(struct rule *rule, uint32_t type, uint16_t size)
{
	char spec[512] = {0};

	memcpy(spec, &type, sizeof(type));
	memcpy(spec + sizeof(type), &size, sizeof(size));
	rule_add(rule, spec, size);
}

static void expect_made(struct rule *rule)
{
	struct ibv_flow *flow = ibv_create_flow(qp, &rule->attr);

	if (EXPECT(flow && flow->context == ctx))
		EXPECT_EQ(ibv_destroy_flow(flow), 0);
}

static void expect_refused(struct rule *rule, int err)
{
	EXPECT_NULL(ibv_create_flow(qp, &rule->attr), err);
}

/* As Linux does since 5.13; some drivers took 0 before. */
static void ports(void)
{
	static const uint8_t none[] = {0, 2, 255};
	struct rule rule = rule_begin();

	for (size_t i = 0; i < COUNT(none); i++) {
		expect_case("port %u", none[i]);
		rule.attr.port = none[i];
		expect_refused(&rule, EINVAL);
	}
	expect_case("port 1");
	rule.attr.port = 1;
	expect_made(&rule);
}

static const struct {
	const char *what;
	uint32_t type;
	uint16_t size;
} headers[] = {
	{"ETH", IBV_FLOW_SPEC_ETH, sizeof(struct ibv_flow_spec_eth)},
	{"IPV4", IBV_FLOW_SPEC_IPV4, sizeof(struct ibv_flow_spec_ipv4)},
	{"IPV4_EXT", IBV_FLOW_SPEC_IPV4_EXT, sizeof(struct ibv_flow_spec_ipv4_ext)},
	{"IPV6", IBV_FLOW_SPEC_IPV6, sizeof(struct ibv_flow_spec_ipv6)},
	{"TCP", IBV_FLOW_SPEC_TCP, sizeof(struct ibv_flow_spec_tcp_udp)},
	{"UDP", IBV_FLOW_SPEC_UDP, sizeof(struct ibv_flow_spec_tcp_udp)},
	{"ESP", IBV_FLOW_SPEC_ESP, sizeof(struct ibv_flow_spec_esp)},
	{"VXLAN", IBV_FLOW_SPEC_VXLAN_TUNNEL, sizeof(struct ibv_flow_spec_tunnel)},
	{"GRE", IBV_FLOW_SPEC_GRE, sizeof(struct ibv_flow_spec_gre)},
	{"MPLS", IBV_FLOW_SPEC_MPLS, sizeof(struct ibv_flow_spec_mpls)},
};

static void header_row(const char *what, uint32_t type, uint16_t size)
{
	static const int wrong[] = {-4, -1, 1, 4};
	struct rule rule = rule_begin();

	expect_case("spec %s, type 0x%x", what, type);
	header_add(&rule, type, size);
	expect_made(&rule);
	expect_case("spec %s, type 0x%x: twice", what, type);
	header_add(&rule, type, size);
	expect_refused(&rule, EINVAL);
	for (size_t i = 0; i < COUNT(wrong); i++) {
		rule = rule_begin();
		expect_case("spec %s, type 0x%x: size %+d", what, type, wrong[i]);
		header_add(&rule, type, (uint16_t)(size + wrong[i]));
		expect_refused(&rule, EINVAL);
	}
}

static void headers_one_by_one(void)
{
	static const uint32_t none[] = {0, 0x1f, 0x33, 0x42, 0x52, 0x61, 0x1004, 0x80000020};

	for (size_t i = 0; i < COUNT(headers); i++) {
		header_row(headers[i].what, headers[i].type, headers[i].size);
		header_row(headers[i].what, headers[i].type | IBV_FLOW_SPEC_INNER, headers[i].size);
	}
	for (size_t i = 0; i < COUNT(none); i++) {
		struct rule rule = rule_begin();

		expect_case("no such spec: 0x%x", none[i]);
		header_add(&rule, none[i], sizeof(struct ibv_flow_spec_eth));
		expect_refused(&rule, EINVAL);
	}
	for (uint16_t size = 0; size < 6; size++) {
		struct ibv_flow_spec_eth eth = {.type = IBV_FLOW_SPEC_ETH, .size = size};
		struct rule rule = rule_begin();

		expect_case("a spec that says it has %u bytes", size);
		rule_add(&rule, &eth, sizeof(eth));
		expect_refused(&rule, EINVAL);
	}
}

static void headers_together(void)
{
	struct rule rule = rule_begin();

	expect_case("no specs");
	expect_made(&rule);
	expect_case("as many specs as a rule may have");
	for (size_t i = 0; i < MOST_SPECS; i++)
		header_add(&rule,
			   headers[i % COUNT(headers)].type |
				   (i < COUNT(headers) ? 0 : IBV_FLOW_SPEC_INNER),
			   headers[i % COUNT(headers)].size);
	rule.attr.priority = UINT16_MAX;
	expect_made(&rule);
	expect_case("one more");
	header_add(&rule, headers[COUNT(headers) - 1].type | IBV_FLOW_SPEC_INNER,
		   headers[COUNT(headers) - 1].size);
	expect_refused(&rule, EINVAL);
}

static void actions(void)
{
	struct ibv_flow_spec_action_tag tag = {.type = IBV_FLOW_SPEC_ACTION_TAG,
					       .size = sizeof(tag)};
	struct ibv_flow_spec_action_drop drop = {.type = IBV_FLOW_SPEC_ACTION_DROP,
						 .size = sizeof(drop)};
	struct ibv_flow_spec_action_handle handle = {.type = IBV_FLOW_SPEC_ACTION_HANDLE,
						     .size = sizeof(handle)};
	struct rule rule = rule_begin();

	expect_case("tag and drop");
	rule_add(&rule, &tag, sizeof(tag));
	rule_add(&rule, &drop, sizeof(drop));
	expect_made(&rule);
	expect_case("a second tag");
	rule_add(&rule, &tag, sizeof(tag));
	expect_refused(&rule, EINVAL);
	expect_case("a tag of the wrong size");
	rule = rule_begin();
	header_add(&rule, IBV_FLOW_SPEC_ACTION_TAG, sizeof(tag) + 4);
	expect_refused(&rule, EINVAL);
	expect_case("a drop of the wrong size");
	rule = rule_begin();
	header_add(&rule, IBV_FLOW_SPEC_ACTION_DROP, sizeof(drop) + 4);
	expect_refused(&rule, EINVAL);
	expect_case("a flow action");
	rule = rule_begin();
	rule_add(&rule, &handle, sizeof(handle));
	expect_refused(&rule, EOPNOTSUPP);
}

static struct ibv_counters *counters_make(struct ibv_context *of)
{
	struct ibv_counters_init_attr init = {.comp_mask = 0};
	struct ibv_counters *counters = ibv_create_counters(of, &init);

	CHECK(counters);
	return counters;
}

static void counted(void)
{
	struct ibv_counters *mine = counters_make(ctx), *theirs = counters_make(other);
	struct ibv_flow_spec_counter_action count = {.type = IBV_FLOW_SPEC_ACTION_COUNT,
						     .size = sizeof(count)};
	struct rule rule = rule_begin();

	expect_case("count: no counters");
	rule_add(&rule, &count, sizeof(count));
	expect_refused(&rule, EINVAL);
	expect_case("count: four of them");
	count.counters = mine;
	rule = rule_begin();
	for (int i = 0; i < 4; i++)
		rule_add(&rule, &count, sizeof(count));
	expect_made(&rule);
	expect_case("count: five");
	rule_add(&rule, &count, sizeof(count));
	expect_refused(&rule, EINVAL);
	expect_case("count: the second is another context's, and the first is let go");
	rule = rule_begin();
	rule_add(&rule, &count, sizeof(count));
	count.counters = theirs;
	rule_add(&rule, &count, sizeof(count));
	expect_refused(&rule, EINVAL);
	expect_case("count: the wrong size");
	rule = rule_begin();
	header_add(&rule, IBV_FLOW_SPEC_ACTION_COUNT, sizeof(count) + 8);
	expect_refused(&rule, EINVAL);
	expect_case("count: nothing is held");
	EXPECT_EQ(ibv_destroy_counters(mine), 0);
	EXPECT_EQ(ibv_destroy_counters(theirs), 0);
}

static void types(void)
{
	static const struct {
		const char *what;
		uint32_t type, flags;
		int err;
	} rows[] = {
		{"ALL_DEFAULT", IBV_FLOW_ATTR_ALL_DEFAULT, 0, 0},
		{"MC_DEFAULT", IBV_FLOW_ATTR_MC_DEFAULT, 0, 0},
		{"SNIFFER", IBV_FLOW_ATTR_SNIFFER, 0, 0},
		{"NORMAL with DONT_TRAP", IBV_FLOW_ATTR_NORMAL, IBV_FLOW_ATTR_FLAGS_DONT_TRAP, 0},
		{"ALL_DEFAULT with DONT_TRAP", IBV_FLOW_ATTR_ALL_DEFAULT,
		 IBV_FLOW_ATTR_FLAGS_DONT_TRAP, EINVAL},
		{"MC_DEFAULT with DONT_TRAP", IBV_FLOW_ATTR_MC_DEFAULT,
		 IBV_FLOW_ATTR_FLAGS_DONT_TRAP, EINVAL},
		{"type -1", UINT32_MAX, 0, EINVAL},
		{"flag bit 0", IBV_FLOW_ATTR_NORMAL, 1, EINVAL},
		{"flag bit 3", IBV_FLOW_ATTR_NORMAL, 1u << 3, EINVAL},
		{"the last flag", IBV_FLOW_ATTR_NORMAL, 1u << 31, EINVAL},
	};
	struct rule rule;

	for (size_t i = 0; i < COUNT(rows); i++) {
		rule = rule_begin();
		rule.attr.type = (enum ibv_flow_attr_type)rows[i].type;
		rule.attr.flags = rows[i].flags;
		expect_case("rule: %s", rows[i].what);
		if (rows[i].err) {
			expect_refused(&rule, rows[i].err);
			continue;
		}
		expect_made(&rule);
		if (rule.attr.type == IBV_FLOW_ATTR_NORMAL)
			continue;
		expect_case("rule: %s with a spec", rows[i].what);
		header_add(&rule, headers[0].type, headers[0].size);
		expect_refused(&rule, EINVAL);
	}
	expect_case("a queue pair whose handle is overwritten");
	rule = rule_begin();
	qp->handle ^= 0x40000000;
	expect_refused(&rule, ENOENT);
	qp->handle ^= 0x40000000;
	expect_made(&rule);
}

/* As many rules as a device has in a process; after one went another fits. */
static void count(void)
{
	static struct ibv_flow *flow[MOST_RULES];
	struct rule rule = rule_begin();
	int made = 0;

	expect_case("as many rules as there may be, and one more");
	while (made < MOST_RULES && (flow[made] = ibv_create_flow(qp, &rule.attr)))
		made++;
	CHECK(made == MOST_RULES);
	expect_refused(&rule, ENOMEM);
	EXPECT_EQ(ibv_destroy_flow(flow[MOST_RULES / 2]), 0);
	flow[MOST_RULES / 2] = ibv_create_flow(qp, &rule.attr);
	CHECK(flow[MOST_RULES / 2]);
	for (int i = 0; i < MOST_RULES; i++)
		EXPECT_EQ(ibv_destroy_flow(flow[i]), 0);
}

static struct ibv_context *loopback_open(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *found = NULL;

	for (int i = 0; list && list[i] && !found; i++) {
		if (!strcmp(ibv_get_device_name(list[i]), "vb_lo"))
			found = ibv_open_device(list[i]);
	}
	ibv_free_device_list(list);
	if (!found)
		SKIP("no device of the loopback interface");
	return found;
}

int main(int argc, char **argv)
{
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RAW_PACKET,
					.cap = {.max_recv_wr = 1, .max_recv_sge = 1}};

	ep_main(argc, argv);
	ctx = loopback_open();
	other = loopback_open();
	pd = ibv_alloc_pd(ctx);
	cq = init.send_cq = init.recv_cq = ibv_create_cq(ctx, 4, NULL, NULL, 0);
	CHECK(pd && cq);
	qp = ibv_create_qp(pd, &init);
	if (!qp)
		SKIP("raw packet queue pairs need CAP_NET_RAW");
	ports();
	headers_one_by_one();
	headers_together();
	actions();
	counted();
	types();
	count();
	expect_case("nothing is held");
	EXPECT_EQ(ibv_destroy_qp(qp), 0);
	EXPECT_EQ(ibv_destroy_cq(cq), 0);
	EXPECT_EQ(ibv_dealloc_pd(pd), 0);
	EXPECT_EQ(ibv_close_device(ctx), 0);
	EXPECT_EQ(ibv_close_device(other), 0);
	return expect_done();
}
