/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Promise: in a forked child, verbs that create work on an inherited context, which re-opens
 * itself; inherited queue pairs, CQs and SRQs, and all else that was inherited, are refused with
 * the reason, before and after that; the parent's stay as they were.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/check.h"
#include "support/clock.h"
#include "support/endpoint.h"
#include "support/process.h"
#include "support/qp_state.h"
#include "support/threads.h"

/* One of each, as the parent has them when it forks. */
struct objects {
	struct resources resources; /* with a channel */
	struct endpoint a, b;
	struct ibv_srq *srq;
	struct ibv_cq_ex *cq_ex;
	struct ibv_qp_ex *qp_ex;
	struct ibv_ah *ah;
	struct ibv_td *td;
	struct ibv_pd *parent;  /* its queues' memory is not inherited */
	struct endpoint hidden; /* on it */
	struct ibv_srq *hidden_srq;
};

enum { HIDDEN_BYTES = 1 << 20 };

/* As the page of parent domains asks for: memory that is no child's. */
static void *alloc_hidden(struct ibv_pd *pd, void *context, size_t size, size_t alignment,
			  uint64_t type)
{
	void *p = mmap(NULL, HIDDEN_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		       0);

	(void)pd;
	(void)context;
	(void)alignment;
	(void)type;
	CHECK(size <= HIDDEN_BYTES && p != MAP_FAILED);
	CHECK_ZERO(madvise(p, HIDDEN_BYTES, MADV_DONTFORK));
	return p;
}

static void free_hidden(struct ibv_pd *pd, void *context, void *ptr, uint64_t type)
{
	(void)pd;
	(void)context;
	(void)type;
	CHECK_ZERO(munmap(ptr, HIDDEN_BYTES));
}

static struct ibv_ah *make_ah(const struct resources *r, struct ibv_pd *pd)
{
	struct ibv_ah_attr attr = {
		.is_global = 1, .port_num = 1, .grh = {.dgid = r->gid, .hop_limit = 64}};

	return ibv_create_ah(pd, &attr);
}

static struct ibv_srq *make_srq(struct ibv_pd *pd)
{
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = 8, .max_sge = 1}};

	return ibv_create_srq(pd, &attr);
}

static struct ibv_cq_ex *make_cq_ex(struct ibv_context *context)
{
	struct ibv_cq_init_attr_ex attr = {.cqe = 16, .wc_flags = IBV_WC_STANDARD_FLAGS};

	return ibv_create_cq_ex(context, &attr);
}

static struct ibv_qp_ex *make_qp_ex(struct resources *r)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = r->cq,
		.recv_cq = r->cq,
		.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = r->pd,
		.send_ops_flags = IBV_QP_EX_WITH_SEND,
	};
	struct ibv_qp *qp = ibv_create_qp_ex(r->context, &attr);

	return qp ? ibv_qp_to_qp_ex(qp) : NULL;
}

static void objects_open(struct objects *o)
{
	struct ibv_td_init_attr td = {.comp_mask = 0};
	struct ibv_parent_domain_init_attr parent = {
		.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS,
		.alloc = alloc_hidden,
		.free = free_hidden,
	};

	resources_open(&o->resources, 64, true);
	ep_open_on(&o->a, &o->resources, NULL, NULL, 4096);
	ep_open_on(&o->b, &o->resources, NULL, NULL, 4096);
	ep_link(&o->a, &o->b);
	o->srq = make_srq(o->resources.pd);
	o->cq_ex = make_cq_ex(o->resources.context);
	o->qp_ex = make_qp_ex(&o->resources);
	o->ah = make_ah(&o->resources, o->resources.pd);
	o->td = parent.td = ibv_alloc_td(o->resources.context, &td);
	parent.pd = o->resources.pd;
	o->parent = ibv_alloc_parent_domain(o->resources.context, &parent);
	CHECK(o->srq && o->cq_ex && o->qp_ex && o->ah && o->td && o->parent);
	struct resources on_parent = o->resources;

	on_parent.pd = o->parent;
	ep_open_on(&o->hidden, &on_parent, NULL, NULL, 4096);
	o->hidden.resources = &o->resources;
	ep_connect(&o->hidden, &o->hidden.local);
	o->hidden_srq = make_srq(o->parent);
	CHECK(o->hidden_srq);
}

