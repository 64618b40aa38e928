/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * rdma_resolve_addrinfo(3), rdma_query_addrinfo(3). The resolver of the C library can only wait, so
 * a thread of its own waits for each call. An id that is destroyed meanwhile leaves the thread
 * behind, which then throws its result away.
 */
#include "rdmacm/addrinfo.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/lock.h"
#include "base/thread.h"
#include "rdmacm/face.h"
#include "rdmacm/id.h"
#include "rdmacm/sync.h"

struct vb_cma_resolution {
	struct vb_cma_id *id; /* under the lock; NULL: nobody wants the result */
	char *node, *service; /* NULL: not given */
	bool hinted;
	struct rdma_addrinfo hints;
	struct vb_cma_event *event;
};

/* Between the threads and the ids. */
static pthread_mutex_t results_lock = PTHREAD_MUTEX_INITIALIZER;

static void resolution_free(struct vb_cma_resolution *r)
{
	free(r->event);
	free(r->node);
	free(r->service);
	free(r->hints.ai_src_addr);
	free(r->hints.ai_dst_addr);
	free(r);
}

static int copy_text(const char *from, char **to)
{
	*to = from ? strdup(from) : NULL;
	return from && !*to ? -ENOMEM : 0;
}

static struct vb_cma_resolution *resolution_new(struct vb_cma_id *id, const char *node,
						const char *service,
						const struct rdma_addrinfo *hints)
{
	struct vb_cma_resolution *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->id = id;
	r->hinted = hints;
	r->event = vb_cma_event_alloc(id, RDMA_CM_EVENT_ADDRINFO_RESOLVED, 0);
	if (!r->event || copy_text(node, &r->node) || copy_text(service, &r->service) ||
	    (hints && vb_cma_addrinfo_copy_hints(hints, &r->hints))) {
		resolution_free(r);
		return NULL;
	}
	return r;
}

/* With the lock: the result is the id's, and its program is told. */
static void deliver(struct vb_cma_resolution *r, struct rdma_addrinfo *info, int err)
{
	struct vb_cma_id *id = r->id;

	if (err) {
		r->event->pub.event = RDMA_CM_EVENT_ADDRINFO_ERROR;
		r->event->pub.status = err;
	}
	vb_mutex_take(&id->lock, VB_ORDER_CM_ID);
	id->resolution = NULL;
	id->info = info;
	vb_cma_event_post_locked(id, r->event);
	vb_mutex_release(&id->lock);
	r->event = NULL;
}

static void *resolve(void *resolution)
{
	struct vb_cma_resolution *r = resolution;
	struct rdma_addrinfo *info = NULL;
	int code = 0;
	int err = vb_cma_addrinfo_make(r->node, r->service, r->hinted ? &r->hints : NULL, &info,
				       &code);

	if (!err && code)
		err = -ENODATA;
	vb_mutex_take(&results_lock, VB_ORDER_CM_RESULTS);
	if (r->id) {
		deliver(r, info, err);
		info = NULL;
	}
	vb_mutex_release(&results_lock);
	rdma_freeaddrinfo(info);
	resolution_free(r);
	return NULL;
}

void vb_cma_addrinfo_abandon(struct vb_cma_id *id)
{
	vb_mutex_take(&results_lock, VB_ORDER_CM_RESULTS);
	if (id->resolution)
		id->resolution->id = NULL;
	id->resolution = NULL;
	vb_mutex_release(&results_lock);
}

void vb_cma_addrinfo_forget(void)
{
	pthread_mutex_init(&results_lock, NULL);
}

/* One at a time, and none while a result waits for its query. */
static int reserve(struct vb_cma_id *id, struct vb_cma_resolution *r)
{
	int err = 0;

	vb_mutex_take(&results_lock, VB_ORDER_CM_RESULTS);
	vb_mutex_take(&id->lock, VB_ORDER_CM_ID);
	if (id->resolution || id->info)
		err = vb_refuse(EBUSY, VB_REASON_CMA_STATE, "resolve_addrinfo: %s",
				id->info ? "the result of the call before was not queried"
					 : "the call before is under way");
	else
		id->resolution = r;
	vb_mutex_release(&id->lock);
	vb_mutex_release(&results_lock);
	return err;
}

static int start(struct vb_cma_id *id, const char *node, const char *service,
		 const struct rdma_addrinfo *hints)
{
	int err = vb_cma_addrinfo_check(node, service, hints);
	struct vb_cma_resolution *r;

	if (err)
		return err;
	r = resolution_new(id, node, service, hints);
	if (!r)
		return vb_cma_refuse_memory("resolve_addrinfo");
	err = reserve(id, r);
	if (err) {
		resolution_free(r);
		return err;
	}
	err = vb_thread_start("verbatim-names", 0, resolve, r);
	if (!err)
		return 0;
	vb_cma_addrinfo_abandon(id);
	resolution_free(r);
	return vb_refuse(-err, VB_REASON_SYSTEM, "resolve_addrinfo: a thread: %s", strerror(-err));
}

VB_EXPORT int rdma_resolve_addrinfo(struct rdma_cm_id *pub, const char *node, const char *service,
				    const struct rdma_addrinfo *hints)
{
	struct vb_cma_id *id = vb_cma_id_of(pub);
	int err = vb_cma_id_check(id, "resolve_addrinfo");

	if (!err)
		err = start(id, node, service, hints);
	return vb_cma_answer(err ? err : vb_cma_sync_wait(id));
}

VB_EXPORT int rdma_query_addrinfo(struct rdma_cm_id *pub, struct rdma_addrinfo **info)
{
	struct vb_cma_id *id = vb_cma_id_of(pub);
	struct rdma_addrinfo *found;
	int err = vb_cma_id_check(id, "query_addrinfo");

	if (!err && !info)
		err = vb_cma_refuse_null("query_addrinfo", "info");
	if (err)
		return vb_cma_answer(err);
	vb_mutex_take(&id->lock, VB_ORDER_CM_ID);
	found = id->info;
	id->info = NULL;
	vb_mutex_release(&id->lock);
	if (!found)
		return vb_cma_answer(
			vb_refuse(ENOENT, VB_REASON_CMA_STATE, "query_addrinfo: no result waits"));
	*info = found;
	return 0;
}
