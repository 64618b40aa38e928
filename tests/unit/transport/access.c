/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Which accesses a key grants. */
#include "transport/access.h"

#include "stand.h"

static const struct vb_key region = {
	.key = 0x12345677,
	.access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ,
	.pd = 5,
	.start = 0x10000,
	.length = 0x1000,
	.base = 0x7f0000000000,
	.kind = VB_KEY_REGION,
};

static enum vb_reason remote(const struct vb_key *k, uint64_t va, uint64_t length, uint32_t need)
{
	uint64_t addr;

	return vb_access_check(k, k->key, k->pd, 9, va, length, need, VB_ACCESS_REMOTE, &addr);
}

static void grants_and_translates(void **state)
{
	uint64_t addr = 0;

	(void)state;
	assert_int_equal(vb_access_check(&region, region.key, 5, 9, 0x10010, 0x20,
					 IBV_ACCESS_REMOTE_READ, VB_ACCESS_REMOTE, &addr),
			 VB_REASON_NONE);
	assert_int_equal(addr, 0x7f0000000010);
	assert_int_equal(vb_access_check(&region, region.key, 5, 9, 0x10000, 0x1000, 0,
					 VB_ACCESS_LOCAL, &addr),
			 VB_REASON_NONE);
	assert_int_equal(addr, 0x7f0000000000);
}

static void refuses_keys(void **state)
{
	struct vb_key k = region;
	uint64_t addr;

	(void)state;
	assert_int_equal(vb_access_check(&k, k.key + 1, 5, 9, k.start, 1, 0, VB_ACCESS_LOCAL,
					 &addr),
			 VB_REASON_LKEY_UNKNOWN);
	assert_int_equal(vb_access_check(&k, k.key + 1, 5, 9, k.start, 1, 0, VB_ACCESS_REMOTE,
					 &addr),
			 VB_REASON_RKEY_UNKNOWN);
	assert_int_equal(vb_access_check(&k, k.key, 6, 9, k.start, 1, 0, VB_ACCESS_LOCAL, &addr),
			 VB_REASON_LKEY_PD);
	assert_int_equal(vb_access_check(&k, k.key, 6, 9, k.start, 1, 0, VB_ACCESS_REMOTE, &addr),
			 VB_REASON_RKEY_PD);
	k.key = 0; /* an entry that is not in use grants nothing to the key 0 either */
	assert_int_equal(remote(&k, k.start, 1, 0), VB_REASON_RKEY_UNKNOWN);
	k = region;
	k.kind = 99;
	assert_int_equal(remote(&k, k.start, 1, 0), VB_REASON_RKEY_UNKNOWN);
}

static void refuses_rights(void **state)
{
	struct vb_key k = region;
	uint64_t addr;

	(void)state;
	assert_int_equal(remote(&k, k.start, 1, IBV_ACCESS_REMOTE_WRITE), VB_REASON_RKEY_ACCESS);
	assert_int_equal(remote(&k, k.start, 1, IBV_ACCESS_REMOTE_ATOMIC), VB_REASON_RKEY_ACCESS);
	k.access = IBV_ACCESS_REMOTE_WRITE; /* each right alone suffices */
	assert_int_equal(remote(&k, k.start, 1, IBV_ACCESS_REMOTE_WRITE), VB_REASON_NONE);
	assert_int_equal(remote(&k, k.start, 1, IBV_ACCESS_REMOTE_READ), VB_REASON_RKEY_ACCESS);
	assert_int_equal(vb_access_check(&k, k.key, 5, 9, k.start, 1, IBV_ACCESS_LOCAL_WRITE,
					 VB_ACCESS_LOCAL, &addr),
			 VB_REASON_LKEY_ACCESS);
	assert_int_equal(vb_access_check(&k, k.key, 5, 9, k.start, 1, 0, VB_ACCESS_LOCAL, &addr),
			 VB_REASON_NONE);
}

