/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * rdma_resolve_addrinfo(3), rdma_query_addrinfo(3). The resolver of the C library can only wait, so
 * the call waits for it, and the event follows at once.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/lock.h"
#include "rdmacm/addrinfo.h"
#include "rdmacm/face.h"
#include "rdmacm/id.h"
#include "rdmacm/sync.h"

/* The result takes the place of none; a result that waits for its query stays. */
static int keep(struct vb_cma_id *id, struct rdma_addrinfo *info, struct vb_cma_event *event)
{
	int err = 0;

	vb_mutex_take(&id->lock, VB_ORDER_CM_ID);
	if (id->info) {
		err = vb_refuse(EBUSY, VB_REASON_CMA_STATE,
				"resolve_addrinfo: the result of the call before was not queried");
	} else {
		id->info = info;
		vb_cma_event_post_locked(id, event);
	}
	vb_mutex_release(&id->lock);
	return err;
}

static int resolve(struct vb_cma_id *id, const char *node, const char *service,
		   const struct rdma_addrinfo *hints)
{
	struct vb_cma_event *event = vb_cma_event_alloc(id, RDMA_CM_EVENT_ADDRINFO_RESOLVED, 0);
	struct rdma_addrinfo *info = NULL;
	int code = 0, err;

	if (!event)
		return vb_cma_refuse_memory("resolve_addrinfo");
	err = vb_cma_addrinfo_make(node, service, hints, &info, &code);
	if (!err && code) {
		event->pub.event = RDMA_CM_EVENT_ADDRINFO_ERROR;
		event->pub.status = -ENODATA;
	}
	if (!err)
		err = keep(id, info, event);
	if (err) {
		rdma_freeaddrinfo(info);
		free(event);
	}
	return err;
}

VB_EXPORT int rdma_resolve_addrinfo(struct rdma_cm_id *pub, const char *node, const char *service,
				    const struct rdma_addrinfo *hints)
{
	struct vb_cma_id *id = vb_cma_id_of(pub);
	int err = vb_cma_id_check(id, "resolve_addrinfo");

	if (!err)
		err = resolve(id, node, service, hints);
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
