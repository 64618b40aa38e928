/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Flow rules: which specs are taken, and for every kind one bit that decides between a match and
 * none.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "wire/flow_match.h"

/* Outer Ethernet with tag, IPv4, UDP 4789, VXLAN; inner Ethernet, IPv6, TCP. */
static const uint8_t frame_bytes[] = {
	0x02, 0, 0, 0, 0, 1, 0x02, 0, 0, 0, 0, 2, 0x81, 0, 0xbc, 0x0c, 0x08, 0,
	/* IPv4, DF */
	0x45, 0x20, 0, 128, 0, 0, 0x40, 0, 63, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2,
	/* UDP */
	0x04, 0xd2, 0x12, 0xb5, 0, 0, 0, 0,
	/* VXLAN */
	8, 0, 0, 0, 0x12, 0x34, 0x56, 0,
	/* inner */
	0x02, 0, 0, 0, 0, 3, 0x02, 0, 0, 0, 0, 4, 0x86, 0xdd,
	/* IPv6: class 0xab, label 0x12345 */
	0x6a, 0xb1, 0x23, 0x45, 0, 20, 6, 55, 0x20, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1,
	0x20, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2,
	/* TCP ports */
	0x30, 0x39, 0, 80, 0, 0, 0, 0};

static const uint8_t gre_bytes[] = {0x02, 0, 0, 0, 0, 1, 0x02, 0, 0, 0, 0, 2, 0x08, 0, 0x45, 0, 0,
				    128, 0, 0, 0, 0, 63, 47, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2,
				    /* GRE with key, MPLS inside */
				    0x20, 0, 0x88, 0x47, 0xaa, 0xbb, 0xcc, 0xdd, 0, 1, 0x21, 64,
				    /* inner IPv4, ESP */
				    0x45, 0, 0, 40, 0, 0, 0, 0, 63, 50, 0, 0, 10, 0, 0, 3, 10, 0, 0,
				    4, 0, 0, 0x11, 0x22, 0, 0, 0, 9};

struct built {
	struct ibv_flow_attr attr;
	char specs[512];
	uint32_t used;
};

static void begin(struct built *b)
{
	memset(b, 0, sizeof(*b));
	b->attr.size = sizeof(b->attr);
}

static void add(struct built *b, const void *spec, uint32_t size)
{
	memcpy(b->specs + b->used, spec, size);
	b->used += size;
	b->attr.num_of_specs++;
}

static int read_rule(struct built *b, struct vb_flow_rule *rule)
{
	const char *wrong = NULL;
	int err;

	/* The specs follow the attributes directly in memory. */
	memmove((char *)&b->attr + sizeof(b->attr), b->specs, sizeof(b->specs));
	err = vb_flow_rule_read(rule, &b->attr, &wrong);
	assert_true((err != 0) == (wrong != NULL));
	return err;
}

static bool matches(const void *spec, uint32_t size, const uint8_t *bytes, uint32_t length)
{
	struct vb_flow_rule rule;
	struct vb_frame frame;
	struct built b;

	begin(&b);
	add(&b, spec, size);
	assert_int_equal(read_rule(&b, &rule), 0);
	vb_frame_parse(&frame, bytes, length);
	return vb_flow_rule_matches(&rule, &frame);
}

/*
 * A spec whose masked value is the frame's matches; with any bit of the value turned it does not;
 * with no mask it does again.
 */
#define DECIDES(spec, frame)                                                           \
	do {                                                                           \
		(spec).size = sizeof(spec);                                            \
		assert_true(matches(&(spec), sizeof(spec), frame, sizeof(frame)));     \
		for (size_t byte = 0; byte < sizeof((spec).val); byte++) {             \
			for (int bit = 0; bit < 8; bit++) {                            \
				uint8_t *val = (uint8_t *)&(spec).val + byte;          \
				uint8_t mask = ((uint8_t *)&(spec).mask)[byte];        \
				uint8_t turned = (uint8_t)(1u << bit);                 \
                                                                                       \
				*val ^= turned;                                        \
				assert_int_equal(matches(&(spec), sizeof(spec), frame, \
							 sizeof(frame)),               \
						 !(mask & turned));                    \
				*val ^= turned;                                        \
			}                                                              \
		}                                                                      \
	} while (0)

