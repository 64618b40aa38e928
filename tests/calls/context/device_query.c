/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The device list and every query of a context: values, relations between limits, wrong indices. */
#include <arpa/inet.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <infiniband/verbs.h>

#include "support/check.h"
#include "support/endpoint.h"

/* Names and GUIDs are the same each time (ibv_get_device_list(3)); real interfaces before lo. */
static void list_twice(void)
{
	struct ibv_device **first, **second;
	int n = -1, m = -1;

	expect_case("device list");
	first = ibv_get_device_list(&n);
	second = ibv_get_device_list(&m);
	CHECK(first && second);
	EXPECT(n >= 1);
	EXPECT_EQ(n, m);
	for (int i = 0; i < n && i < m; i++) {
		const char *name = ibv_get_device_name(first[i]);

		CHECK(name);
		EXPECT_SAY(!strcmp(name, ibv_get_device_name(second[i])), "%s moved", name);
		EXPECT_SAY(!strncmp(name, "vb_", 3), "%s is no name of ours", name);
		EXPECT_SAY(strcmp(name, "vb_lo") || i == n - 1, "vb_lo is not the last");
		EXPECT(ibv_get_device_guid(first[i]) != 0);
		EXPECT_EQ(ibv_get_device_guid(first[i]), ibv_get_device_guid(second[i]));
		EXPECT_EQ(first[i]->node_type, IBV_NODE_CA);
		EXPECT_EQ(first[i]->transport_type, IBV_TRANSPORT_IB);
		for (int j = 0; j < i; j++)
			EXPECT(ibv_get_device_guid(first[i]) != ibv_get_device_guid(first[j]));
	}
	EXPECT(first[n] == NULL);
	ibv_free_device_list(first);
	ibv_free_device_list(second);
}

static void open_many(void)
{
	struct ibv_context *ctx[100];
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_device *device;

	expect_case("open 100 times");
	CHECK(list && list[0]);
	device = list[0];
	for (int i = 0; i < 100; i++) {
		ctx[i] = ibv_open_device(device);
		CHECK(ctx[i]);
		EXPECT(ctx[i]->num_comp_vectors >= 1);
		EXPECT(ctx[i]->async_fd >= 0);
	}
	/* The list may go while contexts are open; the devices stay. */
	ibv_free_device_list(list);
	for (int i = 0; i < 100; i++) {
		EXPECT(ctx[i]->device == device);
		EXPECT(!strncmp(ibv_get_device_name(ctx[i]->device), "vb_", 3));
		EXPECT_EQ(ibv_close_device(ctx[i]), 0);
	}
}

static void *open_and_query(void *unused)
{
	(void)unused;
	for (int i = 0; i < 20; i++) {
		struct ibv_context *ctx = device_open();
		struct ibv_device_attr attr;
		bool good = ibv_query_device(ctx, &attr) == 0;

		if (ibv_close_device(ctx) || !good)
			return (void *)1;
	}
	return NULL;
}

static void open_from_threads(void)
{
	pthread_t thread[8];

	expect_case("open from threads");
	for (int i = 0; i < 8; i++)
		CHECK(pthread_create(&thread[i], NULL, open_and_query, NULL) == 0);
	for (int i = 0; i < 8; i++) {
		void *bad;

		CHECK(pthread_join(thread[i], &bad) == 0);
		EXPECT(bad == NULL);
	}
}

