/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Ethernet frames: headers found outside and inside tunnels, nothing read past the end, and the
 * published Toeplitz vectors.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <infiniband/verbs.h>

#include "wire/frame.h"

struct made {
	uint8_t bytes[256];
	uint32_t length;
};

static void put(struct made *m, const void *data, uint32_t length)
{
	memcpy(m->bytes + m->length, data, length);
	m->length += length;
}

static void put16(struct made *m, uint16_t value)
{
	uint8_t be[2] = {(uint8_t)(value >> 8), (uint8_t)value};

	put(m, be, 2);
}

static void eth(struct made *m, uint16_t type)
{
	put(m, "\x02\x00\x00\x00\x00\x01\x02\x00\x00\x00\x00\x02", 12);
	put16(m, type);
}

static void ipv4(struct made *m, uint8_t proto, uint16_t fragment)
{
	uint8_t ip[20] = {0x45,
			  0x10,
			  0,
			  60,
			  0,
			  0,
			  (uint8_t)(fragment >> 8),
			  (uint8_t)fragment,
			  64,
			  proto,
			  0,
			  0,
			  66,
			  9,
			  149,
			  187,
			  161,
			  142,
			  100,
			  80};

	put(m, ip, sizeof(ip));
}

static void ipv6(struct made *m, uint8_t proto)
{
	static const uint8_t from[16] = {0x3f, 0xfe, 0x25, 0x01, 0x02, 0, 0x1f, 0xff, [15] = 7};
	static const uint8_t to[16] = {0x3f, 0xfe, 0x25, 0x01, 0x02, 0, 0, 3, [15] = 1};
	uint8_t first[8] = {0x60, 0, 0, 0, 0, 20, proto, 64};

	put(m, first, sizeof(first));
	put(m, from, 16);
	put(m, to, 16);
}

static void ports(struct made *m, uint16_t to)
{
	put16(m, 2794);
	put16(m, to);
	put(m, "\0\0\0\0", 4);
}

static struct vb_frame parsed(const struct made *m)
{
	struct vb_frame frame;

	vb_frame_parse(&frame, m->bytes, m->length);
	return frame;
}

static void plain(void **state)
{
	struct made m = {.length = 0};
	struct vb_frame f;

	(void)state;
	eth(&m, 0x0800);
	ipv4(&m, 6, 0x4000);
	ports(&m, 1766);
	f = parsed(&m);
	assert_ptr_equal(f.layer[0].eth, m.bytes);
	assert_ptr_equal(f.layer[0].ip, m.bytes + 14);
	assert_ptr_equal(f.layer[0].l4, m.bytes + 34);
	assert_int_equal(f.layer[0].proto, 6);
	assert_int_equal(f.layer[0].version, 4);
	assert_false(f.layer[0].tagged);
	assert_null(f.layer[1].eth);
	assert_null(f.layer[1].ip);
	assert_false(vb_frame_is_multicast(&f));
}

static void tagged(void **state)
{
	struct made m = {.length = 0};
	struct vb_frame f;

	(void)state;
	eth(&m, 0x88a8);
	put16(&m, 0x0001);
	put16(&m, 0x8100);
	put16(&m, 0xbc0c);
	put16(&m, 0x86dd);
	ipv6(&m, 17);
	ports(&m, 53);
	f = parsed(&m);
	assert_true(f.layer[0].tagged);
	assert_int_equal(f.layer[0].vlan, 0xbc0c);
	assert_int_equal(f.layer[0].ether_type, 0x86dd);
	assert_int_equal(f.layer[0].version, 6);
	assert_non_null(f.layer[0].l4);
}

static void later_fragment(void **state)
{
	struct made m = {.length = 0};
	struct vb_frame f;

	(void)state;
	eth(&m, 0x0800);
	ipv4(&m, 17, 0x0010);
	ports(&m, 53);
	f = parsed(&m);
	assert_non_null(f.layer[0].ip);
	assert_null(f.layer[0].l4);
}

