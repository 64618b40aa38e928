/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * rdma_resolve_addr(3). The kernel's routing table tells the source address, and that tells the
 * device; both are known before the call returns, and the event follows at once. Neighbours are the
 * kernel's matter: one that does not answer shows when the connection is made.
 */
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "base/lock.h"
#include "rdmacm/address.h"
#include "rdmacm/bind.h"
#include "rdmacm/face.h"
#include "rdmacm/id.h"
#include "rdmacm/manager.h"
#include "rdmacm/port.h"
#include "rdmacm/source.h"
#include "rdmacm/sync.h"

/* Where a destination is reached, and from where. */
struct target {
	struct sockaddr_storage source, destination;
	struct vb_cma_place place;
};

static bool means_this_host(const struct sockaddr *addr)
{
	return vb_cma_address_is_wildcard(addr) || vb_cma_address_is_loopback(addr);
}

/* The address that the program gave, or that the id is bound to; NULL: any. */
static const struct sockaddr *wanted_source(const struct vb_cma_id *id,
					    const struct sockaddr *given)
{
	const struct sockaddr *own = &id->pub.route.addr.src_addr;
	const struct sockaddr *wanted = id->state == VB_CMA_IDLE ? given : own;

	return wanted && wanted->sa_family && !means_this_host(wanted) ? wanted : NULL;
}

/*
 * A loopback destination, or none, means this host: both sides are the address of a device, because
 * RoCE packets carry addresses that the peer can answer.
 */
static int find_own(const struct sockaddr *bound, struct target *t)
{
	const int family = t->destination.ss_family;
	const __be16 port = vb_cma_address_port((struct sockaddr *)&t->destination);
	union ibv_gid gid;
	int err;

	if (bound) {
		gid = vb_cma_address_gid(bound);
		err = vb_cma_place_find(&gid, vb_cma_address_scope(bound), &t->place);
	} else {
		err = vb_cma_place_first(family == AF_INET, &t->place);
	}
	if (err)
		return err;
	vb_cma_address_make(family, &t->place.gid, t->place.ifindex, 0, &t->source);
	vb_cma_address_make(family, &t->place.gid, t->place.ifindex, port, &t->destination);
	return 0;
}

/*
 * 0, and *later is 0, or the error that the event reports: the route leads over an interface without
 * a device.
 */
static int find_target(const struct vb_cma_id *id, const struct sockaddr *bound, struct target *t,
		       int *later)
{
	const struct sockaddr *to = (struct sockaddr *)&t->destination;
	char text[VB_CMA_ADDRESS_TEXT];
	union ibv_gid gid;
	int err;

	*later = 0;
	if (means_this_host(to)) {
		err = find_own(bound, t);
	} else {
		err = vb_cma_source_find(bound, to, id->options.tos, &t->source);
		if (err)
			return vb_refuse(-err, VB_REASON_CMA_ROUTE, "resolve_addr: %s: %s",
					 vb_cma_address_text(to, text), strerror(-err));
		gid = vb_cma_address_gid((struct sockaddr *)&t->source);
		err = vb_cma_place_find(&gid, vb_cma_address_scope((struct sockaddr *)&t->source),
					&t->place);
	}
	if (err != -ENODEV)
		return err;
	vb_note(VB_REASON_CMA_NO_DEVICE, "resolve_addr: the way to %s is over no device",
		vb_cma_address_text(to, text));
	*later = err;
	return 0;
}

/* The device of an id that was bound to its address stays: the same place, one reference. */
static void use_target(struct vb_cma_id *id, struct target *t)
{
	struct rdma_addr *addr = &id->pub.route.addr;
	__be16 port = vb_cma_address_port(&addr->src_addr);

	vb_cma_address_set_port((struct sockaddr *)&t->source, port);
	addr->src_storage = t->source;
	addr->dst_storage = t->destination;
	vb_cma_place_put(&id->place);
	vb_cma_bind_place(id, &t->place);
	addr->addr.ibaddr.dgid = vb_cma_address_gid(&addr->dst_addr);
	id->mtu = vb_cma_interface_mtu(t->place.ifindex);
	id->state = VB_CMA_ADDR_RESOLVED;
}

static int bind_for(struct vb_cma_id *id, const struct sockaddr *given, const struct target *t,
		    bool found)
{
	struct sockaddr_storage any = {.ss_family = t->destination.ss_family};
	struct sockaddr_storage source = found ? t->source : any;

	if (id->state == VB_CMA_BOUND)
		return 0;
	if (given) { /* the program's port, and its address where that is not any */
		memcpy(&any, given, vb_cma_address_length(given));
		if (!found || !means_this_host(given))
			source = any;
		vb_cma_address_set_port((struct sockaddr *)&source, vb_cma_address_port(given));
	}
	return vb_cma_bind(id, (struct sockaddr *)&source, (struct sockaddr *)&t->destination);
}

/* With the id's lock. */
static int resolve(struct vb_cma_id *id, const struct sockaddr *given, const struct sockaddr *to,
		   struct vb_cma_event *event)
{
	struct target t = {0};
	int err, later;

	if (id->state != VB_CMA_IDLE && id->state != VB_CMA_BOUND)
		return vb_cma_id_refuse_state(id, "resolve_addr");
	if (id->state == VB_CMA_BOUND && id->pub.route.addr.src_addr.sa_family != to->sa_family)
		return vb_refuse(EINVAL, VB_REASON_CMA_ADDRESS,
				 "resolve_addr: the id is bound to the address family %d",
				 id->pub.route.addr.src_addr.sa_family);
	memcpy(&t.destination, to, vb_cma_address_length(to));
	err = find_target(id, wanted_source(id, given), &t, &later);
	if (err)
		return err;
	err = bind_for(id, given, &t, !later);
	if (err) {
		vb_cma_place_put(&t.place);
		return err;
	}
	if (later) {
		event->pub.event = RDMA_CM_EVENT_ADDR_ERROR;
		event->pub.status = later;
	} else {
		use_target(id, &t);
		(void)vb_cma_port_change(id, &id->pub.route.addr.dst_addr);
	}
	vb_cma_event_post_locked(id, event);
	return 0;
}

static int check(const struct vb_cma_id *id, const struct sockaddr *src, const struct sockaddr *dst)
{
	int err = vb_cma_id_check(id, "resolve_addr");

	if (!err)
		err = vb_cma_bind_check(dst, "resolve_addr");
	if (!err && src)
		err = vb_cma_bind_check(src, "resolve_addr");
	if (!err && src && src->sa_family != dst->sa_family)
		err = vb_refuse(EINVAL, VB_REASON_CMA_ADDRESS,
				"resolve_addr: source of family %d, destination of family %d",
				src->sa_family, dst->sa_family);
	return err ? err : vb_cma_manager_open();
}

VB_EXPORT int rdma_resolve_addr(struct rdma_cm_id *pub, struct sockaddr *src_addr,
				struct sockaddr *dst_addr, int timeout_ms)
{
	struct vb_cma_id *id = vb_cma_id_of(pub);
	struct vb_cma_event *event;
	int err = check(id, src_addr, dst_addr);

	(void)timeout_ms; /* nothing is waited for */
	if (err)
		return vb_cma_answer(err);
	event = vb_cma_event_alloc(id, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	if (!event)
		return vb_cma_answer(vb_cma_refuse_memory("resolve_addr"));
	vb_mutex_take(&id->lock, VB_ORDER_CM_ID);
	err = resolve(id, src_addr, dst_addr, event);
	vb_mutex_release(&id->lock);
	if (err)
		free(event);
	return vb_cma_answer(err ? err : vb_cma_sync_wait(id));
}