static void device_limits(struct ibv_context *ctx)
{
	struct ibv_device_attr attr, again;
	struct ibv_port_attr port;

	expect_case("device attributes");
	CHECK(ibv_query_device(ctx, &attr) == 0);
	CHECK(ibv_query_port(ctx, 1, &port) == 0);
	EXPECT(attr.vendor_id != 0);
	/* Not the numbers of adapter makers: libraries load special paths for those. */
	EXPECT(attr.vendor_id != 0x02c9 && attr.vendor_id != 0x15b3 && attr.vendor_id != 0x8086 &&
	       attr.vendor_id != 0x14e4 && attr.vendor_id != 0x1077 && attr.vendor_id != 0x1425);
	EXPECT(attr.node_guid != 0);
	EXPECT(attr.sys_image_guid != 0);
	EXPECT(memchr(attr.fw_ver, 0, sizeof(attr.fw_ver)) != NULL);
	EXPECT(attr.max_qp > 0);
	EXPECT(attr.max_qp_wr > 0);
	EXPECT(attr.max_sge > 0);
	EXPECT(attr.max_sge_rd > 0 && attr.max_sge_rd <= attr.max_sge);
	EXPECT(attr.max_cq > 0);
	EXPECT(attr.max_cqe > 0);
	EXPECT(attr.max_mr > 0);
	EXPECT(attr.max_pd > 0);
	EXPECT(attr.max_ah > 0);
	EXPECT(attr.max_srq > 0 && attr.max_srq_wr > 0 && attr.max_srq_sge > 0);
	EXPECT(attr.max_mr_size > 0);
	EXPECT(attr.page_size_cap != 0);
	EXPECT(attr.max_qp_rd_atom >= 1);
	EXPECT(attr.max_qp_init_rd_atom >= 1);
	EXPECT(attr.max_qp_rd_atom <= attr.max_res_rd_atom);
	EXPECT(attr.max_pkeys >= 1);
	EXPECT(attr.phys_port_cnt >= 1);
	EXPECT_EQ(attr.atomic_cap, IBV_ATOMIC_HCA);
	EXPECT(attr.local_ca_ack_delay < 24);
	EXPECT_EQ(attr.device_cap_flags & IBV_DEVICE_RESIZE_MAX_WR, 0);
	EXPECT_EQ(port.pkey_tbl_len <= attr.max_pkeys, 1);

	CHECK(ibv_query_device(ctx, &again) == 0);
	EXPECT_EQ(again.node_guid, attr.node_guid);
	EXPECT_EQ(again.sys_image_guid, attr.sys_image_guid);
	EXPECT_EQ(attr.node_guid, ibv_get_device_guid(ctx->device));
}

static void device_ex(struct ibv_context *ctx)
{
	struct {
		struct ibv_device_attr_ex attr;
		uint8_t past[64];
	} ex;
	struct ibv_query_device_ex_input input = {.comp_mask = 0};
	struct ibv_device_attr attr;

	expect_case("ibv_query_device_ex");
	CHECK(ibv_query_device(ctx, &attr) == 0);
	memset(&ex, 0xa5, sizeof(ex));
	CHECK(ibv_query_device_ex(ctx, NULL, &ex.attr) == 0);
	EXPECT_EQ(ex.attr.orig_attr.max_qp, attr.max_qp);
	EXPECT_EQ(ex.attr.orig_attr.max_qp_wr, attr.max_qp_wr);
	EXPECT_EQ(ex.attr.orig_attr.max_cqe, attr.max_cqe);
	EXPECT_EQ(ex.attr.orig_attr.max_sge, attr.max_sge);
	EXPECT_EQ(ex.attr.orig_attr.max_mr_size, attr.max_mr_size);
	EXPECT_EQ(ex.attr.orig_attr.node_guid, attr.node_guid);
	EXPECT_EQ(ex.attr.orig_attr.device_cap_flags, attr.device_cap_flags);
	EXPECT_EQ(ex.attr.orig_attr.phys_port_cnt, attr.phys_port_cnt);
	EXPECT_EQ(ex.attr.odp_caps.general_caps, IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT);
	EXPECT(ex.attr.max_dm_size >= 65536);
	for (size_t i = 0; i < sizeof(ex.past); i++)
		EXPECT_EQ(ex.past[i], 0xa5);
	EXPECT_EQ(ibv_query_device_ex(ctx, &input, &ex.attr), 0);
	input.comp_mask = 1;
	/* The header's inline function refuses this one, and leaves errno alone. */
	EXPECT_EQ(ibv_query_device_ex(ctx, &input, &ex.attr), EINVAL);
}

