/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Promise: the queue pairs of a thread domain share one engine, whose lock its thread takes without
 * an atomic operation; two threads with a thread domain each share no lock and no cache line; and
 * nothing breaks when other threads come all the same (ibv_alloc_td(3)).
 */
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>

#include "base/bias.h"
#include "engine/cq.h"
#include "engine/engine.h"
#include "qp/qp.h"
#include "engine/srq.h"
#include "support/check.h"
#include "support/clock.h"
#include "support/endpoint.h"

enum { MESSAGES = 2000, TALKS = 50, PARKINGS = 60 };

/*
 * Everything a thread needs, on a thread domain: two queue pairs that are each other's peers, and
 * an SRQ beside them.
 */
struct domain {
	struct resources resources;
	struct ibv_td *td;
	struct ibv_cq_ex *cq;
	struct ibv_srq *srq;
	struct endpoint from, to;
};

static struct resources shared;

static void domain_open(struct domain *d)
{
	struct ibv_td_init_attr td = {.comp_mask = 0};
	struct ibv_parent_domain_init_attr parent = {.pd = shared.pd};
	struct ibv_cq_init_attr_ex cq = {.cqe = 64,
					 .wc_flags = IBV_WC_STANDARD_FLAGS,
					 .comp_mask = IBV_CQ_INIT_ATTR_MASK_PD};
	struct ibv_srq_init_attr srq = {.attr = {.max_wr = 16, .max_sge = 1}};

	d->resources = shared;
	d->td = parent.td = ibv_alloc_td(shared.context, &td);
	CHECK(d->td);
	d->resources.pd = cq.parent_domain = ibv_alloc_parent_domain(shared.context, &parent);
	CHECK(d->resources.pd);
	d->cq = ibv_create_cq_ex(shared.context, &cq);
	CHECK(d->cq);
	d->resources.cq = ibv_cq_ex_to_cq(d->cq);
	d->srq = ibv_create_srq(d->resources.pd, &srq);
	CHECK(d->srq);
	ep_open_on(&d->from, &d->resources, NULL, NULL, 4096);
	ep_open_on(&d->to, &d->resources, NULL, NULL, 4096);
	ep_link(&d->from, &d->to);
}

static void domain_close(struct domain *d)
{
	ep_close(&d->from);
	ep_close(&d->to);
	CHECK_ZERO(ibv_destroy_srq(d->srq));
	CHECK_ZERO(ibv_destroy_cq(d->resources.cq));
	CHECK_ZERO(ibv_dealloc_pd(d->resources.pd));
	CHECK_ZERO(ibv_dealloc_td(d->td));
}

static void talk(struct domain *d, int messages)
{
	for (int i = 0; i < messages; i++) {
		struct ibv_wc wc;

		memset(d->from.buffer, i, 64);
		CHECK_ZERO(ep_recv(&d->to, 1, 0, 64));
		CHECK_ZERO(ep_send(&d->from, 2, 0, 64, IBV_SEND_SIGNALED));
		for (int both = 0; both < 2; both++) {
			completion_next(d->resources.cq, &wc);
			CHECK_EQ(wc.status, IBV_WC_SUCCESS);
		}
		CHECK_ZERO(memcmp(d->from.buffer, d->to.buffer, 64));
	}
}

static struct vb_engine *engine_of(const struct endpoint *ep)
{
	return vb_qp_of(ep->qp)->engine;
}

static void one_engine(void)
{
	struct domain a, b;
	struct endpoint plain;

	promise("the queue pairs of a thread domain share an engine, others do not");
	domain_open(&a);
	domain_open(&b);
	CHECK(engine_of(&a.from) == engine_of(&a.to));
	CHECK(engine_of(&a.from) != engine_of(&b.from));
	/* The same CQ, but no thread domain. */
	struct resources same_cq = shared;

	same_cq.cq = a.resources.cq;
	ep_open_on(&plain, &same_cq, NULL, NULL, 4096);
	CHECK(engine_of(&plain) != engine_of(&a.from));
	/* Another CQ, but the same thread domain. */
	struct resources same_td = a.resources;
	struct endpoint other_cq;

	same_td.cq = shared.cq;
	ep_open_on(&other_cq, &same_td, NULL, NULL, 4096);
	CHECK(engine_of(&other_cq) == engine_of(&a.from));
	ep_close(&other_cq);
	ep_close(&plain);
	domain_close(&a);
	domain_close(&b);
}

