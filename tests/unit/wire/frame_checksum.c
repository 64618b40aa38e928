/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Checksums of frames: one that was made is found right, with any bit turned it is found wrong, and
 * fragments and short frames have none.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "wire/frame_checksum.h"

#define PAYLOAD 21u /* odd */

static uint32_t make(uint8_t *at, uint8_t version, uint8_t proto)
{
	uint32_t header = proto == 6 ? 20 : 8;
	uint32_t ip = version == 4 ? 20 : 40;
	uint32_t bytes = header + PAYLOAD;

	memset(at, 0x5a, 14 + ip + bytes);
	at[12] = version == 4 ? 0x08 : 0x86;
	at[13] = version == 4 ? 0x00 : 0xdd;
	if (version == 4) {
		const uint8_t v4[20] = {0x45, 0,     0,    (uint8_t)(20 + bytes),
					1,    2,     0x40, 0,
					64,   proto, 9,    9,
					10,   0,     0,    1,
					10,   0,     0,    2};

		memcpy(at + 14, v4, 20);
	} else {
		const uint8_t v6[8] = {0x60, 0, 0, 0, 0, (uint8_t)bytes, proto, 64};

		memcpy(at + 14, v6, 8);
	}
	return 14 + ip + bytes;
}

static bool good(const uint8_t *at, uint32_t length)
{
	struct vb_frame frame;

	vb_frame_parse(&frame, at, length);
	return vb_frame_checksum_good(&frame);
}

static void made_and_found(void **state)
{
	static const uint8_t kinds[][2] = {{4, 6}, {4, 17}, {6, 6}, {6, 17}};

	(void)state;
	for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
		uint8_t frame[128];
		uint32_t length = make(frame, kinds[k][0], kinds[k][1]);

		assert_false(good(frame, length));
		vb_frame_checksum_fill(frame, length);
		assert_true(good(frame, length));
		/* Trailing bytes that the IP header does not count belong to the frame only. */
		frame[length] = 0x77;
		assert_true(good(frame, length + 1));
		/* Behind the IP header every byte counts. */
		for (uint32_t i = 14 + (kinds[k][0] == 4 ? 20 : 40); i < length; i++) {
			frame[i] ^= 0x10;
			assert_false(good(frame, length));
			frame[i] ^= 0x10;
		}
		/* A frame that ends before its packet does is left alone. */
		assert_false(good(frame, length - 1));
		frame[length - 1] ^= 1;
		vb_frame_checksum_fill(frame, length - 1);
		assert_false(good(frame, length));
	}
}

/* RFC 1071's way by hand: an IPv4 header whose sum is known. */
static void known_header(void **state)
{
	uint8_t frame[14 + 20] = {[12] = 0x08, [13] = 0x00};
	const uint8_t header[20] = {0x45, 0x00, 0x00, 0x14, 0x00, 0x00, 0x40, 0x00, 0x40, 0xfd,
				    0x00, 0x00, 0xc0, 0xa8, 0x00, 0x01, 0xc0, 0xa8, 0x00, 0xc7};

	(void)state;
	memcpy(frame + 14, header, 20);
	vb_frame_checksum_fill(frame, sizeof(frame));
	/* 4500+0014+4000+40fd+c0a8+0001+c0a8+00c7 = 24829 -> 482b -> b7d4 */
	assert_int_equal(frame[24], 0xb7);
	assert_int_equal(frame[25], 0xd4);
	assert_true(good(frame, sizeof(frame)));
}

static void without(void **state)
{
	uint8_t frame[128];
	uint32_t length = make(frame, 4, 17);

	(void)state;
	vb_frame_checksum_fill(frame, length);
	frame[40] = frame[41] = 0; /* UDP over IPv4 may do without */
	assert_true(good(frame, length));
	length = make(frame, 6, 17);
	vb_frame_checksum_fill(frame, length);
	frame[60] = frame[61] = 0; /* over IPv6 it may not */
	assert_false(good(frame, length));
	length = make(frame, 4, 6);
	frame[20] = 0x20; /* more fragments */
	vb_frame_checksum_fill(frame, length);
	assert_false(good(frame, length));
	memset(frame, 0, sizeof(frame));
	assert_false(good(frame, 60));
	assert_false(good(frame, 5));
	vb_frame_checksum_fill(frame, 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(made_and_found),
		cmocka_unit_test(known_header),
		cmocka_unit_test(without),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
