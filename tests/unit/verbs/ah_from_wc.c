/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The way back to the sender of a datagram: which header is in the 40 bytes, what is read from it,
 * and where it leads (ibv_init_ah_from_wc(3), IBA annex A17).
 */
#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "fake.h"
#include "verbs/ah_from_wc.h"

/*
 * A header taken apart by hand: 192.0.2.1 to 198.51.100.7, TOS 0x28, TTL 61, UDP, checksum right.
 */
static const uint8_t ip4_header[20] = {
	0x45, 0x28, 0x00, 0x50, 0x12, 0x34, 0x40, 0x00, 61, 17, 0, 0, 192, 0, 2, 1, 198, 51, 100, 7,
};

static void checksum(uint8_t *header)
{
	uint32_t sum = 0;

	header[10] = header[11] = 0;
	for (int i = 0; i < 20; i += 2)
		sum += (uint32_t)(header[i] << 8 | header[i + 1]);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	header[10] = (uint8_t)(~sum >> 8);
	header[11] = (uint8_t)~sum;
}

static struct ibv_grh grh_ip4(void)
{
	struct ibv_grh grh;
	uint8_t area[40] = {0};

	memcpy(area + 20, ip4_header, 20);
	checksum(area + 20);
	memcpy(&grh, area, sizeof(grh));
	return grh;
}

static struct ibv_grh grh_ip6(uint8_t next_header)
{
	struct ibv_grh grh = {
		.version_tclass_flow = htonl(6u << 28 | 0xabu << 20 | 0x12345),
		.next_hdr = next_header,
		.hop_limit = 17,
		.sgid.raw = {0x20, 0x01, [15] = 1},
		.dgid.raw = {0x20, 0x01, [15] = 2},
	};

	return grh;
}

static void from_ip4(void **state)
{
	struct ibv_grh grh = grh_ip4();
	struct vb_wc_route route;
	char text[64];

	(void)state;
	assert_int_equal(vb_wc_route_parse(&grh, &route), 0);
	assert_string_equal(inet_ntop(AF_INET6, &route.sender, text, sizeof(text)),
			    "::ffff:192.0.2.1");
	assert_string_equal(inet_ntop(AF_INET6, &route.receiver, text, sizeof(text)),
			    "::ffff:198.51.100.7");
	assert_int_equal(route.type, IBV_GID_TYPE_ROCE_V2);
	assert_int_equal(route.traffic_class, 0x28);
	assert_int_equal(route.hop_limit, 61);
	assert_int_equal(route.flow_label, 0);
}

static void from_ip6(void **state)
{
	struct ibv_grh grh = grh_ip6(17);
	struct vb_wc_route route;

	(void)state;
	assert_int_equal(vb_wc_route_parse(&grh, &route), 0);
	assert_memory_equal(&route.sender, &grh.sgid, 16);
	assert_memory_equal(&route.receiver, &grh.dgid, 16);
	assert_int_equal(route.type, IBV_GID_TYPE_ROCE_V2);
	assert_int_equal(route.traffic_class, 0xab);
	assert_int_equal(route.flow_label, 0x12345);
	assert_int_equal(route.hop_limit, 17);
	grh.next_hdr = 0x1b;
	assert_int_equal(vb_wc_route_parse(&grh, &route), 0);
	assert_int_equal(route.type, IBV_GID_TYPE_ROCE_V1);
	grh.next_hdr = 6;
	assert_int_equal(vb_wc_route_parse(&grh, &route), -EPROTONOSUPPORT);
}

/* Byte 0 says 6 and byte 20 says 4: the checksum of the IPv4 header decides. */
static void both_possible(void **state)
{
	struct ibv_grh grh;
	struct vb_wc_route route;
	uint8_t area[40];

	(void)state;
	grh = grh_ip4();
	memcpy(area, &grh, sizeof(area));
	area[0] = 0x60;
	area[6] = 17;
	memcpy(&grh, area, sizeof(grh));
	assert_int_equal(vb_wc_route_parse(&grh, &route), 0);
	assert_int_equal(route.hop_limit, 61); /* IPv4 */

	area[30] ^= 1; /* checksum wrong */
	memcpy(&grh, area, sizeof(grh));
	assert_int_equal(vb_wc_route_parse(&grh, &route), 0);
	assert_int_equal(route.hop_limit, 0); /* IPv6 */

	memcpy(area + 20, ip4_header, 20);
	area[20] = 0x46; /* options: not what RoCE v2 sends */
	checksum(area + 20);
	memcpy(&grh, area, sizeof(grh));
	assert_int_equal(vb_wc_route_parse(&grh, &route), 0);
	assert_int_equal(route.hop_limit, 0);
}