static void port(struct ibv_context *ctx)
{
	struct ibv_device_attr device;
	struct ibv_port_attr attr;

	expect_case("ibv_query_port");
	CHECK(ibv_query_device(ctx, &device) == 0);
	memset(&attr, 0xa5, sizeof(attr));
	CHECK(ibv_query_port(ctx, 1, &attr) == 0);
	EXPECT_EQ(attr.state, IBV_PORT_ACTIVE);
	EXPECT_EQ(attr.link_layer, IBV_LINK_LAYER_ETHERNET);
	EXPECT(attr.max_mtu >= IBV_MTU_256 && attr.max_mtu <= IBV_MTU_4096);
	EXPECT(attr.active_mtu >= IBV_MTU_256 && attr.active_mtu <= attr.max_mtu);
	EXPECT(attr.gid_tbl_len > 1);
	EXPECT(attr.pkey_tbl_len >= 1);
	EXPECT(attr.max_msg_sz == 0x80000000u);
	EXPECT(attr.active_width != 0);
	EXPECT(attr.active_speed != 0);
	EXPECT_EQ(attr.phys_state, 5);
	EXPECT_EQ(device.phys_port_cnt, 1);
}

/* Every query of a port, with numbers that are none; what is there to be filled stays as it was. */
static void wrong_ports(struct ibv_context *ctx)
{
	static const uint32_t numbers[] = {0, 2, 255, 256, 257, UINT32_MAX};
	struct ibv_port_attr attr;
	struct ibv_gid_entry entry;
	union ibv_gid gid;
	uint64_t speed = 12345;
	__be16 pkey = 0x1234;

	memset(&attr, 0xa5, sizeof(attr));
	memset(&entry, 0xa5, sizeof(entry));
	memset(&gid, 0xa5, sizeof(gid));
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		uint32_t number = numbers[i];

		expect_case("port %u", number);
		EXPECT_REFUSED(ibv_query_port_speed(ctx, number, &speed), EINVAL);
		EXPECT_REFUSED(ibv_query_gid_ex(ctx, number, 0, &entry, 0), EINVAL);
		if (number > 255)
			continue;
		EXPECT_REFUSED(ibv_query_port(ctx, (uint8_t)number, &attr), EINVAL);
		EXPECT_MINUS1(ibv_query_gid(ctx, (uint8_t)number, 0, &gid), EINVAL);
		EXPECT_MINUS1(ibv_query_pkey(ctx, (uint8_t)number, 0, &pkey), EINVAL);
		EXPECT_MINUS1(ibv_get_pkey_index(ctx, (uint8_t)number, 0xffff), EINVAL);
	}
	expect_case("refused queries fill nothing");
	EXPECT_EQ(attr.state, 0xa5a5a5a5);
	EXPECT_EQ(entry.port_num, 0xa5a5a5a5);
	EXPECT_EQ(gid.raw[0], 0xa5);
	EXPECT_EQ(speed, 12345);
	EXPECT_EQ(pkey, 0x1234);
}

/* In units of 100 Mbit/s, whole ones (ibv_query_port_speed(3)). */
static void port_speed(struct ibv_context *ctx)
{
	uint64_t speed = 0;

	expect_case("ibv_query_port_speed");
	EXPECT_EQ(ibv_query_port_speed(ctx, 1, &speed), 0);
	EXPECT(speed > 0);
}

/* The form of 2005, which binaries bind: nothing is written behind its 48 bytes. */
static void old_port(struct ibv_context *ctx)
{
	unsigned char room[64];

	expect_case("ibv_query_port of old binaries");
	memset(room, 0xa5, sizeof(room));
	EXPECT_EQ((ibv_query_port)(ctx, 1, (struct _compat_ibv_port_attr *)(void *)room), 0);
	EXPECT_EQ(room[0], IBV_PORT_ACTIVE);
	EXPECT(room[48] == 0xa5 && room[63] == 0xa5);
	memset(room, 0xa5, sizeof(room));
	EXPECT_REFUSED((ibv_query_port)(ctx, 2, (struct _compat_ibv_port_attr *)(void *)room),
		       EINVAL);
	EXPECT_EQ(room[0], 0xa5);
}

