/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Promise: engines that fall asleep at the same time make their senders pass few barriers, not one for
 * each engine: a barrier interrupts every processor on which a process of the library runs. All of
 * them sleep then, and take what comes.
 */
#include <dlfcn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <string.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "engine/engine.h"
#include "qp/qp.h"
#include "support/check.h"
#include "support/clock.h"
#include "support/endpoint.h"

enum { ENGINES = 200, POLLS = 40, SWEEPS = 200, PATIENCE_MS = 20000, SHARE = 4 };

static atomic_uint barriers, refused, awake_then; /* awake_then: during the last one */
static atomic_bool opened;

static struct resources here;
static struct ibv_cq *cq[ENGINES];
static struct endpoint ep[ENGINES];

static bool is_asleep(int i)
{
	return __atomic_load_n(&vb_qp_of(ep[i].qp)->engine->pub->asleep, __ATOMIC_RELAXED);
}

static uint32_t awake(void)
{
	uint32_t n = 0;

	for (int i = 0; i < ENGINES; i++)
		n += !is_asleep(i);
	return n;
}

/* In place of the C library's: the barriers among all processes are counted. */
__attribute__((visibility("default"))) long syscall(long number, ...)
{
	void *real = dlsym(RTLD_NEXT, "syscall");
	long (*call)(long, ...);
	long argument[6];
	bool is_barrier;
	va_list list;

	memcpy(&call, &real, sizeof(call));
	va_start(list, number);
	for (int i = 0; i < 6; i++)
		argument[i] = va_arg(list, long);
	va_end(list);
	is_barrier = number == SYS_membarrier && argument[0] == MEMBARRIER_CMD_GLOBAL_EXPEDITED;
	if (is_barrier && atomic_load(&opened))
		atomic_store(&awake_then, awake());
	long result = call(number, argument[0], argument[1], argument[2], argument[3], argument[4],
			   argument[5]);

	if (is_barrier)
		atomic_fetch_add(result ? &refused : &barriers, 1);
	return result;
}

static void open_all(void)
{
	struct ep_config config = ep_defaults(IBV_QPT_RC);

	resources_open(&here, 16, false);
	for (int i = 0; i < ENGINES; i++) {
		cq[i] = ibv_create_cq(here.context, 16, NULL, NULL, 0);
		CHECK(cq[i]);
		config.send_cq = config.recv_cq = cq[i];
		ep_open_on(&ep[i], &here, &config, NULL, 4096);
	}
	for (int i = 0; i < ENGINES; i += 2)
		ep_link(&ep[i], &ep[i + 1]);
	atomic_store(&opened, true);
}

static void close_all(void)
{
	atomic_store(&opened, false);
	for (int i = 0; i < ENGINES; i++) {
		ep_close(&ep[i]);
		CHECK_ZERO(ibv_destroy_cq(cq[i]));
	}
	resources_close(&here);
}

/* Polls until most of the engines are awake at once: a lease is 2 ms. */
static uint32_t wake_most(void)
{
	for (int sweep = 0; sweep < SWEEPS; sweep++) {
		struct ibv_wc wc;

		for (int i = 0; i < ENGINES; i++)
			for (int k = 0; k < POLLS; k++)
				CHECK_EQ(ibv_poll_cq(cq[i], 1, &wc), 0);
		if (awake() > ENGINES / 2)
			return awake();
	}
	SKIP("the machine is so busy that a few thousand polls outlast a lease");
}

static void fall_asleep_together(void)
{
	uint32_t before, woken;
	uint64_t until;

	promise("engines that fall asleep together make few barriers");
	woken = wake_most();
	before = atomic_load(&barriers);
	until = now_us() + PATIENCE_MS * 1000ull;
	/* They say that they sleep, then the barrier comes. */
	while ((awake() || atomic_load(&barriers) == before) && now_us() < until)
		sleep_ms(1);
	CHECK_EQ(awake(), 0);
	uint32_t passed = atomic_load(&barriers) - before;

	CHECK(passed > 0);
	CHECK_EQ(atomic_load(&awake_then), 0); /* all had said that they sleep */
	CHECK_SAY(passed <= woken / SHARE, "%u barriers for %u engines", passed, woken);
}

static void take_what_comes(void)
{
	promise("an engine that fell asleep with others takes what comes");
	for (int i = 0; i < ENGINES; i += 2) {
		CHECK_ZERO(ep_recv(&ep[i + 1], 1, 0, 64));
		CHECK_ZERO(ep_send(&ep[i], 2, 0, 64, IBV_SEND_SIGNALED));
		completion_expect(cq[i + 1], 1, IBV_WC_SUCCESS, NULL);
		completion_expect(cq[i], 2, IBV_WC_SUCCESS, NULL);
	}
}

int main(void)
{
	watchdog(90);
	open_all();
	if (atomic_load(&refused))
		SKIP("membarrier(2) is refused here");
	fall_asleep_together();
	take_what_comes();
	close_all();
	return 0;
}
