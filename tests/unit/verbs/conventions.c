/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How each verb tells success and failure, whatever the device answers: the return value, errno,
 * and that a refused call touches none of the caller's memory (verbs manual pages).
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "fake.h"

static char bytes[64];
static union ibv_gid group_gid = {.raw = {0xff, 0x0e}};

/* One verb: called with a device that works and with one that refuses. */
struct verb {
	const char *name;
	intptr_t (*call)(struct ibv_context *ctx);
	intptr_t good, bad; /* bad: ERRNO, NIL or MINUS_ONE */
};

enum { ERRNO = -1000, NIL, MINUS_ONE, ANY };

/* A function that calls one verb and returns its result as a number. */
#define VERB(name, expression)                        \
	static intptr_t name(struct ibv_context *ctx) \
	{                                             \
		(void)ctx;                            \
		return (intptr_t)(expression);        \
	}

static struct ibv_device_attr device_attr;
static struct ibv_device_attr_ex device_attr_ex;
static struct ibv_port_attr port_attr;
static struct ibv_async_event event;
static struct ibv_qp_attr qp_attr;
static struct ibv_qp_init_attr qp_init;
static struct ibv_srq_attr srq_attr;
static struct ibv_srq_init_attr srq_init;
static struct ibv_ah_attr ah_attr;
static struct ibv_mw_bind mw_bind;
static struct ibv_modify_cq_attr moderate = {.attr_mask = IBV_CQ_ATTR_MODERATE};
static struct ibv_cq_init_attr_ex cq_init = {.cqe = 1};
static struct ibv_qp_init_attr_ex qp_init_ex;
static struct ibv_values_ex values;
static struct ibv_cq *event_cq;
static void *event_context;
static union ibv_gid gid;
static struct ibv_gid_entry entry;
static __be16 pkey;
static uint64_t speed;

VERB(get_list, ibv_get_device_list(NULL))
VERB(open_device, ibv_open_device(&fake.device))
VERB(close_device, ibv_close_device(ctx))
VERB(query_device, ibv_query_device(ctx, &device_attr))
VERB(query_device_ex, ibv_query_device_ex(ctx, NULL, &device_attr_ex))
VERB(query_port, ibv_query_port(ctx, 1, &port_attr))
VERB(query_speed, ibv_query_port_speed(ctx, 1, &speed))
VERB(query_gid, ibv_query_gid(ctx, 1, 0, &gid))
VERB(query_gid_ex, ibv_query_gid_ex(ctx, 1, 0, &entry, 0))
VERB(query_pkey, ibv_query_pkey(ctx, 1, 0, &pkey))
VERB(query_values, ibv_query_rt_values_ex(ctx, &values))
VERB(alloc_pd, ibv_alloc_pd(ctx))
VERB(dealloc_pd, ibv_dealloc_pd(&fake.pd))
VERB(reg_mr, ibv_reg_mr(&fake.pd, bytes, sizeof(bytes), 0))
VERB(reg_mr_iova, ibv_reg_mr_iova(&fake.pd, bytes, sizeof(bytes), 0x1000, 0))
VERB(dereg_mr, ibv_dereg_mr(&fake.mr))
VERB(create_channel, ibv_create_comp_channel(ctx))
VERB(destroy_channel, ibv_destroy_comp_channel(&fake.channel))
VERB(get_cq_event, ibv_get_cq_event(&fake.channel, &event_cq, &event_context))
VERB(get_async_event, ibv_get_async_event(ctx, &event))
VERB(create_cq, ibv_create_cq(ctx, 1, NULL, NULL, 0))
VERB(create_cq_ex, ibv_create_cq_ex(ctx, &cq_init))
VERB(resize_cq, ibv_resize_cq(&fake.cq, 2))
VERB(modify_cq, ibv_modify_cq(&fake.cq, &moderate))
VERB(destroy_cq, ibv_destroy_cq(&fake.cq))
VERB(create_srq, ibv_create_srq(&fake.pd, &srq_init))
VERB(modify_srq, ibv_modify_srq(&fake.srq, &srq_attr, IBV_SRQ_LIMIT))
VERB(query_srq, ibv_query_srq(&fake.srq, &srq_attr))
VERB(destroy_srq, ibv_destroy_srq(&fake.srq))
VERB(create_qp, ibv_create_qp(&fake.pd, &qp_init))
VERB(create_qp_ex, ibv_create_qp_ex(ctx, &qp_init_ex))
VERB(modify_qp, ibv_modify_qp(&fake.qp, &qp_attr, IBV_QP_STATE))
VERB(query_qp, ibv_query_qp(&fake.qp, &qp_attr, IBV_QP_STATE, &qp_init))
VERB(destroy_qp, ibv_destroy_qp(&fake.qp))
VERB(reg_dmabuf_mr, ibv_reg_dmabuf_mr(&fake.pd, 0, 8, 0, 3, 0))
VERB(alloc_null_mr, ibv_alloc_null_mr(&fake.pd))
VERB(advise_mr, ibv_advise_mr(&fake.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, NULL, 0))
VERB(alloc_mw, ibv_alloc_mw(&fake.pd, IBV_MW_TYPE_1))
VERB(dealloc_mw, ibv_dealloc_mw(&fake.mw))
VERB(bind_mw, ibv_bind_mw(&fake.qp, &fake.mw, &mw_bind))
VERB(create_ah, ibv_create_ah(&fake.pd, &ah_attr))
VERB(destroy_ah, ibv_destroy_ah(&fake.ah))
VERB(attach, ibv_attach_mcast(&fake.qp, &group_gid, 0))
VERB(detach, ibv_detach_mcast(&fake.qp, &group_gid, 0))

