/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Promise: fork in the middle of traffic harms nobody. The parent's traffic goes
 * on without loss whatever its children do: exit at once (with and without exit
 * handlers), execute another program, sleep on, run through system(3), use the
 * objects they inherited (which refuse cleanly), or open the device for themselves.
 *
 * Both ends of a stream fork, in turn each kind of child, while another thread of
 * theirs is busy in the library: a fork meets any lock there is.
 *
 * usage: fork_traffic [MESSAGES]
 */
#include "procs/stream.h"
#include "support/check.h"
#include "support/clock.h"
#include "support/process.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FORK_EVERY = 700, SLEEPERS = 8 };
enum kind { LEAVE_AT_ONCE, LEAVE_BY_EXIT, EXECUTE, SLEEP, SYSTEM, USE_INHERITED, OPEN_ANEW, KINDS };

static uint64_t messages;

/* Children that sleep till the end; their parent reaps them. */
static pid_t sleepers[SLEEPERS];
static int sleeping;

/* What is inherited answers an error and nothing else happens. */
static void use_inherited(struct endpoint *ep)
{
	struct ibv_device_attr attr;
	struct ibv_wc wc = {0};

	promise("an inherited object refuses its use in a forked child");
	watchdog(10);
	CHECK(ep_send(ep, 1, 0, 64, IBV_SEND_SIGNALED) != 0);
	CHECK(ep_recv(ep, 1, 0, 64) != 0);
	CHECK(ibv_poll_cq(ep->resources->cq, 1, &wc) <= 0);
	CHECK(ibv_req_notify_cq(ep->resources->cq, 0) != 0);
	/* What creates re-opens the context; what was inherited goes on refusing. */
	struct ibv_pd *pd = ibv_alloc_pd(ep->resources->context);

	CHECK(pd);
	CHECK(ep_send(ep, 1, 0, 64, IBV_SEND_SIGNALED) != 0);
	CHECK(ibv_poll_cq(ep->resources->cq, 1, &wc) <= 0);
	CHECK_ZERO(ibv_dealloc_pd(pd));
	/* Facts may be told or not, but not by way of a crash. */
	(void)ibv_query_device(ep->resources->context, &attr);
	/* Destroying frees at most the child's copy: the parent's goes on, as its stream shows. */
	(void)ibv_destroy_qp(ep->qp);
	(void)ibv_dereg_mr(ep->mr);
	(void)ibv_destroy_cq(ep->resources->cq);
	(void)ibv_dealloc_pd(ep->resources->pd);
	(void)ibv_close_device(ep->resources->context);
}

/* A forked child is a process like any other when it opens the device itself. */
static void open_anew(void)
{
	struct resources resources;
	struct endpoint here, there;

	promise("a forked child works with a device that it opened itself");
	watchdog(20);
	resources_open(&resources, 256, false);
	ep_open_on(&here, &resources, NULL, NULL, 4096);
	ep_open_on(&there, &resources, NULL, NULL, 4096);
	ep_link(&here, &there);
	CHECK_ZERO(ep_recv(&there, 1, 0, 64));
	memcpy(here.buffer, "anew", 4);
	CHECK_ZERO(ep_send(&here, 2, 0, 64, 0));
	completion_expect(resources.cq, 1, IBV_WC_SUCCESS, NULL);
	CHECK(memcmp(there.buffer, "anew", 4) == 0);
	ep_close(&here);
	ep_close(&there);
	resources_close(&resources);
}

_Noreturn static void child_main(struct endpoint *ep, enum kind kind)
{
	switch (kind) {
	case LEAVE_AT_ONCE:
		_exit(0);
	case LEAVE_BY_EXIT:
		exit(0);
	case EXECUTE:
		execl("/bin/true", "true", (char *)NULL);
		_exit(1);
	case SLEEP:
		watchdog(watchdog_seconds());
		for (;;)
			pause();
	case USE_INHERITED:
		use_inherited(ep);
		exit(0);
	default:
		open_anew();
		exit(0);
	}
}

/* Between two messages: one child, of the next kind. */
static void fork_one(struct stream *stream, uint64_t number)
{
	enum kind kind = (enum kind)(number / FORK_EVERY % KINDS);
	struct process child = {.sock = -1};

	if (kind == SLEEP && sleeping == SLEEPERS)
		kind = EXECUTE;
	if (kind == SYSTEM) {
		CHECK_ZERO(system("true"));
		return;
	}
	fflush(NULL);
	child.pid = fork();
	CHECK(child.pid >= 0);
	if (child.pid == 0)
		child_main(stream->ep, kind);
	process_adopt(child.pid);
	if (kind == SLEEP)
		sleepers[sleeping++] = child.pid;
	else
		process_expect_success(&child, PROCESS_PATIENCE_MS);
}

/* Until told to stop: registers, makes, connects, talks, destroys. */
static void *stay_busy(void *argument)
{
	bool *stop = argument;
	struct resources resources;
	struct endpoint here, there;

	while (!__atomic_load_n(stop, __ATOMIC_RELAXED)) {
		resources_open(&resources, 16, true);
		ep_open_on(&here, &resources, NULL, NULL, 4096);
		ep_open_on(&there, &resources, NULL, NULL, 4096);
		ep_link(&here, &there);
		CHECK_ZERO(ep_write(&here, 1, 0, 64, 0, IBV_SEND_SIGNALED));
		completion_expect(resources.cq, 1, IBV_WC_SUCCESS, NULL);
		ep_close(&there);
		ep_close(&here);
		resources_close(&resources);
		sleep_ms(1);
	}
	return NULL;
}

static void play(int sock, bool sends)
{
	bool stop = false;
	pthread_t busy;

	struct resources resources;
	struct endpoint ep;
	struct stream stream = {
		.ep = &ep, .messages = messages, .hook = fork_one, .hook_every = FORK_EVERY};

	promise("a stream loses nothing while its ends fork");
	resources_open(&resources, 256, false);
	ep_open_on(&ep, &resources, NULL, NULL, STREAM_SIZE);
	stream_prepare(&ep);
	ep_exchange(&ep, sock);
	CHECK_ZERO(pthread_create(&busy, NULL, stay_busy, &stop));
	if (sends)
		stream_send(&stream);
	else
		stream_receive(&stream);
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	CHECK_ZERO(pthread_join(busy, NULL));
	message_meet(sock);
	ep_close(&ep);
	resources_close(&resources);
	while (sleeping)
		process_reap(sleepers[--sleeping]);
}

int main(int argc, char **argv)
{
	messages = argc > 1 ? strtoull(argv[1], NULL, 0) : 40000;
	watchdog(120);
	stream_between(play);
	return 0;
}