static void every_kind(void **state)
{
	struct ibv_flow_spec_eth e = {
		.type = IBV_FLOW_SPEC_ETH,
		.val = {{0x02, 0, 0, 0, 0, 1}, {0x02, 0, 0, 0, 0, 2}, htons(0x0800), htons(0xbc0c)},
		.mask = {{0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
			 {0xff, 0, 0, 0, 0, 0xff},
			 0xffff,
			 0xffff}};
	struct ibv_flow_spec_eth inner = {
		.type = IBV_FLOW_SPEC_ETH | IBV_FLOW_SPEC_INNER,
		.val = {{0x02, 0, 0, 0, 0, 3}, {0}, htons(0x86dd), 0},
		.mask = {{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, {0}, 0xffff, 0}};
	struct ibv_flow_spec_ipv4 v4 = {.type = IBV_FLOW_SPEC_IPV4,
					.val = {htonl(0x0a000001), htonl(0x0a000002)},
					.mask = {UINT32_MAX, htonl(0xffffff00)}};
	struct ibv_flow_spec_ipv4_ext ext = {
		.type = IBV_FLOW_SPEC_IPV4_EXT,
		.val = {htonl(0x0a000001), htonl(0x0a000002), 17, 0x20, 63, 2},
		.mask = {UINT32_MAX, UINT32_MAX, 0xff, 0xff, 0xff, 0xff}};
	struct ibv_flow_spec_ipv6 v6 = {.type = IBV_FLOW_SPEC_IPV6 | IBV_FLOW_SPEC_INNER,
					.val = {.src_ip = {0x20, 1, [15] = 1},
						.dst_ip = {0x20, 1, [15] = 2},
						.flow_label = htonl(0x12345),
						.next_hdr = 6,
						.traffic_class = 0xab,
						.hop_limit = 55}};
	struct ibv_flow_spec_tcp_udp udp = {.type = IBV_FLOW_SPEC_UDP,
					    .val = {htons(4789), htons(1234)},
					    .mask = {0xffff, 0xffff}};
	struct ibv_flow_spec_tcp_udp tcp = {.type = IBV_FLOW_SPEC_TCP | IBV_FLOW_SPEC_INNER,
					    .val = {htons(80), htons(12345)},
					    .mask = {0xffff, 0xffff}};
	struct ibv_flow_spec_tunnel vxlan = {
		.type = IBV_FLOW_SPEC_VXLAN_TUNNEL, .val = {htonl(0x123456)}, .mask = {UINT32_MAX}};
	struct ibv_flow_spec_gre gre = {.type = IBV_FLOW_SPEC_GRE,
					.val = {htons(0x2000), htons(0x8847), htonl(0xaabbccdd)},
					.mask = {0xffff, 0xffff, UINT32_MAX}};
	struct ibv_flow_spec_mpls mpls = {.type = IBV_FLOW_SPEC_MPLS,
					  .val = {htonl(0x00012140)},
					  .mask = {htonl(0xfffff000)}};
	struct ibv_flow_spec_esp esp = {.type = IBV_FLOW_SPEC_ESP | IBV_FLOW_SPEC_INNER,
					.val = {htonl(0x1122), htonl(9)},
					.mask = {UINT32_MAX, UINT32_MAX}};

	(void)state;
	memset(&v6.mask, 0xff, sizeof(v6.mask));
	DECIDES(e, frame_bytes);
	DECIDES(inner, frame_bytes);
	DECIDES(v4, frame_bytes);
	DECIDES(ext, frame_bytes);
	DECIDES(v6, frame_bytes);
	DECIDES(udp, frame_bytes);
	DECIDES(tcp, frame_bytes);
	DECIDES(vxlan, frame_bytes);
	DECIDES(gre, gre_bytes);
	DECIDES(mpls, gre_bytes);
	DECIDES(esp, gre_bytes);
	/* A header that the frame does not have is no match, whatever the mask. */
	memset(&tcp.mask, 0, sizeof(tcp.mask));
	tcp.type = IBV_FLOW_SPEC_TCP;
	assert_false(matches(&tcp, sizeof(tcp), frame_bytes, sizeof(frame_bytes)));
	memset(&e.val, 0, sizeof(e.val));
	memset(&e.mask, 0, sizeof(e.mask));
	e.mask.vlan_tag = 0xffff;
	assert_false(matches(&e, sizeof(e), gre_bytes, sizeof(gre_bytes)));
}

static void refused(void **state)
{
	struct ibv_flow_spec_eth e = {.type = IBV_FLOW_SPEC_ETH, .size = sizeof(e)};
	struct ibv_flow_spec_action_handle handle = {.type = IBV_FLOW_SPEC_ACTION_HANDLE,
						     .size = sizeof(handle)};
	struct ibv_flow_spec_action_tag tag = {
		.type = IBV_FLOW_SPEC_ACTION_TAG, .size = sizeof(tag), .tag_id = 7};
	struct ibv_flow_spec_action_drop drop = {.type = IBV_FLOW_SPEC_ACTION_DROP,
						 .size = sizeof(drop)};
	struct ibv_flow_spec_counter_action count = {.type = IBV_FLOW_SPEC_ACTION_COUNT,
						     .size = sizeof(count)};
	struct vb_flow_rule rule;
	struct built b;

	(void)state;
	begin(&b);
	add(&b, &tag, sizeof(tag));
	add(&b, &drop, sizeof(drop));
	assert_int_equal(read_rule(&b, &rule), 0);
	assert_true(rule.has_tag && rule.tag == 7 && rule.drop && !rule.specs);

	begin(&b);
	add(&b, &tag, sizeof(tag));
	add(&b, &tag, sizeof(tag));
	assert_int_equal(read_rule(&b, &rule), -EINVAL);
	begin(&b);
	add(&b, &handle, sizeof(handle));
	assert_int_equal(read_rule(&b, &rule), -EOPNOTSUPP);
	begin(&b);
	add(&b, &count, sizeof(count)); /* no counters */
	assert_int_equal(read_rule(&b, &rule), -EINVAL);
	begin(&b);
	add(&b, &e, sizeof(e));
	add(&b, &e, sizeof(e));
	assert_int_equal(read_rule(&b, &rule), -EINVAL);
	begin(&b);
	e.size = sizeof(e) - 4;
	add(&b, &e, sizeof(e));
	assert_int_equal(read_rule(&b, &rule), -EINVAL);
	begin(&b);
	e.size = 3;
	add(&b, &e, sizeof(e));
	assert_int_equal(read_rule(&b, &rule), -EINVAL);
	begin(&b);
	e.size = sizeof(e);
	e.type = (enum ibv_flow_spec_type)0x77;
	add(&b, &e, sizeof(e));
	assert_int_equal(read_rule(&b, &rule), -EINVAL);
	begin(&b);
	e.size = 200;
	add(&b, &e, sizeof(e));
	assert_int_equal(read_rule(&b, &rule), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_kind),
		cmocka_unit_test(refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
