/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Acknowledgements: ibv_destroy_*(3) waits for those of the events that were fetched, says EBUSY
 * without waiting, and is not held up by events of ports or devices.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdatomic.h>
#include <time.h>
#include <cmocka.h>

#include "fake.h"

struct destroyer {
	int (*destroy)(void);
	_Atomic bool done;
	int result;
	pthread_t thread;
};

static int destroy_cq(void)
{
	return ibv_destroy_cq(&fake.cq);
}

static int destroy_qp(void)
{
	return ibv_destroy_qp(&fake.qp);
}

static int destroy_srq(void)
{
	return ibv_destroy_srq(&fake.srq);
}

static void *destroyer_main(void *arg)
{
	struct destroyer *d = arg;

	d->result = d->destroy();
	d->done = true;
	return NULL;
}

static void begin(struct destroyer *d, int (*destroy)(void))
{
	d->destroy = destroy;
	d->done = false;
	assert_int_equal(pthread_create(&d->thread, NULL, destroyer_main, d), 0);
}

static void still_waits(struct destroyer *d)
{
	const struct timespec moment = {.tv_nsec = 20000000};

	nanosleep(&moment, NULL);
	assert_false(d->done);
	assert_false(fake.freed);
}

static void finish(struct destroyer *d)
{
	pthread_join(d->thread, NULL);
	assert_int_equal(d->result, 0);
	assert_true(fake.freed);
}

static void ack(enum ibv_event_type type)
{
	struct ibv_async_event event = {.event_type = type};

	if (type == IBV_EVENT_CQ_ERR)
		event.element.cq = &fake.cq;
	else if (type == IBV_EVENT_SRQ_ERR || type == IBV_EVENT_SRQ_LIMIT_REACHED)
		event.element.srq = &fake.srq;
	else
		event.element.qp = &fake.qp;
	ibv_ack_async_event(&event);
}

static void cq_waits_for_both_kinds(void **state)
{
	struct ibv_context *ctx = fake_reset();
	struct destroyer d;

	(void)state;
	assert_non_null(ibv_create_cq(ctx, 1, NULL, NULL, 0));
	fake.got_comp = 5;
	fake.got_async = 1;
	ibv_ack_cq_events(&fake.cq, 2);
	begin(&d, destroy_cq);
	still_waits(&d);
	ibv_ack_cq_events(&fake.cq, 3);
	still_waits(&d);
	ack(IBV_EVENT_CQ_ERR);
	finish(&d);
}

static void qp_waits_for_each_of_its_events(void **state)
{
	static const enum ibv_event_type types[] = {
		IBV_EVENT_QP_FATAL,     IBV_EVENT_QP_REQ_ERR,          IBV_EVENT_QP_ACCESS_ERR,
		IBV_EVENT_COMM_EST,     IBV_EVENT_SQ_DRAINED,          IBV_EVENT_PATH_MIG,
		IBV_EVENT_PATH_MIG_ERR, IBV_EVENT_QP_LAST_WQE_REACHED,
	};
	const uint32_t count = sizeof(types) / sizeof(types[0]);
	struct ibv_qp_init_attr init = {0};
	struct destroyer d;

	(void)state;
	fake_reset();
	assert_non_null(ibv_create_qp(&fake.pd, &init));
	fake.got_async = count;
	begin(&d, destroy_qp);
	for (uint32_t i = 0; i < count; i++) {
		still_waits(&d);
		ack(types[i]);
	}
	finish(&d);
}

static void srq_waits(void **state)
{
	struct ibv_srq_init_attr init = {0};
	struct destroyer d;

	(void)state;
	fake_reset();
	assert_non_null(ibv_create_srq(&fake.pd, &init));
	fake.got_async = 2;
	begin(&d, destroy_srq);
	ack(IBV_EVENT_SRQ_LIMIT_REACHED);
	still_waits(&d);
	ack(IBV_EVENT_SRQ_ERR);
	finish(&d);
}

static void busy_comes_first(void **state)
{
	struct ibv_context *ctx = fake_reset();

	(void)state;
	assert_non_null(ibv_create_cq(ctx, 1, NULL, NULL, 0));
	fake.got_comp = 7;
	fake.err = -EBUSY;
	assert_int_equal(ibv_destroy_cq(&fake.cq), EBUSY);
	assert_false(fake.freed);
	fake.err = 0;
	ibv_ack_cq_events(&fake.cq, 7);
	assert_int_equal(ibv_destroy_cq(&fake.cq), 0);
}

static void counters_wrap(void **state)
{
	struct ibv_context *ctx = fake_reset();
	struct destroyer d;

	(void)state;
	assert_non_null(ibv_create_cq(ctx, 1, NULL, NULL, 0));
	fake.cq.comp_events_completed = UINT32_MAX - 1;
	fake.got_comp = 1;
	begin(&d, destroy_cq);
	ibv_ack_cq_events(&fake.cq, 2);
	still_waits(&d);
	ibv_ack_cq_events(&fake.cq, 1);
	finish(&d);
}

static void port_events_need_no_object(void **state)
{
	struct ibv_async_event event;
	struct ibv_context *ctx = fake_reset();

	(void)state;
	assert_int_equal(ibv_get_async_event(ctx, &event), 0);
	assert_int_equal(event.event_type, IBV_EVENT_PORT_ERR);
	ibv_ack_async_event(&event);
	event.event_type = IBV_EVENT_DEVICE_FATAL;
	ibv_ack_async_event(&event);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cq_waits_for_both_kinds),
		cmocka_unit_test(qp_waits_for_each_of_its_events),
		cmocka_unit_test(srq_waits),
		cmocka_unit_test(busy_comes_first),
		cmocka_unit_test(counters_wrap),
		cmocka_unit_test(port_events_need_no_object),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