static void objects_close(struct objects *o)
{
	CHECK_ZERO(ibv_destroy_ah(o->ah));
	CHECK_ZERO(ibv_destroy_qp(&o->qp_ex->qp_base));
	CHECK_ZERO(ibv_destroy_cq(ibv_cq_ex_to_cq(o->cq_ex)));
	CHECK_ZERO(ibv_destroy_srq(o->srq));
	ep_close(&o->hidden);
	CHECK_ZERO(ibv_destroy_srq(o->hidden_srq));
	CHECK_ZERO(ibv_dealloc_pd(o->parent));
	CHECK_ZERO(ibv_dealloc_td(o->td));
	ep_close(&o->a);
	ep_close(&o->b);
	resources_close(&o->resources);
}

static void exchange(struct endpoint *a, struct endpoint *b, int seed)
{
	struct ibv_wc wc;

	memset(a->buffer, seed, 64);
	CHECK_ZERO(ep_recv(b, 1, 0, 64));
	CHECK_ZERO(ep_send(a, 2, 0, 64, IBV_SEND_SIGNALED));
	for (int both = 0; both < 2; both++) {
		completion_next(a->resources->cq, &wc);
		CHECK_EQ(wc.status, IBV_WC_SUCCESS);
	}
	CHECK_ZERO(memcmp(a->buffer, b->buffer, 64));
}

#define REFUSED(call) CHECK_EQ(call, ENODEV)
#define REFUSED_NULL(call)               \
	do {                             \
		errno = 0;               \
		CHECK(!(call));          \
		CHECK_EQ(errno, ENODEV); \
	} while (0)

static void queues_refuse(struct objects *o)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
	struct ibv_qp_init_attr init;
	struct ibv_srq_attr srq_attr = {.srq_limit = 1};
	struct ibv_poll_cq_attr poll_attr = {.comp_mask = 0};
	struct ibv_recv_wr recv = {.wr_id = 1}, *bad = NULL;
	struct ibv_wc wc;

	promise("inherited queue pairs, CQs and SRQs are refused");
	REFUSED(ep_send(&o->a, 1, 0, 64, IBV_SEND_SIGNALED));
	REFUSED(ep_recv(&o->a, 1, 0, 64));
	REFUSED(ibv_modify_qp(o->a.qp, &attr, IBV_QP_STATE));
	REFUSED(ibv_query_qp(o->a.qp, &attr, IBV_QP_STATE, &init));
	REFUSED(ibv_destroy_qp(o->a.qp));
	ibv_wr_start(o->qp_ex);
	ibv_wr_send(o->qp_ex);
	ibv_wr_set_sge(o->qp_ex, o->a.mr->lkey, (uintptr_t)o->a.buffer, 8);
	REFUSED(ibv_wr_complete(o->qp_ex));
	ibv_wr_start(o->qp_ex);
	ibv_wr_abort(o->qp_ex);
	CHECK(ibv_poll_cq(o->resources.cq, 1, &wc) < 0);
	REFUSED(ibv_req_notify_cq(o->resources.cq, 0));
	REFUSED(ibv_resize_cq(o->resources.cq, 128));
	REFUSED(ibv_destroy_cq(o->resources.cq));
	REFUSED(ibv_start_poll(o->cq_ex, &poll_attr));
	REFUSED(ibv_post_srq_recv(o->srq, &recv, &bad));
	CHECK(bad == &recv);
	REFUSED(ep_send(&o->hidden, 1, 0, 64, IBV_SEND_SIGNALED));
	REFUSED(ep_recv(&o->hidden, 1, 0, 64));
	REFUSED(ibv_destroy_qp(o->hidden.qp));
	REFUSED(ibv_post_srq_recv(o->hidden_srq, &recv, &bad));
	REFUSED(ibv_destroy_srq(o->hidden_srq));
	REFUSED(ibv_modify_srq(o->srq, &srq_attr, IBV_SRQ_LIMIT));
	REFUSED(ibv_query_srq(o->srq, &srq_attr));
	REFUSED(ibv_destroy_srq(o->srq));
}

static void others_refuse(struct objects *o)
{
	struct ibv_cq *cq;
	void *cq_context;

	promise("whatever else was inherited is refused, but for domains");
	REFUSED(ibv_dereg_mr(o->a.mr));
	REFUSED(ibv_destroy_ah(o->ah));
	REFUSED(ibv_destroy_comp_channel(o->resources.channel));
	errno = 0;
	CHECK_EQ(ibv_get_cq_event(o->resources.channel, &cq, &cq_context), -1);
	CHECK_EQ(errno, ENODEV);
}

