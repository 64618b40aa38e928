/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Closing a device whose objects were not destroyed: nothing of them works on, other contexts do.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <infiniband/verbs.h>

#include "support/endpoint.h"

/* An endpoint on resources of its own, whose buffer is one word. */
struct lone {
	struct resources resources;
	struct endpoint ep;
	uint64_t word;
};

static void make(struct lone *l)
{
	struct ep_config config = ep_defaults(IBV_QPT_RC);

	config.timeout = 8;
	config.retry_cnt = 2;
	resources_open(&l->resources, 8, false);
	ep_open_on(&l->ep, &l->resources, &config, &l->word, sizeof(l->word));
}

static enum ibv_wc_status write_word(struct lone *from)
{
	struct ibv_wc wc;

	assert_int_equal(ep_write(&from->ep, 1, 0, sizeof(from->word), 0, IBV_SEND_SIGNALED), 0);
	completion_next(from->resources.cq, &wc);
	return wc.status;
}

/* The other context's write arrives before the close, and not after it. */
static void nothing_works_on(void **state)
{
	static struct lone left, stays; /* what is left behind stays in memory */

	(void)state;
	make(&left);
	make(&stays);
	ep_link(&left.ep, &stays.ep);
	stays.word = 1;
	assert_int_equal(write_word(&stays), IBV_WC_SUCCESS);
	assert_true(left.word == 1);
	assert_int_equal(ibv_close_device(left.resources.context), 0);
	stays.word = 2;
	assert_int_not_equal(write_word(&stays), IBV_WC_SUCCESS);
	assert_true(left.word == 1);
	ep_close(&stays.ep);
	resources_close(&stays.resources);
}

static void descriptors_go(void **state)
{
	struct ibv_context *ctx = device_open();
	int async_fd = ctx->async_fd, cmd_fd = ctx->cmd_fd;

	(void)state;
	assert_true(fcntl(async_fd, F_GETFD) & FD_CLOEXEC);
	assert_true(fcntl(cmd_fd, F_GETFD) & FD_CLOEXEC);
	assert_int_equal(ibv_close_device(ctx), 0);
	assert_int_equal(fcntl(async_fd, F_GETFD), -1);
	assert_int_equal(fcntl(cmd_fd, F_GETFD), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(descriptors_go),
		cmocka_unit_test(nothing_works_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