static bool leans_here(const struct vb_lock *lock)
{
	const struct vb_bias_seat *seat;

	if (!lock->bias)
		return false;
	seat = __atomic_load_n(&lock->bias->owner, __ATOMIC_ACQUIRE);
	return seat && seat->thread == vb_bias_self();
}

enum { LOCKS = 5, ALL_LOCKS = (1 << LOCKS) - 1 };

/* A bit for each lock that a message of the domain takes, and that leans towards this thread now. */
static unsigned int leaning(const struct domain *d)
{
	const struct vb_lock *const locks[LOCKS] = {
		&engine_of(&d->from)->lock,
		&vb_qp_of(d->from.qp)->wr_lock,
		&vb_qp_of(d->to.qp)->rq.lock,
		&vb_cq_of(d->resources.cq)->lock,
		&vb_cq_of(d->resources.cq)->poll_lock,
	};
	unsigned int bits = 0;

	for (int i = 0; i < LOCKS; i++)
		bits |= (unsigned int)leans_here(locks[i]) << i;
	return bits;
}

/*
 * On a crowded machine the progress thread takes over now and then, which ends a bias, and a lock of
 * which many ended soon gets none any more. So it is asked after each message which locks lean, and
 * each must have done so.
 */
static void elided(void)
{
	struct domain d;
	struct endpoint plain;
	unsigned int leant = 0;

	promise("the locks on a message's way are taken without atomic operations");
	domain_open(&d);
	if (!engine_of(&d.from)->lock.bias) {
		domain_close(&d);
		return; /* the kernel refuses membarrier(2) */
	}
	for (int i = 0; i < TALKS * MESSAGES && leant != ALL_LOCKS; i++) {
		talk(&d, 1);
		leant |= leaning(&d);
	}
	CHECK_EQ(leant, ALL_LOCKS);
	CHECK(vb_srq_of(d.srq)->lock.bias);
	ep_open_on(&plain, &shared, NULL, NULL, 4096);
	CHECK(!engine_of(&plain)->lock.bias);
	ep_close(&plain);
	domain_close(&d);
}

struct range {
	const void *start;
	size_t length;
};

/* What a domain's thread writes when it posts and polls. */
static int ranges_of(const struct domain *d, struct range *r)
{
	const struct vb_engine *e = engine_of(&d->from);
	const struct vb_cq *cq = vb_cq_of(d->resources.cq);
	const struct vb_srq *srq = vb_srq_of(d->srq);
	const struct endpoint *eps[] = {&d->from, &d->to};
	int n = 0;

	r[n++] = (struct range){e, sizeof(*e)};
	r[n++] = (struct range){e->lock.bias, sizeof(*e->lock.bias)};
	r[n++] = (struct range){e->pub, sizeof(*e->pub)};
	r[n++] = (struct range){cq, sizeof(*cq)};
	r[n++] = (struct range){cq->lock.bias, sizeof(*cq->lock.bias)};
	r[n++] = (struct range){cq->poll_lock.bias, sizeof(*cq->poll_lock.bias)};
	r[n++] = (struct range){cq->memory.ptr, cq->memory.bytes};
	r[n++] = (struct range){srq, sizeof(*srq)};
	r[n++] = (struct range){srq->lock.bias, sizeof(*srq->lock.bias)};
	r[n++] = (struct range){srq->memory.ptr, srq->memory.bytes};
	for (int i = 0; i < 2; i++) {
		const struct vb_qp *qp = vb_qp_of(eps[i]->qp);

		r[n++] = (struct range){qp, sizeof(*qp)};
		r[n++] = (struct range){qp->wr_lock.bias, sizeof(*qp->wr_lock.bias)};
		r[n++] = (struct range){qp->rq.lock.bias, sizeof(*qp->rq.lock.bias)};
		r[n++] = (struct range){qp->sq_memory.ptr, qp->sq_memory.bytes};
		r[n++] = (struct range){qp->rq.memory.ptr, qp->rq.memory.bytes};
		r[n++] = (struct range){qp->pub, sizeof(*qp->pub)};
	}
	for (const struct vb_channel *c = e->channels.busy; c; c = c->next)
		r[n++] = (struct range){c, sizeof(*c)};
	return n;
}