static bool gid_is_zero(const union ibv_gid *gid)
{
	return !gid->global.subnet_prefix && !gid->global.interface_id;
}

static void gids(struct ibv_context *ctx)
{
	struct ibv_port_attr attr;
	struct ibv_gid_entry entry;
	union ibv_gid gid;
	int filled = 0, empty = -1;

	CHECK(ibv_query_port(ctx, 1, &attr) == 0);
	expect_case("ibv_query_gid_ex index 0");
	CHECK(ibv_query_gid_ex(ctx, 1, 0, &entry, 0) == 0);
	EXPECT_EQ(entry.gid_index, 0);
	EXPECT_EQ(entry.port_num, 1);
	EXPECT_EQ(entry.gid_type, IBV_GID_TYPE_ROCE_V2);
	EXPECT(entry.ndev_ifindex != 0);

	for (int i = 0; i < attr.gid_tbl_len; i++) {
		int rc = ibv_query_gid_ex(ctx, 1, (uint32_t)i, &entry, 0);

		expect_case("GID slot %d", i);
		EXPECT_EQ(ibv_query_gid(ctx, 1, i, &gid), 0);
		if (rc) {
			EXPECT_EQ(rc, ENODATA);
			EXPECT(gid_is_zero(&gid));
			empty = empty < 0 ? i : empty;
			continue;
		}
		filled++;
		EXPECT(!gid_is_zero(&gid));
		EXPECT(!memcmp(&gid, &entry.gid, sizeof(gid)));
	}
	expect_case("GID table");
	EXPECT(filled >= 1);
	EXPECT(empty >= 0); /* a slot is left for an address to come */

	EXPECT_MINUS1(ibv_query_gid(ctx, 1, attr.gid_tbl_len, &gid), EINVAL);
	EXPECT_MINUS1(ibv_query_gid(ctx, 1, -1, &gid), EINVAL);
	EXPECT_MINUS1(ibv_query_gid(ctx, 1, INT32_MAX, &gid), EINVAL);
	EXPECT_MINUS1(ibv_query_gid(ctx, 1, INT32_MIN, &gid), EINVAL);
	EXPECT_REFUSED(ibv_query_gid_ex(ctx, 1, (uint32_t)attr.gid_tbl_len, &entry, 0), EINVAL);
	EXPECT_REFUSED(ibv_query_gid_ex(ctx, 1, UINT32_MAX, &entry, 0), EINVAL);
	for (uint32_t bit = 0; bit < 32; bit++)
		EXPECT_REFUSED(ibv_query_gid_ex(ctx, 1, 0, &entry, 1u << bit), EOPNOTSUPP);
}

static void gid_table(struct ibv_context *ctx)
{
	struct ibv_port_attr attr;
	struct ibv_gid_entry *table, one;
	ssize_t n;

	expect_case("ibv_query_gid_table");
	CHECK(ibv_query_port(ctx, 1, &attr) == 0);
	table = calloc((size_t)attr.gid_tbl_len, sizeof(*table));
	CHECK(table);
	n = ibv_query_gid_table(ctx, table, (size_t)attr.gid_tbl_len, 0);
	EXPECT(n >= 1 && n <= attr.gid_tbl_len);
	for (ssize_t i = 0; i < n; i++) {
		EXPECT_EQ(ibv_query_gid_ex(ctx, table[i].port_num, table[i].gid_index, &one, 0), 0);
		EXPECT(!memcmp(&one.gid, &table[i].gid, sizeof(one.gid)));
		EXPECT_EQ(one.gid_type, table[i].gid_type);
		EXPECT_EQ(one.ndev_ifindex, table[i].ndev_ifindex);
	}
	EXPECT_EQ(ibv_query_gid_table(ctx, table, (size_t)n, 0), n);
	memset(table, 0xa5, (size_t)n * sizeof(*table));
	EXPECT_EQ(ibv_query_gid_table(ctx, table, (size_t)n - 1, 0), -EINVAL);
	EXPECT_EQ(ibv_query_gid_table(ctx, table, 0, 0), -EINVAL);
	EXPECT_EQ(table[0].port_num, 0xa5a5a5a5); /* all or nothing */
	EXPECT_EQ(ibv_query_gid_table(ctx, table, SIZE_MAX, 0), n);
	for (uint32_t bit = 0; bit < 32; bit++)
		EXPECT_EQ(ibv_query_gid_table(ctx, table, (size_t)n, 1u << bit), -EOPNOTSUPP);
	free(table);
}