static const struct verb verbs[] = {
	{"get_device_list", get_list, ANY, NIL},
	{"open_device", open_device, ANY, NIL},
	{"close_device", close_device, 0, MINUS_ONE},
	{"query_device", query_device, 0, ERRNO},
	{"query_device_ex", query_device_ex, 0, ERRNO},
	{"query_port", query_port, 0, ERRNO},
	{"query_port_speed", query_speed, 0, ERRNO},
	{"query_gid", query_gid, 0, MINUS_ONE},
	{"query_gid_ex", query_gid_ex, 0, ERRNO},
	{"query_pkey", query_pkey, 0, MINUS_ONE},
	{"query_rt_values", query_values, 0, ERRNO},
	{"alloc_pd", alloc_pd, ANY, NIL},
	{"dealloc_pd", dealloc_pd, 0, ERRNO},
	{"reg_mr", reg_mr, ANY, NIL},
	{"reg_mr_iova", reg_mr_iova, ANY, NIL},
	{"dereg_mr", dereg_mr, 0, ERRNO},
	{"create_comp_channel", create_channel, ANY, NIL},
	{"destroy_comp_channel", destroy_channel, 0, ERRNO},
	{"get_cq_event", get_cq_event, 0, MINUS_ONE},
	{"get_async_event", get_async_event, 0, MINUS_ONE},
	{"create_cq", create_cq, ANY, NIL},
	{"create_cq_ex", create_cq_ex, ANY, NIL},
	{"resize_cq", resize_cq, 0, ERRNO},
	{"modify_cq", modify_cq, 0, ERRNO},
	{"destroy_cq", destroy_cq, 0, ERRNO},
	{"create_srq", create_srq, ANY, NIL},
	{"modify_srq", modify_srq, 0, ERRNO},
	{"query_srq", query_srq, 0, ERRNO},
	{"destroy_srq", destroy_srq, 0, ERRNO},
	{"create_qp", create_qp, ANY, NIL},
	{"create_qp_ex", create_qp_ex, ANY, NIL},
	{"modify_qp", modify_qp, 0, ERRNO},
	{"query_qp", query_qp, 0, ERRNO},
	{"destroy_qp", destroy_qp, 0, ERRNO},
	{"reg_dmabuf_mr", reg_dmabuf_mr, ANY, NIL},
	{"alloc_null_mr", alloc_null_mr, ANY, NIL},
	{"advise_mr", advise_mr, 0, ERRNO},
	{"alloc_mw", alloc_mw, ANY, NIL},
	{"dealloc_mw", dealloc_mw, 0, ERRNO},
	{"bind_mw", bind_mw, 0, ERRNO},
	{"create_ah", create_ah, ANY, NIL},
	{"destroy_ah", destroy_ah, 0, ERRNO},
	{"attach_mcast", attach, 0, ERRNO},
	{"detach_mcast", detach, 0, ERRNO},
};