static void no_line_shared(void)
{
	struct domain a, b;
	struct range ra[64], rb[64];

	promise("two thread domains share no cache line");
	domain_open(&a);
	domain_open(&b);
	talk(&a, 10);
	talk(&b, 10);
	int na = ranges_of(&a, ra), nb = ranges_of(&b, rb);

	CHECK(na >= 23 && nb == na);
	for (int i = 0; i < na; i++) {
		for (int j = 0; j < nb; j++) {
			uintptr_t a0 = (uintptr_t)ra[i].start / 64;
			uintptr_t a1 = ((uintptr_t)ra[i].start + ra[i].length - 1) / 64;
			uintptr_t b0 = (uintptr_t)rb[j].start / 64;
			uintptr_t b1 = ((uintptr_t)rb[j].start + rb[j].length - 1) / 64;

			if (!ra[i].start || !rb[j].start)
				continue; /* no bias here */
			CHECK_SAY(a1 < b0 || b1 < a0, "ranges %d and %d meet", i, j);
		}
	}
	domain_close(&a);
	domain_close(&b);
}

static sem_t parked, go_on;
static atomic_bool stop;

/* Wherever the thread is, whatever it holds: it stands. */
static void park(int sig)
{
	(void)sig;
	sem_post(&parked);
	while (sem_wait(&go_on))
		;
}

static void *talk_on(void *arg)
{
	while (!atomic_load(&stop))
		talk(arg, 1);
	return NULL;
}

/*
 * A thread that stands anywhere in its messages, holding whatever it holds, delays the other one's
 * not at all.
 */
static void no_lock_shared(void)
{
	struct sigaction action = {.sa_handler = park};
	struct domain a, b;
	pthread_t thread;

	promise("two thread domains share no lock: one thread's standing still does not hold the other up");
#if defined(__SANITIZE_THREAD__)
	return; /* it lets signals come only where a thread holds nothing */
#endif
	CHECK_ZERO(sem_init(&parked, 0, 0));
	CHECK_ZERO(sem_init(&go_on, 0, 0));
	CHECK_ZERO(sigaction(SIGUSR1, &action, NULL));
	domain_open(&a);
	domain_open(&b);
	CHECK_ZERO(pthread_create(&thread, NULL, talk_on, &a));
	for (int i = 0; i < PARKINGS; i++) {
		CHECK_ZERO(pthread_kill(thread, SIGUSR1));
		CHECK_ZERO(sem_wait(&parked));
		talk(&b, 20);
		CHECK_ZERO(sem_post(&go_on));
		talk(&b, 1 + i % 7);
	}
	atomic_store(&stop, true);
	CHECK_ZERO(pthread_join(thread, NULL));
	domain_close(&a);
	domain_close(&b);
}

static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;

/* Threads that take turns on one domain, as a program with a lock of its own does. */
static void *take_turns(void *arg)
{
	for (int i = 0; i < 100; i++) {
		CHECK_ZERO(pthread_mutex_lock(&turn));
		talk(arg, i % 9 == 0 ? 20 : 1);
		CHECK_ZERO(pthread_mutex_unlock(&turn));
	}
	return NULL;
}

/* More than the page asks for: two threads post to queue pairs of one domain at once. */
static void *post_only(void *arg)
{
	struct domain *d = arg;

	for (int i = 0; i < 300; i++) {
		struct ibv_wc wc;

		CHECK_ZERO(ep_write(&d->to, 7, 0, 64, 128, IBV_SEND_SIGNALED));
		completion_next(d->resources.cq, &wc);
		CHECK_EQ(wc.status, IBV_WC_SUCCESS);
	}
	return NULL;
}

static void other_threads(void)
{
	struct domain d;
	pthread_t thread[3];

	promise("a thread domain that moves from thread to thread, or is used by several at once, stays whole");
	domain_open(&d);
	for (int i = 0; i < 3; i++)
		CHECK_ZERO(pthread_create(&thread[i], NULL, take_turns, &d));
	for (int i = 0; i < 3; i++)
		CHECK_ZERO(pthread_join(thread[i], NULL));
	for (int i = 0; i < 3; i++)
		CHECK_ZERO(pthread_create(&thread[i], NULL, post_only, &d));
	for (int i = 0; i < 3; i++)
		CHECK_ZERO(pthread_join(thread[i], NULL));
	talk(&d, MESSAGES);
	domain_close(&d);
}

int main(void)
{
	watchdog(100);
	resources_open(&shared, 64, false);
	one_engine();
	elided();
	no_line_shared();
	no_lock_shared();
	other_threads();
	resources_close(&shared);
	return 0;
}
