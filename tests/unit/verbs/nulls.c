/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * NULL where an object or a structure has to be: each exported verb, and each entry that the
 * header's inline functions call, answers EINVAL in the way of that verb, asks no device, and
 * returns. Verbs that return nothing do nothing. Verbs whose pages allow NULL are in other tests.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "fake.h"
#include "verbs/sysfs.h"

#undef ibv_query_port

/* How a refusal is told. */
enum manner {
	ERRNO,     /* the value is the errno */
	NIL,       /* NULL, or 0 where that is no answer */
	MINUS_ONE, /* -1 */
	NEGATIVE,  /* the negative errno */
	NOTHING,   /* no value, or one that says nothing; errno is left alone */
};

static struct ibv_context *ctx;
static char bytes[64];

static struct ibv_device_attr device_attr;
static struct ibv_port_attr port_attr;
static struct ibv_gid_entry entry;
static union ibv_gid gid;
static struct ibv_async_event event;
static struct ibv_qp_attr qp_attr;
static struct ibv_qp_init_attr qp_init;
static struct ibv_srq_attr srq_attr;
static struct ibv_srq_init_attr srq_init;
static struct ibv_ah_attr ah_attr;
static struct ibv_wc wc;
static struct ibv_wc wc_grh = {.wc_flags = IBV_WC_GRH};
static struct ibv_grh grh;
static struct ibv_mr_init_attr mr_init = {.comp_mask = IBV_REG_MR_MASK_ADDR};
static struct ibv_dmah_init_attr dmah_init;
static struct ibv_comp_cntr_caps cntr_caps;
static struct ibv_comp_cntr_init_attr cntr_init;
static struct ibv_qp_attach_comp_cntr_attr attach = {.op_mask = 1};
static struct ibv_rwq_ind_table_init_attr no_table;
static struct ibv_wq_init_attr no_pd, no_cq;
static struct ibv_ece ece;
static struct ibv_mw_bind mw_bind;
static struct ibv_cq *cq;
static struct ibv_buf *buf;
static void *pointer;
static __be16 pkey;
static uint64_t number;

/* Objects that only have to have a context. */
static struct ibv_comp_cntr cntr;
static struct ibv_counters points;
static struct ibv_wq wq;

/*
 * What headers look into before they call: older or foreign ones may not, and then the slot itself
 * has to.
 */
#define SLOT(name) (verbs_get_ctx(ctx)->name)

enum { MAX_ROWS = 256 };

static const char *tried[MAX_ROWS];
static unsigned int num_tried;

/* What is told, that errno says the same, and that no device was asked. */
static void judge(const char *call, enum manner manner, intptr_t got)
{
	static const intptr_t told[] = {
		[ERRNO] = EINVAL, [NIL] = 0, [MINUS_ONE] = -1, [NEGATIVE] = -EINVAL, [NOTHING] = 0,
	};

	assert_true(num_tried < MAX_ROWS);
	tried[num_tried++] = call;
	if (got != told[manner])
		fail_msg("%s: %ld", call, (long)got);
	if (errno != (manner == NOTHING ? 0 : EINVAL))
		fail_msg("%s: errno %d", call, errno);
	if (fake.calls)
		fail_msg("%s asked the device", call);
}