static void no_way_back(void **state)
{
	struct ibv_grh grh = {0};
	struct vb_wc_route route;
	uint8_t area[40];

	(void)state;
	assert_int_equal(vb_wc_route_parse(&grh, &route), -EPROTONOSUPPORT);
	grh = grh_ip4();
	memcpy(area, &grh, sizeof(area));
	area[20 + 9] = 6; /* TCP */
	memcpy(&grh, area, sizeof(grh));
	assert_int_equal(vb_wc_route_parse(&grh, &route), -EPROTONOSUPPORT);
	area[20 + 9] = 17;
	area[20 + 16] = 239; /* to a group */
	memcpy(&grh, area, sizeof(grh));
	assert_int_equal(vb_wc_route_parse(&grh, &route), -EINVAL);
	grh = grh_ip6(17);
	grh.dgid.raw[0] = 0xff;
	assert_int_equal(vb_wc_route_parse(&grh, &route), -EINVAL);
}

static void through_the_table(void **state)
{
	struct ibv_context *ctx = fake_reset();
	struct ibv_wc wc = {.wc_flags = IBV_WC_GRH, .sl = 3, .slid = 9, .dlid_path_bits = 1};
	struct ibv_grh grh = grh_ip6(17);
	struct ibv_ah_attr attr;

	(void)state;
	fake.gid[1] = (struct ibv_gid_entry){grh.dgid, 1, 1, IBV_GID_TYPE_ROCE_V1, 0};
	memset(&attr, 0x5a, sizeof(attr));
	assert_int_equal(ibv_init_ah_from_wc(ctx, 1, &wc, &grh, &attr), -1);
	assert_int_equal(errno, ENOENT);
	assert_int_equal(attr.port_num, 0x5a);
	fake.gid[3] = (struct ibv_gid_entry){grh.dgid, 3, 1, IBV_GID_TYPE_ROCE_V2, 0};
	assert_int_equal(ibv_init_ah_from_wc(ctx, 1, &wc, &grh, &attr), 0);
	assert_int_equal(attr.is_global, 1);
	assert_int_equal(attr.grh.sgid_index, 3);
	assert_memory_equal(&attr.grh.dgid, &grh.sgid, 16);
	assert_int_equal(attr.grh.flow_label, 0x12345);
	assert_int_equal(attr.grh.traffic_class, 0xab);
	assert_int_equal(attr.sl, 3);
	assert_int_equal(attr.dlid, 9);
	assert_int_equal(attr.src_path_bits, 1);
	assert_int_equal(attr.port_num, 1);
	assert_int_equal(attr.static_rate, 0);
	assert_non_null(ibv_create_ah_from_wc(&fake.pd, &wc, &grh, 1));

	wc.wc_flags = 0;
	assert_int_equal(ibv_init_ah_from_wc(ctx, 1, &wc, NULL, &attr), 0);
	assert_int_equal(attr.is_global, 0);
	assert_int_equal(attr.grh.sgid_index, 0);
	wc.wc_flags = IBV_WC_GRH;
	assert_int_equal(ibv_init_ah_from_wc(ctx, 1, &wc, NULL, &attr), -1);
	assert_int_equal(ibv_init_ah_from_wc(ctx, 4, &wc, &grh, &attr), -1);
	assert_null(ibv_create_ah_from_wc(&fake.pd, &wc, &grh, 4));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(from_ip4),          cmocka_unit_test(from_ip6),
		cmocka_unit_test(both_possible),     cmocka_unit_test(no_way_back),
		cmocka_unit_test(through_the_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
