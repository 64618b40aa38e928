/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Structures that have grown: a program compiled with older or newer headers states its own size,
 * and nothing beyond that size is written. The same holds for the rows of the GID and P_Key tables.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "fake.h"

#undef ibv_query_port

static struct verbs_context *slots(struct ibv_context *ctx)
{
	return verbs_get_ctx(ctx);
}

static void the_context_is_complete(void **state)
{
	struct ibv_context *ctx = fake_reset();

	(void)state;
	assert_ptr_equal(ctx->abi_compat, __VERBS_ABI_IS_EXTENDED);
	assert_non_null(verbs_get_ctx_op(ctx, query_port));
	assert_non_null(verbs_get_ctx_op(ctx, create_qp_ex));
	assert_null(verbs_get_ctx_op(ctx, create_flow_action_esp));
	slots(ctx)->sz =
		sizeof(struct verbs_context) - offsetof(struct verbs_context, query_port) - 1;
	assert_null(verbs_get_ctx_op(ctx, query_port));
}

static void port_attributes(void **state)
{
	struct ibv_context *ctx = fake_reset();
	unsigned char room[96];
	struct ibv_port_attr attr;

	(void)state;
	memset(room, 0xa5, sizeof(room));
	assert_int_equal(slots(ctx)->query_port(ctx, 1, (struct ibv_port_attr *)(void *)room, 52),
			 0);
	memcpy(&attr, room, 52);
	assert_int_equal(attr.port_cap_flags2, 0x1234);
	for (size_t i = 52; i < sizeof(room); i++)
		assert_int_equal(room[i], 0xa5);

	assert_int_equal(slots(ctx)->query_port(ctx, 1, (struct ibv_port_attr *)(void *)room, 80),
			 0);
	memcpy(&attr, room, sizeof(attr));
	assert_int_equal(attr.active_speed_ex, 0x56789abc);
	for (size_t i = sizeof(attr); i < 80; i++)
		assert_int_equal(room[i], 0);
	assert_int_equal(room[80], 0xa5);

	memset(room, 0xa5, sizeof(room));
	assert_int_equal(ibv_query_port(ctx, 1, (struct _compat_ibv_port_attr *)(void *)room), 0);
	assert_int_equal(room[47], IBV_QPF_GRH_REQUIRED);
	assert_int_equal(room[48], 0xa5);
	assert_int_equal(slots(ctx)->query_port(ctx, 2, &attr, sizeof(attr)), EINVAL);
}

static void device_attributes(void **state)
{
	struct ibv_context *ctx = fake_reset();
	struct ibv_query_device_ex_input input = {.comp_mask = 1};
	unsigned char room[512];
	struct ibv_device_attr_ex attr;

	(void)state;
	memset(room, 0xa5, sizeof(room));
	assert_int_equal(slots(ctx)->query_device_ex(ctx, NULL, (void *)room, 240), 0);
	assert_int_equal(room[240], 0xa5);
	memset(room, 0xa5, sizeof(room));
	assert_int_equal(slots(ctx)->query_device_ex(ctx, NULL, (void *)room, 500), 0);
	memcpy(&attr, room, sizeof(attr));
	assert_int_equal(attr.orig_attr.max_qp, 77);
	assert_true(attr.max_dm_size == 0x1122334455667788);
	assert_int_equal(room[sizeof(attr)], 0);
	assert_int_equal(room[499], 0);
	assert_int_equal(room[500], 0xa5);
	assert_int_equal(slots(ctx)->query_device_ex(ctx, NULL, (void *)room, 100), EINVAL);
	assert_int_equal(slots(ctx)->query_device_ex(ctx, &input, (void *)room, 500), EINVAL);
	assert_int_equal(ibv_query_device_ex(ctx, &input, &attr), EINVAL);
}

static struct ibv_context *with_gids(void)
{
	struct ibv_context *ctx = fake_reset();
	static const int filled[] = {0, 1, 4};

	for (int i = 0; i < 3; i++) {
		struct ibv_gid_entry *entry = &fake.gid[filled[i]];

		entry->gid_index = (uint32_t)filled[i];
		entry->port_num = 1;
		entry->gid.raw[15] = (uint8_t)(i + 1);
		entry->gid_type = IBV_GID_TYPE_ROCE_V2;
		entry->ndev_ifindex = 9;
	}
	return ctx;
}