static void ranges(void **state)
{
	struct vb_key k = region;

	(void)state;
	assert_int_equal(remote(&k, 0x10fff, 1, 0), VB_REASON_NONE);
	assert_int_equal(remote(&k, 0x10fff, 2, 0), VB_REASON_RKEY_RANGE);
	assert_int_equal(remote(&k, 0x11000, 1, 0), VB_REASON_RKEY_RANGE);
	assert_int_equal(remote(&k, 0xffff, 1, 0), VB_REASON_RKEY_RANGE);
	assert_int_equal(remote(&k, 0x10000, 0x1001, 0), VB_REASON_RKEY_RANGE);
	/* Sums that wrap 64 bits. */
	assert_int_equal(remote(&k, 0x10800, UINT64_MAX, 0), VB_REASON_RKEY_RANGE);
	assert_int_equal(remote(&k, UINT64_MAX, 0x10002, 0), VB_REASON_RKEY_RANGE);
	assert_int_equal(remote(&k, UINT64_MAX - 3, 4, 0), VB_REASON_RKEY_RANGE);
}

static void the_whole_address_space(void **state)
{
	struct vb_key k = region;
	uint64_t addr;

	(void)state;
	k.start = k.base = 0;
	k.length = UINT64_MAX; /* an implicit region */
	assert_int_equal(vb_access_check(&k, k.key, 5, 9, UINT64_MAX - 8, 8, 0, VB_ACCESS_REMOTE,
					 &addr),
			 VB_REASON_NONE);
	assert_int_equal(addr, UINT64_MAX - 8);
	assert_int_equal(remote(&k, UINT64_MAX, 1, 0), VB_REASON_RKEY_RANGE);
	/* A region at the very end: its last byte, and no sum over it. */
	k.start = UINT64_MAX - 0xfff;
	k.length = 0x1000;
	assert_int_equal(remote(&k, UINT64_MAX, 1, 0), VB_REASON_NONE);
	assert_int_equal(remote(&k, UINT64_MAX, 2, 0), VB_REASON_RKEY_RANGE);
	/* A region of no bytes. */
	k = region;
	k.length = 0;
	assert_int_equal(remote(&k, k.start, 1, 0), VB_REASON_RKEY_RANGE);
}

static void windows(void **state)
{
	struct vb_key k = region;
	uint64_t addr;

	(void)state;
	k.kind = VB_KEY_WINDOW;
	k.qpn = 9;
	assert_int_equal(remote(&k, k.start, 1, IBV_ACCESS_REMOTE_READ), VB_REASON_NONE);
	assert_int_equal(vb_access_check(&k, k.key, 5, 10, k.start, 1, 0, VB_ACCESS_REMOTE, &addr),
			 VB_REASON_RKEY_QP);
	assert_int_equal(vb_access_check(&k, k.key, 5, 9, k.start, 1, 0, VB_ACCESS_LOCAL, &addr),
			 VB_REASON_LKEY_UNKNOWN);
	k.qpn = 0; /* type 1: any queue pair of the domain */
	assert_int_equal(vb_access_check(&k, k.key, 5, 10, k.start, 1, 0, VB_ACCESS_REMOTE, &addr),
			 VB_REASON_NONE);
}

static void the_null_region(void **state)
{
	struct vb_key k = {
		.key = 0x100, .pd = 5, .kind = VB_KEY_NULL, .access = IBV_ACCESS_LOCAL_WRITE};
	uint64_t addr = 1;

	(void)state;
	assert_int_equal(vb_access_check(&k, k.key, 5, 9, 0xdead0000, 1ull << 40,
					 IBV_ACCESS_LOCAL_WRITE, VB_ACCESS_LOCAL, &addr),
			 VB_REASON_NONE);
	assert_int_equal(addr, 0);
	assert_int_equal(remote(&k, 0, 1, 0), VB_REASON_RKEY_UNKNOWN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(grants_and_translates),   cmocka_unit_test(refuses_keys),
		cmocka_unit_test(refuses_rights),          cmocka_unit_test(ranges),
		cmocka_unit_test(the_whole_address_space), cmocka_unit_test(windows),
		cmocka_unit_test(the_null_region),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
