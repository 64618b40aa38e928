/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* GUIDs are derived from what stays the same over a restart of the host, and from nothing else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "device/guid.h"

static void from_the_mac(void **state)
{
	const struct vb_netdev dev = {
		.name = "eth0", .mac = {0x00, 0x1b, 0x21, 0x0a, 0x0b, 0x0c}, .mac_length = 6};

	(void)state;
	assert_true(vb_guid_of(&dev, "some machine") == 0x021b21fffe0a0b0cull);
	assert_true(vb_guid_of(&dev, "another machine") == 0x021b21fffe0a0b0cull);
}

static void without_a_mac(void **state)
{
	const struct vb_netdev lo = {.name = "lo", .index = 1}, later = {.name = "lo", .index = 7};
	const struct vb_netdev zero = {.name = "lo", .mac_length = 6};
	const struct vb_netdev tun = {.name = "tun0"};
	uint64_t guid = vb_guid_of(&lo, "machine");

	(void)state;
	assert_true(guid != 0);
	assert_true(vb_guid_of(&later, "machine") == guid);
	assert_true(vb_guid_of(&zero, "machine") == guid);
	assert_true(vb_guid_of(&tun, "machine") != guid);
	assert_true(vb_guid_of(&lo, "another") != guid);
	assert_true(vb_guid_of(&lo, "") != 0);
	assert_int_equal(guid >> 56 & 3,
			 0); /* locally administered, in the modified form; no group */
}

static void machine_has_a_name(void **state)
{
	char a[256], b[256];

	(void)state;
	vb_guid_machine(a, sizeof(a));
	vb_guid_machine(b, sizeof(b));
	assert_string_equal(a, b);
	assert_null(strchr(a, '\n'));
	assert_int_not_equal(strlen(a), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(from_the_mac),
		cmocka_unit_test(without_a_mac),
		cmocka_unit_test(machine_has_a_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