static void gid_table(void **state)
{
	struct ibv_context *ctx = with_gids();
	struct ibv_gid_entry entries[8];
	unsigned char rows[3][40];

	(void)state;
	assert_int_equal(ibv_query_gid_table(ctx, entries, 8, 0), 3);
	assert_int_equal(entries[2].gid_index, 4);
	assert_int_equal(entries[2].gid.raw[15], 3);
	assert_int_equal(ibv_query_gid_table(ctx, entries, 3, 0), 3);
	memset(entries, 0xa5, sizeof(entries));
	errno = 0;
	assert_int_equal(ibv_query_gid_table(ctx, entries, 2, 0), -EINVAL);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(entries[0].gid.raw[15], 0xa5); /* not even those that had room */
	assert_int_equal(ibv_query_gid_table(ctx, NULL, 0, 0), -EINVAL);
	assert_int_equal(ibv_query_gid_table(ctx, entries, SIZE_MAX, 0), 3);
	assert_int_equal(ibv_query_gid_table(ctx, entries, 8, 1), -EOPNOTSUPP);
	assert_int_equal(_ibv_query_gid_table(ctx, entries, 8, 0, 0), -EINVAL);

	memset(rows, 0xa5, sizeof(rows));
	assert_int_equal(_ibv_query_gid_table(ctx, (void *)rows, 3, 0, 40), 3);
	assert_int_equal(rows[1][15], 2);
	assert_int_equal(rows[1][36], 0);
	memset(rows, 0xa5, sizeof(rows));
	assert_int_equal(_ibv_query_gid_ex(ctx, 1, 4, (void *)rows, 0, 20), 0);
	assert_int_equal(rows[0][15], 3);
	assert_int_equal(rows[0][20], 0xa5);
}

static void gid_entries(void **state)
{
	struct ibv_context *ctx = with_gids();
	struct ibv_gid_entry entry;
	union ibv_gid gid;

	(void)state;
	assert_int_equal(ibv_query_gid(ctx, 1, 1, &gid), 0);
	assert_int_equal(gid.raw[15], 2);
	assert_int_equal(ibv_query_gid(ctx, 1, 2, &gid), 0);
	assert_int_equal(gid.raw[15], 0);
	assert_int_equal(ibv_query_gid(ctx, 1, FAKE_GIDS, &gid), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(ibv_query_gid(ctx, 1, -1, &gid), -1);
	memset(&entry, 0xa5, sizeof(entry));
	assert_int_equal(ibv_query_gid_ex(ctx, 1, 2, &entry, 0), ENODATA);
	assert_int_equal(entry.port_num, 0xa5a5a5a5);
	assert_int_equal(ibv_query_gid_ex(ctx, 1, FAKE_GIDS, &entry, 0), EINVAL);
	assert_int_equal(ibv_query_gid_ex(ctx, 2, 0, &entry, 0), EINVAL);
	assert_int_equal(ibv_query_gid_ex(ctx, 1, 0, &entry, 4), EOPNOTSUPP);
}

static void pkeys(void **state)
{
	struct ibv_context *ctx = fake_reset();
	__be16 pkey;

	(void)state;
	fake.pkey[1] = 0xffff;
	assert_int_equal(ibv_query_pkey(ctx, 1, 1, &pkey), 0);
	assert_int_equal(pkey, 0xffff);
	assert_int_equal(ibv_query_pkey(ctx, 1, FAKE_PKEYS, &pkey), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(pkey, 0xffff);
	assert_int_equal(ibv_get_pkey_index(ctx, 1, 0xffff), 1);
	errno = 0;
	assert_int_equal(ibv_get_pkey_index(ctx, 1, 0x1111), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(ibv_get_pkey_index(ctx, 3, 0xffff), -1);
}

static void devices(void **state)
{
	int count = -1;
	struct ibv_device **list;

	(void)state;
	fake_reset();
	list = ibv_get_device_list(&count);
	assert_int_equal(count, 1);
	assert_string_equal(ibv_get_device_name(list[0]), "fake0");
	assert_int_equal(ibv_get_device_guid(list[0]), 0x42);
	assert_int_equal(ibv_get_device_index(list[0]), -1);
	assert_null(list[1]);
	ibv_free_device_list(list);
	assert_true(fake.freed);
	ibv_free_device_list(NULL);
	fake.err = -ENOMEM;
	assert_null(ibv_get_device_list(&count));
	assert_int_equal(count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_context_is_complete),
		cmocka_unit_test(port_attributes),
		cmocka_unit_test(device_attributes),
		cmocka_unit_test(gid_table),
		cmocka_unit_test(gid_entries),
		cmocka_unit_test(pkeys),
		cmocka_unit_test(devices),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