static struct ibv_context *ready(void)
{
	struct ibv_context *ctx = fake_reset();

	fake.gid[0].port_num = 1;
	fake.qp.qp_type = IBV_QPT_UD;
	memset(&qp_init_ex, 0, sizeof(qp_init_ex));
	qp_init_ex.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	qp_init_ex.pd = &fake.pd;
	return ctx;
}

static void success_is_told(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++) {
		struct ibv_context *ctx = ready();
		intptr_t ret = verbs[i].call(ctx);

		if (!fake.calls)
			fail_msg("%s does not ask the device", verbs[i].name);
		if (verbs[i].good == ANY ? !ret : ret != verbs[i].good)
			fail_msg("%s: %ld", verbs[i].name, (long)ret);
	}
}

static void failure_is_told(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++) {
		struct ibv_context *ctx = ready();
		intptr_t want, ret;

		fake.err = -ENXIO;
		errno = 0;
		ret = verbs[i].call(ctx);
		want = verbs[i].bad == ERRNO ? ENXIO : verbs[i].bad == NIL ? 0 : -1;
		if (ret != want || errno != ENXIO)
			fail_msg("%s: %ld, errno %d", verbs[i].name, (long)ret, errno);
		if (fake.freed)
			fail_msg("%s freed what it could not retire", verbs[i].name);
	}
}

static void rereg_speaks_its_own_language(void **state)
{
	ready();
	(void)state;
	assert_int_equal(ibv_rereg_mr(&fake.mr, IBV_REREG_MR_CHANGE_PD, &fake.pd, NULL, 0, 0), 0);
	assert_int_equal(ibv_rereg_mr(&fake.mr, 8, NULL, NULL, 0, 0), IBV_REREG_MR_ERR_INPUT);
	assert_int_equal(ibv_rereg_mr(&fake.mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, NULL, 8, 0),
			 IBV_REREG_MR_ERR_INPUT);
	assert_int_equal(ibv_rereg_mr(&fake.mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, bytes, 0, 0),
			 IBV_REREG_MR_ERR_INPUT);
	assert_int_equal(ibv_rereg_mr(&fake.mr, IBV_REREG_MR_CHANGE_PD, &fake.pd, NULL, 0, 1),
			 IBV_REREG_MR_ERR_INPUT);
	assert_int_equal(ibv_rereg_mr(&fake.mr, IBV_REREG_MR_CHANGE_PD, NULL, NULL, 0, 0),
			 IBV_REREG_MR_ERR_INPUT);
	assert_int_equal(fake.calls, 1);
	fake.err = -EINVAL;
	assert_int_equal(ibv_rereg_mr(&fake.mr, 0, NULL, NULL, 0, 0), IBV_REREG_MR_ERR_CMD);
}