static void tunnels(void **state)
{
	static const uint8_t vxlan[8] = {8, 0, 0, 0, 0x12, 0x34, 0x56, 0};
	static const uint8_t gre[8] = {0x20, 0, 0x08, 0, 0xaa, 0xbb, 0xcc, 0xdd};
	static const uint8_t labels[8] = {0, 1, 0x20, 64, 0, 2, 0x31, 64};
	struct made m = {.length = 0};
	struct vb_frame f;

	(void)state;
	eth(&m, 0x0800);
	ipv4(&m, 17, 0);
	ports(&m, 4789);
	put(&m, vxlan, sizeof(vxlan));
	eth(&m, 0x86dd);
	ipv6(&m, 6);
	ports(&m, 80);
	f = parsed(&m);
	assert_true(f.layer[0].has_vni);
	assert_int_equal(f.layer[0].vni, 0x123456);
	assert_non_null(f.layer[1].eth);
	assert_int_equal(f.layer[1].version, 6);
	assert_int_equal(f.layer[1].proto, 6);

	m.length = 0;
	eth(&m, 0x86dd);
	ipv6(&m, 47);
	put(&m, gre, sizeof(gre));
	ipv4(&m, 17, 0);
	ports(&m, 53);
	f = parsed(&m);
	assert_non_null(f.layer[0].gre);
	assert_int_equal(f.layer[0].gre_bytes, 8);
	assert_null(f.layer[1].eth);
	assert_int_equal(f.layer[1].version, 4);

	m.length = 0;
	eth(&m, 0x8847);
	put(&m, labels, sizeof(labels));
	ipv4(&m, 6, 0);
	ports(&m, 80);
	f = parsed(&m);
	assert_memory_equal(f.layer[0].mpls, labels, 4);
	assert_int_equal(f.layer[1].version, 4);
	assert_non_null(f.layer[1].l4);
}

/*
 * Every prefix of every frame: a header is either whole or not there; the sanitizer sees what is
 * read.
 */
static void cut_short(void **state)
{
	struct made m = {.length = 0};

	(void)state;
	eth(&m, 0x8100);
	put16(&m, 5);
	put16(&m, 0x0800);
	ipv4(&m, 17, 0);
	ports(&m, 4789);
	put(&m, "\x08\0\0\0\0\0\1\0", 8);
	eth(&m, 0x86dd);
	ipv6(&m, 6);
	ports(&m, 80);
	for (uint32_t length = 0; length <= m.length; length++) {
		uint8_t *copy = malloc(length ? length : 1);
		struct vb_frame f;
		bool hashed;
		static const uint8_t key[VB_TOEPLITZ_KEY] = {1};

		memcpy(copy, m.bytes, length);
		vb_frame_parse(&f, copy, length);
		assert_true((f.layer[0].eth != NULL) == (length >= 14));
		assert_true((f.layer[0].ip != NULL) == (length >= 38));
		assert_true((f.layer[0].l4 != NULL) == (length >= 42));
		assert_true((f.layer[1].eth != NULL) == (length >= 68));
		assert_true((f.layer[1].ip != NULL) == (length >= 108));
		vb_frame_hash(&f, UINT64_MAX, key, &hashed);
		free(copy);
	}
}

/* The verification suite that Microsoft publishes for receive side scaling. */
static void toeplitz(void **state)
{
	static const uint8_t key[VB_TOEPLITZ_KEY] = {
		0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3,
		0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3,
		0x80, 0x30, 0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa};
	const uint64_t v4 = IBV_RX_HASH_SRC_IPV4 | IBV_RX_HASH_DST_IPV4;
	const uint64_t v6 = IBV_RX_HASH_SRC_IPV6 | IBV_RX_HASH_DST_IPV6;
	const uint64_t tcp = IBV_RX_HASH_SRC_PORT_TCP | IBV_RX_HASH_DST_PORT_TCP;
	const uint64_t udp = IBV_RX_HASH_SRC_PORT_UDP | IBV_RX_HASH_DST_PORT_UDP;
	struct made m = {.length = 0};
	struct vb_frame f;
	bool hashed;

	(void)state;
	eth(&m, 0x0800);
	ipv4(&m, 6, 0);
	ports(&m, 1766);
	f = parsed(&m);
	assert_int_equal(vb_frame_hash(&f, v4, key, &hashed), 0x323e8fc2);
	assert_true(hashed);
	assert_int_equal(vb_frame_hash(&f, v4 | tcp, key, &hashed), 0x51ccc178);
	assert_int_equal(vb_frame_hash(&f, v4 | udp, key, &hashed), 0x323e8fc2);
	vb_frame_hash(&f, v6 | udp, key, &hashed);
	assert_false(hashed);

	m.length = 0;
	eth(&m, 0x86dd);
	ipv6(&m, 6);
	ports(&m, 1766);
	f = parsed(&m);
	assert_int_equal(vb_frame_hash(&f, v6, key, &hashed), 0x2cc18cd5);
	assert_int_equal(vb_frame_hash(&f, v6 | tcp, key, &hashed), 0x40207d3d);
	/* Nothing inside: the inner hash has no input. */
	assert_int_equal(vb_frame_hash(&f, v6 | (uint64_t)IBV_RX_HASH_INNER, key, &hashed), 0);
	assert_false(hashed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plain),          cmocka_unit_test(tagged),
		cmocka_unit_test(later_fragment), cmocka_unit_test(tunnels),
		cmocka_unit_test(cut_short),      cmocka_unit_test(toeplitz),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
