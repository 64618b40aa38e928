/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A forked child: inherited objects refuse cleanly, devices can be opened anew, and the parent goes
 * on as before.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include <infiniband/verbs.h>

struct objects {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	char buf[64];
};

static void make(struct objects *o)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
	};

	assert_non_null(list);
	assert_non_null(list[0]);
	o->ctx = ibv_open_device(list[0]);
	ibv_free_device_list(list);
	assert_non_null(o->ctx);
	o->pd = ibv_alloc_pd(o->ctx);
	assert_non_null(o->pd);
	o->mr = ibv_reg_mr(o->pd, o->buf, sizeof(o->buf), IBV_ACCESS_LOCAL_WRITE);
	assert_non_null(o->mr);
	o->channel = ibv_create_comp_channel(o->ctx);
	assert_non_null(o->channel);
	o->cq = ibv_create_cq(o->ctx, 8, NULL, o->channel, 0);
	assert_non_null(o->cq);
	attr.send_cq = o->cq;
	attr.recv_cq = o->cq;
	o->qp = ibv_create_qp(o->pd, &attr);
	assert_non_null(o->qp);
}

static void destroy(struct objects *o)
{
	assert_int_equal(ibv_destroy_qp(o->qp), 0);
	assert_int_equal(ibv_destroy_cq(o->cq), 0);
	assert_int_equal(ibv_destroy_comp_channel(o->channel), 0);
	assert_int_equal(ibv_dereg_mr(o->mr), 0);
	assert_int_equal(ibv_dealloc_pd(o->pd), 0);
	assert_int_equal(ibv_close_device(o->ctx), 0);
}

/* Under a sanitizer a child cannot start threads, or counts as leaks what is its parent's. */
#if defined(__SANITIZE_THREAD__)
#define CHILD_HAS_THREADS 0
#else
#define CHILD_HAS_THREADS 1
#endif
#if defined(__SANITIZE_ADDRESS__)
#define CHILD_EXIT _exit
#else
#define CHILD_EXIT exit
#endif

#define MUST(condition)                                                                      \
	do {                                                                                 \
		if (!(condition)) {                                                          \
			fprintf(stderr, "in the child: %s (errno %d)\n", #condition, errno); \
			_exit(1);                                                            \
		}                                                                            \
	} while (0)

static void inherited_in_child(struct objects *o)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
	struct ibv_recv_wr wr = {0}, *bad = NULL;
	struct ibv_device_attr device;
	struct ibv_async_event event;
	struct ibv_wc wc;

	MUST(ibv_query_device(o->ctx, &device) == 0);
	MUST(ibv_dereg_mr(o->mr) == ENODEV);
	MUST(ibv_modify_qp(o->qp, &attr, IBV_QP_STATE) == ENODEV);
	MUST(ibv_post_recv(o->qp, &wr, &bad) == ENODEV && bad == &wr);
	MUST(ibv_poll_cq(o->cq, 1, &wc) < 0);
	MUST(ibv_req_notify_cq(o->cq, 0) == ENODEV);
	MUST(ibv_destroy_qp(o->qp) == ENODEV);
	MUST(ibv_destroy_cq(o->cq) == ENODEV);
	MUST(ibv_get_async_event(o->ctx, &event) == -1 && errno == ENODEV);
	MUST(ibv_close_device(o->ctx) == 0);
}

static int wait_for(pid_t child)
{
	int status = -1;

	assert_int_equal(waitpid(child, &status, 0), child);
	return status;
}

static void child_refuses_parent_goes_on(void **state)
{
	struct objects o, second;
	pid_t child;

	(void)state;
	make(&o);
	child = fork();
	if (child == 0) {
		inherited_in_child(&o);
		_exit(0);
	}
	assert_int_equal(wait_for(child), 0);
	make(&second);
	destroy(&second);
	destroy(&o);
}

/* Objects made by the child itself work, and end without harm to the parent's. */
static void child_starts_anew(void **state)
{
	struct objects o;
	pid_t child;

	(void)state;
	if (!CHILD_HAS_THREADS)
		skip();
	make(&o);
	child = fork();
	if (child == 0) {
		struct objects mine;

		make(&mine);
		MUST(mine.qp->qp_num != o.qp->qp_num);
		destroy(&mine);
		_exit(0);
	}
	assert_int_equal(wait_for(child), 0);
	destroy(&o);
}

static void system_and_grandchild(void **state)
{
	struct objects o;
	pid_t child;

	(void)state;
	make(&o);
	assert_int_equal(system("true"), 0);
	child = fork();
	if (child == 0) {
		pid_t grandchild = fork();

		if (grandchild == 0) {
			inherited_in_child(&o);
			CHILD_EXIT(0); /* with everything that runs at exit */
		}
		int status = -1;

		waitpid(grandchild, &status, 0);
		CHILD_EXIT(status ? 1 : 0);
	}
	assert_int_equal(wait_for(child), 0);
	destroy(&o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(child_refuses_parent_goes_on),
		cmocka_unit_test(child_starts_anew),
		cmocka_unit_test(system_and_grandchild),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