/* New objects may not lean on inherited ones. */
static void mixtures_refuse(struct objects *o)
{
	struct resources r = o->resources;
	struct ibv_qp_init_attr init = {
		.send_cq = r.cq,
		.recv_cq = r.cq,
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
	};

	promise("what is created cannot use inherited queues");
	REFUSED_NULL(ibv_create_qp(r.pd, &init));
	REFUSED_NULL(ibv_create_cq(r.context, 4, NULL, r.channel, 0));
	init.send_cq = init.recv_cq = ibv_create_cq(r.context, 4, NULL, NULL, 0);
	CHECK(init.send_cq);
	init.srq = o->srq;
	REFUSED_NULL(ibv_create_qp(r.pd, &init));
	CHECK_ZERO(ibv_destroy_cq(init.send_cq));
}

/* Everything anew on the inherited context: on the inherited domain `pd`, used and destroyed. */
static void create_and_use(struct objects *o, struct ibv_pd *pd)
{
	struct resources r = o->resources;
	struct endpoint a, b;
	struct ibv_cq *event_cq;
	void *cq_context;

	promise("what a child creates on an inherited context works");
	r.pd = pd;
	r.channel = ibv_create_comp_channel(r.context);
	CHECK(r.channel);
	r.cq = ibv_create_cq(r.context, 64, NULL, r.channel, 0);
	CHECK(r.cq);
	struct ibv_srq *srq = make_srq(pd);
	struct ibv_cq_ex *cq_ex = make_cq_ex(r.context);
	struct ibv_ah *ah = make_ah(&r, pd);
	struct ibv_qp_ex *qp_ex = make_qp_ex(&r);

	CHECK(srq && cq_ex && ah && qp_ex);
	struct ibv_alloc_dm_attr dm_attr = {.length = 64};
	struct ibv_dm *dm = ibv_alloc_dm(r.context, &dm_attr);
	struct ibv_mr *null_mr = ibv_alloc_null_mr(pd);
	struct ibv_mw *mw = ibv_alloc_mw(pd, IBV_MW_TYPE_2);
	uint64_t word = 0x0102030405060708;

	CHECK(dm && null_mr && mw);
	CHECK_ZERO(ibv_memcpy_to_dm(dm, 8, &word, sizeof(word)));
	word = 0;
	CHECK_ZERO(ibv_memcpy_from_dm(&word, dm, 8, sizeof(word)));
	CHECK(word == 0x0102030405060708);
	CHECK_ZERO(ibv_dealloc_mw(mw));
	CHECK_ZERO(ibv_dereg_mr(null_mr));
	CHECK_ZERO(ibv_free_dm(dm));
	ep_open_on(&a, &r, NULL, NULL, 4096);
	ep_open_on(&b, &r, NULL, NULL, 4096);
	CHECK(a.qp->qp_num != o->a.qp->qp_num && a.qp->qp_num != o->b.qp->qp_num);
	ep_link(&a, &b);
	for (int i = 0; i < 50; i++)
		exchange(&a, &b, i);
	CHECK_ZERO(ep_write(&a, 3, 0, 64, 256, IBV_SEND_SIGNALED));
	completion_expect(r.cq, 3, IBV_WC_SUCCESS, NULL);
	CHECK(b.buffer[256] == 49);
	CHECK_ZERO(ibv_req_notify_cq(r.cq, 0));
	CHECK_ZERO(ep_write(&a, 4, 0, 64, 256, IBV_SEND_SIGNALED));
	CHECK_ZERO(ibv_get_cq_event(r.channel, &event_cq, &cq_context));
	CHECK(event_cq == r.cq);
	ibv_ack_cq_events(r.cq, 1);
	completion_expect(r.cq, 4, IBV_WC_SUCCESS, NULL);
	/* The context's own events come, too. */
	qp_move(a.qp, IBV_QPS_ERR);
	CHECK_ZERO(ibv_destroy_qp(&qp_ex->qp_base));
	ep_close(&a);
	ep_close(&b);
	CHECK_ZERO(ibv_destroy_ah(ah));
	CHECK_ZERO(ibv_destroy_srq(srq));
	CHECK_ZERO(ibv_destroy_cq(ibv_cq_ex_to_cq(cq_ex)));
	CHECK_ZERO(ibv_destroy_cq(r.cq));
	CHECK_ZERO(ibv_destroy_comp_channel(r.channel));
}