/* Failing calls leave no trace in what the caller handed over. */
static void a_refusal_changes_nothing(void **state)
{
	struct ibv_qp_attr attr, attr_before;
	struct ibv_qp_init_attr init = {.cap.max_send_wr = 5};
	struct ibv_srq_init_attr srq = {.attr.max_wr = 5};
	struct ibv_device_attr dev, dev_before;
	struct ibv_context *ctx = ready();

	(void)state;
	fake.err = -ENOMEM;
	fake.qp.state = IBV_QPS_RTS;
	memset(&attr, 0x5a, sizeof(attr));
	attr_before = attr;
	assert_int_equal(ibv_query_qp(&fake.qp, &attr, IBV_QP_STATE, &init), ENOMEM);
	assert_memory_equal(&attr, &attr_before, sizeof(attr));
	assert_null(ibv_create_qp(&fake.pd, &init));
	assert_int_equal(init.cap.max_send_wr, 5);
	assert_null(ibv_create_srq(&fake.pd, &srq));
	assert_int_equal(srq.attr.max_wr, 5);
	memset(&dev, 0x5a, sizeof(dev));
	dev_before = dev;
	assert_int_equal(ibv_query_device(ctx, &dev), ENOMEM);
	assert_memory_equal(&dev, &dev_before, sizeof(dev));
	attr.qp_state = IBV_QPS_ERR;
	assert_int_equal(ibv_modify_qp(&fake.qp, &attr, IBV_QP_STATE), ENOMEM);
	assert_int_equal(fake.qp.state, IBV_QPS_RTS);
}

static void the_state_follows(void **state)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT};
	struct ibv_qp_init_attr init;

	(void)state;
	ready();
	assert_int_equal(ibv_modify_qp(&fake.qp, &attr, IBV_QP_STATE), 0);
	assert_int_equal(fake.qp.state, IBV_QPS_INIT);
	attr.qp_state = IBV_QPS_RTR;
	assert_int_equal(ibv_modify_qp(&fake.qp, &attr, IBV_QP_PORT), 0);
	assert_int_equal(fake.qp.state, IBV_QPS_INIT);
	assert_int_equal(ibv_query_qp(&fake.qp, &attr, 0, &init), 0);
	assert_int_equal(fake.qp.state, IBV_QPS_INIT);
	assert_int_equal(ibv_query_qp(&fake.qp, &attr, IBV_QP_STATE, NULL), 0);
	assert_int_equal(fake.qp.state, IBV_QPS_ERR);
}

static void data_in_order(void **state)
{
	const uint32_t caps = IBV_QUERY_QP_DATA_IN_ORDER_RETURN_CAPS;

	(void)state;
	ready();
	assert_int_equal(ibv_query_qp_data_in_order(&fake.qp, IBV_WR_RDMA_WRITE, 0), 0);
	fake.data_bits = IBV_QUERY_QP_DATA_IN_ORDER_ALIGNED_128_BYTES;
	assert_int_equal(ibv_query_qp_data_in_order(&fake.qp, IBV_WR_RDMA_WRITE, 0), 0);
	assert_int_equal(ibv_query_qp_data_in_order(&fake.qp, IBV_WR_RDMA_WRITE, caps), 2);
	fake.data_bits = IBV_QUERY_QP_DATA_IN_ORDER_WHOLE_MSG;
	assert_int_equal(ibv_query_qp_data_in_order(&fake.qp, IBV_WR_RDMA_WRITE, 0), 1);
	assert_int_equal(ibv_query_qp_data_in_order(&fake.qp, IBV_WR_RDMA_WRITE, caps), 3);
	assert_int_equal(ibv_query_qp_data_in_order(&fake.qp, IBV_WR_RDMA_WRITE, 1 << 7), 0);
	fake.err = -ENOENT;
	assert_int_equal(ibv_query_qp_data_in_order(&fake.qp, IBV_WR_RDMA_WRITE, 0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(success_is_told),
		cmocka_unit_test(failure_is_told),
		cmocka_unit_test(rereg_speaks_its_own_language),
		cmocka_unit_test(a_refusal_changes_nothing),
		cmocka_unit_test(the_state_follows),
		cmocka_unit_test(data_in_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
