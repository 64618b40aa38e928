/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The process's sum of path counters, and the log line that shows it. */
#include "engine/paths.h"

#include <pthread.h>

#include "base/fork.h"
#include "base/lock.h"
#include "base/log.h"
#include "engine/engines.h"
#include "process/process.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct vb_paths ended;

static void add(struct vb_paths *sum, const struct vb_paths *p)
{
	sum->direct_requests += p->direct_requests;
	sum->direct_bytes += p->direct_bytes;
	sum->shm_runs += p->shm_runs;
	sum->shm_bytes += p->shm_bytes;
	sum->loop_runs += p->loop_runs;
	sum->loop_bytes += p->loop_bytes;
	sum->udp_runs += p->udp_runs;
	sum->udp_bytes += p->udp_bytes;
	sum->udp_strays += p->udp_strays;
	sum->short_sent += p->short_sent;
	sum->short_received += p->short_received;
	sum->lent_offered += p->lent_offered;
	sum->lent_taken += p->lent_taken;
}

void vb_paths_keep(const struct vb_paths *paths)
{
	vb_mutex_take(&lock, VB_ORDER_PATHS);
	add(&ended, paths);
	vb_mutex_release(&lock);
}

/*
 * In a forked child: the lock may be held by a thread that does not exist there, and the counts are
 * the parent's.
 */
static void forked(void)
{
	pthread_mutex_init(&lock, NULL);
	ended = (struct vb_paths){0};
}

static void add_engine(struct vb_engine *engine, void *sum)
{
	vb_lock_take(&engine->lock);
	add(sum, &engine->paths);
	vb_lock_release(&engine->lock);
}

void vb_paths_sum(struct vb_paths *sum)
{
	vb_mutex_take(&lock, VB_ORDER_PATHS);
	*sum = ended;
	vb_mutex_release(&lock);
	vb_process_each_engine(add_engine, sum);
}

void vb_paths_log(const char *device)
{
	struct vb_paths p;

	if (!vb_log_enabled(VB_LOG_INFO))
		return;
	vb_paths_sum(&p);
	vb_log(VB_LOG_INFO,
	       "%s: paths: direct %llu requests %llu bytes, shm %llu runs %llu bytes, loop %llu runs %llu bytes, "
	       "udp %llu runs %llu bytes, %llu strays, short way %llu sent %llu received, lent %llu offered %llu taken",
	       device, (unsigned long long)p.direct_requests, (unsigned long long)p.direct_bytes,
	       (unsigned long long)p.shm_runs, (unsigned long long)p.shm_bytes,
	       (unsigned long long)p.loop_runs, (unsigned long long)p.loop_bytes,
	       (unsigned long long)p.udp_runs, (unsigned long long)p.udp_bytes,
	       (unsigned long long)p.udp_strays, (unsigned long long)p.short_sent,
	       (unsigned long long)p.short_received, (unsigned long long)p.lent_offered,
	       (unsigned long long)p.lent_taken);
}

VB_FORK_HOOK(.phase = VB_FORK_ROOMS, .child = forked);