#define TRY(manner, call)                   \
	do {                                \
		intptr_t got_;              \
                                            \
		fake.calls = 0;             \
		errno = 0;                  \
		got_ = (intptr_t)(call);    \
		judge(#call, manner, got_); \
	} while (0)

static void devices(void **state)
{
	(void)state;
	ctx = fake_reset();
	TRY(NIL, ibv_get_device_name(NULL));
	TRY(NIL, ibv_get_device_guid(NULL));
	TRY(MINUS_ONE, ibv_get_device_index(NULL));
	TRY(NIL, ibv_open_device(NULL));
	TRY(MINUS_ONE, ibv_close_device(NULL));
	TRY(ERRNO, ibv_query_device(NULL, &device_attr));
	TRY(ERRNO, ibv_query_device(ctx, NULL));
	TRY(ERRNO, SLOT(query_device_ex)(ctx, NULL, NULL, sizeof(struct ibv_device_attr_ex)));
	TRY(ERRNO, ibv_query_port(NULL, 1, (void *)&port_attr));
	TRY(ERRNO, ibv_query_port(ctx, 1, NULL));
	TRY(ERRNO, SLOT(query_port)(ctx, 1, NULL, sizeof(port_attr)));
	TRY(ERRNO, ibv_query_port_speed(NULL, 1, &number));
	TRY(ERRNO, ibv_query_port_speed(ctx, 1, NULL));
	TRY(MINUS_ONE, ibv_query_gid(NULL, 1, 0, &gid));
	TRY(MINUS_ONE, ibv_query_gid(ctx, 1, 0, NULL));
	TRY(ERRNO, ibv_query_gid_ex(NULL, 1, 0, &entry, 0));
	TRY(ERRNO, ibv_query_gid_ex(ctx, 1, 0, NULL, 0));
	TRY(NEGATIVE, ibv_query_gid_table(NULL, &entry, 1, 0));
	TRY(NEGATIVE, ibv_query_gid_table(ctx, NULL, 1, 0));
	TRY(MINUS_ONE, ibv_query_pkey(NULL, 1, 0, &pkey));
	TRY(MINUS_ONE, ibv_query_pkey(ctx, 1, 0, NULL));
	TRY(MINUS_ONE, ibv_get_pkey_index(NULL, 1, 0xffff));
	TRY(ERRNO, ibv_query_rt_values_ex(ctx, NULL));
	TRY(MINUS_ONE, ibv_read_sysfs_file(NULL, "a", bytes, 1));
	TRY(MINUS_ONE, ibv_read_sysfs_file("/", NULL, bytes, 1));
	TRY(MINUS_ONE, ibv_read_sysfs_file("/", "a", NULL, 1));
}

static void memory(void **state)
{
	(void)state;
	ctx = fake_reset();
	TRY(NIL, ibv_alloc_pd(NULL));
	TRY(ERRNO, ibv_dealloc_pd(NULL));
	TRY(NIL, ibv_alloc_parent_domain(ctx, NULL));
	TRY(NIL, ibv_alloc_td(ctx, NULL));
	TRY(NIL, ibv_reg_mr(NULL, bytes, 8, 0));
	TRY(NIL, ibv_reg_mr_iova(NULL, bytes, 8, 0, 0));
	TRY(NIL, ibv_reg_mr_iova2(NULL, bytes, 8, 0, IBV_ACCESS_RELAXED_ORDERING));
	TRY(NIL, ibv_reg_dmabuf_mr(NULL, 0, 8, 0, 3, 0));
	TRY(NIL, ibv_reg_mr_ex(NULL, &mr_init));
	TRY(NIL, ibv_reg_mr_ex(&fake.pd, NULL));
	TRY(ERRNO, ibv_dereg_mr(NULL));
	TRY(NIL, ibv_alloc_dm(ctx, NULL));
	TRY(NIL, ibv_reg_dm_mr(&fake.pd, NULL, 0, 8, IBV_ACCESS_ZERO_BASED));
	TRY(MINUS_ONE, ibv_dm_export_dmabuf_fd(NULL));
	TRY(NIL, ibv_alloc_buf(NULL, 8, &buf));
	TRY(NIL, ibv_alloc_buf(&fake.pd, 8, NULL));
	TRY(NIL, ibv_reg_buf_mr(NULL, (void *)bytes, bytes, 8, 0));
	TRY(NIL, ibv_reg_buf_mr(&fake.pd, NULL, bytes, 8, 0));
	TRY(MINUS_ONE, ibv_export_buf_dmabuf_fd(NULL));
	TRY(NIL, ibv_alloc_dmah(NULL, &dmah_init));
	TRY(NIL, ibv_alloc_dmah(ctx, NULL));
	TRY(ERRNO, ibv_dealloc_dmah(NULL));
	TRY(NIL, ibv_import_pd(NULL, 1));
	TRY(NIL, ibv_import_mr(NULL, 1));
	TRY(NIL, ibv_import_dm(NULL, 1));
}

static void addresses(void **state)
{
	(void)state;
	ctx = fake_reset();
	TRY(NIL, ibv_create_ah(NULL, &ah_attr));
	TRY(NIL, ibv_create_ah(&fake.pd, NULL));
	TRY(ERRNO, ibv_destroy_ah(NULL));
	TRY(MINUS_ONE, ibv_init_ah_from_wc(NULL, 1, &wc, &grh, &ah_attr));
	TRY(MINUS_ONE, ibv_init_ah_from_wc(ctx, 1, NULL, &grh, &ah_attr));
	TRY(MINUS_ONE, ibv_init_ah_from_wc(ctx, 1, &wc_grh, NULL, &ah_attr));
	TRY(MINUS_ONE, ibv_init_ah_from_wc(ctx, 1, &wc, &grh, NULL));
	TRY(NIL, ibv_create_ah_from_wc(NULL, &wc, &grh, 1));
	TRY(NIL, ibv_create_ah_from_wc(&fake.pd, NULL, &grh, 1));
	TRY(NIL, ibv_create_ah_from_wc(&fake.pd, &wc_grh, NULL, 1));
}

static void completions(void **state)
{
	(void)state;
	ctx = fake_reset();
	TRY(NIL, ibv_create_comp_channel(NULL));
	TRY(ERRNO, ibv_destroy_comp_channel(NULL));
	TRY(MINUS_ONE, ibv_get_cq_event(NULL, &cq, &pointer));
	TRY(MINUS_ONE, ibv_get_cq_event(&fake.channel, NULL, &pointer));
	TRY(MINUS_ONE, ibv_get_cq_event(&fake.channel, &cq, NULL));
	TRY(MINUS_ONE, ibv_get_async_event(NULL, &event));
	TRY(MINUS_ONE, ibv_get_async_event(ctx, NULL));
	TRY(NIL, ibv_create_cq(NULL, 1, NULL, NULL, 0));
	TRY(NIL, SLOT(create_cq_ex)(ctx, NULL));
	TRY(ERRNO, ibv_resize_cq(NULL, 1));
	TRY(ERRNO, ibv_modify_cq(&fake.cq, NULL));
	TRY(ERRNO, ibv_destroy_cq(NULL));
}

static void queues(void **state)
{
	(void)state;
	ctx = fake_reset();
	wq.context = ctx;
	no_cq.pd = &fake.pd;
	no_pd.cq = &fake.cq;
	TRY(NIL, ibv_create_srq(NULL, &srq_init));
	TRY(NIL, ibv_create_srq(&fake.pd, NULL));
	TRY(NIL, SLOT(create_srq_ex)(ctx, NULL));
	TRY(ERRNO, ibv_modify_srq(NULL, &srq_attr, IBV_SRQ_LIMIT));
	TRY(ERRNO, ibv_modify_srq(&fake.srq, NULL, IBV_SRQ_LIMIT));
	TRY(ERRNO, ibv_query_srq(NULL, &srq_attr));
	TRY(ERRNO, ibv_query_srq(&fake.srq, NULL));
	TRY(ERRNO, ibv_get_srq_num(&fake.srq, NULL));
	TRY(ERRNO, ibv_destroy_srq(NULL));
	TRY(NIL, ibv_open_xrcd(ctx, NULL));
	TRY(NIL, ibv_create_qp(NULL, &qp_init));
	TRY(NIL, ibv_create_qp(&fake.pd, NULL));
	TRY(NIL, SLOT(create_qp_ex)(ctx, NULL));
	TRY(NIL, ibv_open_qp(ctx, NULL));
	TRY(ERRNO, ibv_modify_qp(NULL, &qp_attr, 0));
	TRY(ERRNO, ibv_modify_qp(&fake.qp, NULL, 0));
	TRY(ERRNO, ibv_query_qp(NULL, &qp_attr, 0, &qp_init));
	TRY(ERRNO, ibv_query_qp(&fake.qp, NULL, 0, &qp_init));
	TRY(ERRNO, ibv_modify_qp_rate_limit(&fake.qp, NULL));
	TRY(ERRNO, ibv_set_ece(NULL, &ece));
	TRY(ERRNO, ibv_set_ece(&fake.qp, NULL));
	TRY(ERRNO, ibv_query_ece(NULL, &ece));
	TRY(ERRNO, ibv_query_ece(&fake.qp, NULL));
	TRY(NIL, ibv_query_qp_data_in_order(NULL, IBV_WR_SEND, 0));
	TRY(ERRNO, ibv_destroy_qp(NULL));
	TRY(ERRNO, ctx->ops.bind_mw(NULL, &fake.mw, &mw_bind));
	TRY(ERRNO, ctx->ops.bind_mw(&fake.qp, &fake.mw, NULL));
	TRY(ERRNO, ibv_attach_mcast(NULL, &gid, 0));
	TRY(ERRNO, ibv_attach_mcast(&fake.qp, NULL, 0));
	TRY(ERRNO, ibv_detach_mcast(NULL, &gid, 0));
	TRY(ERRNO, ibv_detach_mcast(&fake.qp, NULL, 0));
	TRY(NIL, SLOT(create_wq)(ctx, NULL));
	TRY(NIL, ibv_create_wq(ctx, &no_pd));
	TRY(NIL, ibv_create_wq(ctx, &no_cq));
	TRY(ERRNO, ibv_modify_wq(&wq, NULL));
	TRY(NIL, ibv_create_rwq_ind_table(ctx, NULL));
	TRY(NIL, ibv_create_rwq_ind_table(ctx, &no_table));
}

static void counters(void **state)
{
	(void)state;
	ctx = fake_reset();
	points.context = ctx;
	cntr.context = ctx;
	TRY(ERRNO, ibv_query_comp_cntr_caps(NULL, &cntr_caps));
	TRY(ERRNO, ibv_query_comp_cntr_caps(ctx, NULL));
	TRY(NIL, ibv_create_comp_cntr(NULL, &cntr_init));
	TRY(NIL, ibv_create_comp_cntr(ctx, NULL));
	TRY(ERRNO, ibv_destroy_comp_cntr(NULL));
	TRY(ERRNO, ibv_set_comp_cntr(NULL, 1));
	TRY(ERRNO, ibv_set_err_comp_cntr(NULL, 1));
	TRY(ERRNO, ibv_inc_comp_cntr(NULL, 1));
	TRY(ERRNO, ibv_inc_err_comp_cntr(NULL, 1));
	TRY(ERRNO, ibv_read_comp_cntr(NULL, &number));
	TRY(ERRNO, ibv_read_comp_cntr(&cntr, NULL));
	TRY(ERRNO, ibv_read_err_comp_cntr(NULL, &number));
	TRY(ERRNO, ibv_read_err_comp_cntr(&cntr, NULL));
	TRY(ERRNO, ibv_qp_attach_comp_cntr(NULL, &cntr, &attach));
	TRY(ERRNO, ibv_qp_attach_comp_cntr(&fake.qp, NULL, &attach));
	TRY(ERRNO, ibv_qp_attach_comp_cntr(&fake.qp, &cntr, NULL));
	TRY(NIL, ibv_create_flow(&fake.qp, NULL));
	TRY(NIL, ibv_create_counters(ctx, NULL));
	TRY(ERRNO, ibv_attach_counters_point_flow(&points, NULL, NULL));
	TRY(ERRNO, ibv_read_counters(&points, NULL, 1, 0));
}

static void nothing(void **state)
{
	(void)state;
	ctx = fake_reset();
	TRY(NOTHING, (intptr_t)ibv_qp_to_qp_ex(NULL));
	TRY(NOTHING, (ibv_free_device_list(NULL), 0));
	TRY(NOTHING, (ibv_free_buf(NULL), 0));
	TRY(NOTHING, (ibv_unimport_pd(NULL), 0));
	TRY(NOTHING, (ibv_unimport_mr(NULL), 0));
	TRY(NOTHING, (ibv_unimport_dm(NULL), 0));
	TRY(NOTHING, (ibv_ack_cq_events(NULL, 1), 0));
	TRY(NOTHING, (ibv_ack_async_event(NULL), 0));
}

/* ibv_rereg_mr(3) has codes of its own. */
static void rereg(void **state)
{
	(void)state;
	fake_reset();
	errno = 0;
	assert_int_equal(ibv_rereg_mr(NULL, IBV_REREG_MR_CHANGE_PD, &fake.pd, NULL, 0, 0),
			 IBV_REREG_MR_ERR_INPUT);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(ibv_rereg_mr(&fake.mr, IBV_REREG_MR_CHANGE_PD, NULL, NULL, 0, 0),
			 IBV_REREG_MR_ERR_INPUT);
	assert_int_equal(fake.calls, 0);
}

/*
 * Exports without an argument that must not be NULL, and plain copies between structures, which no
 * verb refuses.
 */
static const char *const no_rows[] = {
	"ibv_get_device_list",
	"ibv_get_sysfs_path",
	"ibv_import_device",
	"ibv_register_driver",
	"ibv_fork_init",
	"ibv_is_fork_initialized",
	"ibv_dontfork_range",
	"ibv_dofork_range",
	"ibv_rate_to_mult",
	"ibv_rate_to_mbps",
	"mult_to_ibv_rate",
	"mbps_to_ibv_rate",
	"ibv_node_type_str",
	"ibv_port_state_str",
	"ibv_event_type_str",
	"ibv_wc_status_str",
	"ibv_copy_ah_attr_from_kern",
	"ibv_copy_qp_attr_from_kern",
	"ibv_copy_path_rec_from_kern",
	"ibv_copy_path_rec_to_kern",
	"ibv_resolve_eth_l2_from_gid", /* refused whatever is asked */
	"ibv_rereg_mr",                /* above */
};

static bool is_here(const char *name)
{
	char call[80];

	for (size_t i = 0; i < sizeof(no_rows) / sizeof(no_rows[0]); i++) {
		if (!strcmp(no_rows[i], name))
			return true;
	}
	snprintf(call, sizeof(call), "%s(", name);
	for (unsigned int i = 0; i < num_tried; i++) {
		if (strstr(tried[i], call))
			return true;
	}
	return false;
}

/*
 * The names of the symbol map, which the build gives. Those that begin with vb_ are librdmacm's
 * alone: no program calls them.
 */
static void every_export_is_here(void **state)
{
	FILE *map = fopen(SYMBOL_MAP, "r");
	unsigned int names = 0;
	char line[200], name[64];

	(void)state;
	assert_non_null(map);
	while (fgets(line, sizeof(line), map)) {
		const char *at = line + strspn(line, " \t_");

		if (sscanf(at, "%63[a-z0-9_];", name) != 1 || !strchr(at, ';') || at == line ||
		    !strncmp(name, "vb_", 3))
			continue;
		names++;
		if (!is_here(name))
			fail_msg("no row for %s", name);
	}
	fclose(map);
	assert_true(names > 80);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(devices),
		cmocka_unit_test(memory),
		cmocka_unit_test(addresses),
		cmocka_unit_test(completions),
		cmocka_unit_test(queues),
		cmocka_unit_test(counters),
		cmocka_unit_test(nothing),
		cmocka_unit_test(rereg),
		cmocka_unit_test(every_export_is_here),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
