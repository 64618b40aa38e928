/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The GSI of the process: opening it; its end; a fork. */
#include <string.h>

#include "base/clock.h"
#include "base/fork.h"
#include "base/lock.h"
#include "base/sys.h"
#include "engine/engine.h"
#include "engine/engines.h"
#include "gsi/private.h"
#include "process/process.h"
#include "remote/deliver.h"

/* Each takes 350 bytes while it is there. */
#define ARRIVED_MOST  4096u
#define RECEIVED_MOST 4096u

/* The longest time for which the end of the process waits for what it has to bring. */
#define EXIT_NS       100000000ull
#define EXIT_LOOK_NS  200000l

struct vb_gsi vb_gsi = {.opening = PTHREAD_MUTEX_INITIALIZER};

static int open_new(const struct vb_gsi_events *events)
{
	uint32_t number;
	int err = vb_process_start_progress();
	struct vb_engine *e;

	if (!err)
		err = vb_gsi_join(true);
	if (!err)
		err = vb_gsi_number_take(&number);
	if (err)
		return err;
	e = atomic_load(&vb_gsi.engine);
	vb_gsi.events = *events;
	vb_gsi.hook.numbered = vb_gsi_numbered;
	vb_engine_take(e);
	vb_engine_hook_add(e, &vb_gsi.hook);
	vb_lock_release(&e->lock);
	atomic_store_explicit(&vb_gsi.number, number, memory_order_release);
	vb_gsi_watch_soon();
	return 0;
}

int vb_gsi_open(const struct vb_gsi_events *events, struct vb_gsi_identity *identity)
{
	int err = 0;

	vb_fork_prepare();
	vb_mutex_take(&vb_gsi.opening, VB_ORDER_GSI);
	if (!atomic_load(&vb_gsi.number))
		err = open_new(events);
	vb_mutex_release(&vb_gsi.opening);
	identity->qpn = atomic_load(&vb_gsi.number);
	identity->comm_id_base = identity->qpn >> VB_QPN_BLOCK_BITS << VB_GSI_COMM_ID_BITS;
	return err;
}

/*
 * exit(3). The progress thread brings the last words of connections to processes with which contact
 * is being made. Listeners vanish at once; after another end the others find that out.
 */
static void at_exit(void)
{
	uint64_t until = vb_clock_ns() + EXIT_NS;

	if (!atomic_load(&vb_gsi.number))
		return;
	while (vb_gsi_keeps() && vb_clock_ns() < until)
		vb_sys_nanosleep(&(struct timespec){0, EXIT_LOOK_NS});
	vb_gsi_number_drop();
}

static void queues_init(void)
{
	vb_mad_queue_init(&vb_gsi.arrived, ARRIVED_MOST);
	vb_mad_queue_init(&vb_gsi.kept, UINT32_MAX); /* kept.c has the bounds */
	vb_mad_queue_init(&vb_gsi.received, RECEIVED_MOST);
}

/* The GSI is the parent's, with all that it holds. The child starts afresh. */
static void forked(void)
{
	memset(&vb_gsi, 0, sizeof(vb_gsi));
	pthread_mutex_init(&vb_gsi.opening, NULL);
	queues_init();
	vb_gsi_kept_forget();
}

__attribute__((constructor)) static void begin(void)
{
	queues_init();
	vb_udp_deliver_services(vb_gsi_arrived);
}

VB_PROCESS_HOOK(.at_exit = at_exit);

VB_FORK_HOOK(.phase = VB_FORK_ROOMS, .child = forked);