static void domains(struct objects *o)
{
	struct ibv_pd *mine;
	char buffer[64];
	struct ibv_mr *mr;

	promise("inherited domains serve the child's objects");
	create_and_use(o, o->resources.pd);
	create_and_use(o, o->parent); /* with its thread domain, whose engine is the parent's */
	mine = ibv_alloc_pd(o->resources.context);
	CHECK(mine);
	create_and_use(o, mine);
	mr = ibv_reg_mr(o->resources.pd, buffer, sizeof(buffer), IBV_ACCESS_LOCAL_WRITE);
	CHECK(mr);
	CHECK_EQ(ibv_dealloc_pd(o->resources.pd), EBUSY);
	CHECK_ZERO(ibv_dereg_mr(mr));
	CHECK_EQ(ibv_dealloc_pd(o->resources.pd), EBUSY); /* by the parent domain */
	CHECK_ZERO(ibv_dealloc_pd(o->parent));
	CHECK_ZERO(ibv_dealloc_td(o->td));
	CHECK_ZERO(ibv_dealloc_pd(o->resources.pd));
	CHECK_ZERO(ibv_dealloc_pd(mine));
}

static void async_is_its_own(struct objects *o)
{
	struct ibv_context *context = o->resources.context;
	struct ibv_async_event event;

	promise("the re-opened context has events of its own");
	CHECK_ZERO(
		fcntl(context->async_fd, F_SETFL, fcntl(context->async_fd, F_GETFL) | O_NONBLOCK));
	errno = 0;
	CHECK_EQ(ibv_get_async_event(context, &event), -1);
	CHECK_EQ(errno, EAGAIN);
}

enum depth { CHILD, GRANDCHILD };

static void in_child(struct objects *o, enum depth depth)
{
	struct ibv_device_attr attr;

	watchdog(60);
	CHECK_ZERO(ibv_query_device(o->resources.context, &attr));
	queues_refuse(o);
	others_refuse(o);
	if (depth == GRANDCHILD)
		create_and_use(o, o->resources.pd);
	mixtures_refuse(o); /* this re-opens it */
	queues_refuse(o);
	others_refuse(o);
	async_is_its_own(o);
	domains(o);
	queues_refuse(o);
	CHECK_ZERO(ibv_close_device(o->resources.context));
}

/* The allocator of the address sanitizer does not survive a fork beside a thread that allocates. */
static pid_t fork_at_rest(void)
{
#ifdef __SANITIZE_ADDRESS__
	threads_rest();
#endif
	fflush(NULL);
	return fork();
}

static void wait_for(pid_t pid)
{
	struct process child = {.pid = pid, .sock = -1};

	CHECK(pid > 0);
	process_adopt(pid);
	process_expect_success(&child, PROCESS_PATIENCE_MS);
}

/*
 * Uses what it creates, then forks itself: its child inherits both its parent's and its
 * grandparent's objects.
 */
static void child_with_child(struct objects *o)
{
	struct objects mine = *o;
	pid_t pid;

	watchdog(60);
	create_and_use(o, o->resources.pd);
	mine.resources.channel = ibv_create_comp_channel(o->resources.context);
	mine.resources.cq =
		ibv_create_cq(o->resources.context, 64, NULL, mine.resources.channel, 0);
	CHECK(mine.resources.channel && mine.resources.cq);
	ep_open_on(&mine.a, &mine.resources, NULL, NULL, 4096);
	ep_open_on(&mine.b, &mine.resources, NULL, NULL, 4096);
	ep_link(&mine.a, &mine.b);
	mine.srq = make_srq(mine.resources.pd);
	mine.cq_ex = make_cq_ex(mine.resources.context);
	mine.qp_ex = make_qp_ex(&mine.resources);
	mine.ah = make_ah(&mine.resources, mine.resources.pd);
	CHECK(mine.srq && mine.cq_ex && mine.qp_ex && mine.ah);
	pid = fork_at_rest();
	if (pid == 0) {
		queues_refuse(o);
		in_child(&mine, GRANDCHILD);
		_exit(0);
	}
	exchange(&mine.a, &mine.b, 3);
	wait_for(pid);
	exchange(&mine.a, &mine.b, 4);
	queues_refuse(o);
}

int main(void)
{
	struct objects o;
	pid_t pid;

	watchdog(100);
	objects_open(&o);
	exchange(&o.a, &o.b, 1);
	pid = fork_at_rest();
	if (pid == 0) {
		in_child(&o, CHILD);
		_exit(0);
	}
	for (int i = 0; i < 200; i++)
		exchange(&o.a, &o.b, i);
	wait_for(pid);
	pid = fork_at_rest();
	if (pid == 0) {
		child_with_child(&o);
		_exit(0);
	}
	for (int i = 0; i < 200; i++)
		exchange(&o.a, &o.b, i);
	wait_for(pid);
	promise("the parent's objects are what they were");
	exchange(&o.a, &o.b, 9);
	objects_close(&o);
	return 0;
}