static void pkeys(struct ibv_context *ctx)
{
	struct ibv_port_attr attr;
	__be16 pkey = 0;

	expect_case("pkeys");
	CHECK(ibv_query_port(ctx, 1, &attr) == 0);
	EXPECT_EQ(ibv_query_pkey(ctx, 1, 0, &pkey), 0);
	EXPECT_EQ(ntohs(pkey), 0xffff);
	EXPECT_MINUS1(ibv_query_pkey(ctx, 1, attr.pkey_tbl_len, &pkey), EINVAL);
	EXPECT_MINUS1(ibv_query_pkey(ctx, 1, -1, &pkey), EINVAL);
	EXPECT_MINUS1(ibv_query_pkey(ctx, 1, INT32_MAX, &pkey), EINVAL);
	EXPECT_MINUS1(ibv_query_pkey(ctx, 1, INT32_MIN, &pkey), EINVAL);
	EXPECT_EQ(ntohs(pkey), 0xffff);
	EXPECT_EQ(ibv_get_pkey_index(ctx, 1, htons(0xffff)), 0);
	EXPECT_MINUS1(ibv_get_pkey_index(ctx, 1, htons(0x7fff)), EINVAL); /* a limited member's */
	EXPECT_MINUS1(ibv_get_pkey_index(ctx, 1, htons(0x1234)), EINVAL);
	EXPECT_MINUS1(ibv_get_pkey_index(ctx, 1, 0), EINVAL);
}

static void rt_values(struct ibv_context *ctx)
{
	struct ibv_values_ex values = {.comp_mask = IBV_VALUES_MASK_RAW_CLOCK};
	long before;

	expect_case("ibv_query_rt_values_ex");
	EXPECT_EQ(ibv_query_rt_values_ex(ctx, &values), 0);
	EXPECT_EQ(values.comp_mask, IBV_VALUES_MASK_RAW_CLOCK);
	EXPECT_EQ(values.raw_clock.tv_sec, 0);
	before = values.raw_clock.tv_nsec;
	EXPECT_EQ(ibv_query_rt_values_ex(ctx, &values), 0);
	EXPECT(values.raw_clock.tv_nsec >= before);
	expect_case("ibv_query_rt_values_ex: nothing asked, nothing filled");
	values = (struct ibv_values_ex){.raw_clock = {5, 6}};
	EXPECT_EQ(ibv_query_rt_values_ex(ctx, &values), 0);
	EXPECT_EQ(values.comp_mask, 0);
	EXPECT(values.raw_clock.tv_sec == 5 && values.raw_clock.tv_nsec == 6);
	for (uint32_t bit = 1; bit < 32; bit++) {
		expect_case("ibv_query_rt_values_ex: unknown bit %u", bit);
		values.comp_mask = IBV_VALUES_MASK_RAW_CLOCK | 1u << bit;
		EXPECT_REFUSED(ibv_query_rt_values_ex(ctx, &values), EINVAL);
		EXPECT_EQ(values.comp_mask, IBV_VALUES_MASK_RAW_CLOCK | 1u << bit);
		EXPECT_EQ(values.raw_clock.tv_sec, 5);
	}
}

int main(int argc, char **argv)
{
	struct ibv_context *ctx;

	ep_main(argc, argv);
	list_twice();
	open_many();
	open_from_threads();
	ctx = device_open();
	device_limits(ctx);
	device_ex(ctx);
	port(ctx);
	wrong_ports(ctx);
	port_speed(ctx);
	old_port(ctx);
	gids(ctx);
	gid_table(ctx);
	pkeys(ctx);
	rt_values(ctx);
	expect_case("close");
	EXPECT_EQ(ibv_close_device(ctx), 0);
	return expect_done();
}
