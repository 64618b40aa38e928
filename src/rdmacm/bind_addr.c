/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rdma_bind_addr(3). */
#include "rdmacm/bind.h"

#include <endian.h>
#include <string.h>

#include "base/lock.h"
#include "rdmacm/address.h"
#include "rdmacm/face.h"
#include "rdmacm/id.h"
#include "rdmacm/manager.h"
#include "rdmacm/port.h"
#include "rdmacm/removal.h"
#include "rdmacm/source.h"

int vb_cma_bind_check(const struct sockaddr *addr, const char *call)
{
	char text[VB_CMA_ADDRESS_TEXT];

	if (!addr)
		return vb_cma_refuse_null(call, "address");
	switch (addr->sa_family) {
	case AF_IB:
		return vb_refuse(ENODEV, VB_REASON_CMA_NO_DEVICE,
				 "%s: AF_IB addresses are those of InfiniBand ports", call);
	case AF_INET:
	case AF_INET6:
		break;
	default:
		return vb_refuse(EINVAL, VB_REASON_CMA_ADDRESS, "%s: address family %d", call,
				 addr->sa_family);
	}
	if (vb_cma_address_lacks_scope(addr))
		return vb_refuse(EINVAL, VB_REASON_CMA_ADDRESS, "%s: %s without its interface",
				 call, vb_cma_address_text(addr, text));
	return 0;
}

static int find_place(const struct sockaddr *addr, struct vb_cma_place *place)
{
	const union ibv_gid gid = vb_cma_address_gid(addr);
	int err = vb_cma_place_find(&gid, vb_cma_address_scope(addr), place);
	char text[VB_CMA_ADDRESS_TEXT];

	if (err != -ENODEV)
		return err;
	if (vb_cma_source_check(addr))
		return vb_refuse(EADDRNOTAVAIL, VB_REASON_CMA_ADDRESS,
				 "bind_addr: %s is no address of this host",
				 vb_cma_address_text(addr, text));
	return vb_refuse(ENODEV, VB_REASON_CMA_NO_DEVICE, "bind_addr: no device has %s",
			 vb_cma_address_text(addr, text));
}

void vb_cma_bind_place(struct vb_cma_id *id, const struct vb_cma_place *place)
{
	id->place = *place;
	id->pub.verbs = place->verbs;
	id->pub.pd = place->pd;
	id->pub.port_num = place->port_num;
	id->pub.route.addr.addr.ibaddr.sgid = place->gid;
	id->pub.route.addr.addr.ibaddr.pkey = htobe16(0xffff);
	vb_cma_removal_check(place);
}

int vb_cma_bind(struct vb_cma_id *id, const struct sockaddr *addr, const struct sockaddr *remote)
{
	struct rdma_addr *own = &id->pub.route.addr;
	struct vb_cma_place place = {0};
	struct sockaddr_storage copy = {0};
	int err = 0;

	memcpy(&copy, addr, vb_cma_address_length(addr));
	if (!vb_cma_address_is_wildcard(addr) && !vb_cma_address_is_loopback(addr))
		err = find_place(addr, &place);
	if (err)
		return err;
	err = vb_cma_port_take(id, (struct sockaddr *)&copy, remote);
	if (err) {
		vb_cma_place_put(&place);
		return err;
	}
	own->src_storage = copy;
	if (place.device)
		vb_cma_bind_place(id, &place);
	id->state = VB_CMA_BOUND;
	return 0;
}

VB_EXPORT int rdma_bind_addr(struct rdma_cm_id *pub, struct sockaddr *addr)
{
	struct vb_cma_id *id = vb_cma_id_of(pub);
	int err = vb_cma_id_check(id, "bind_addr");

	if (!err)
		err = vb_cma_bind_check(addr, "bind_addr");
	if (!err)
		err = vb_cma_manager_open();
	if (err)
		return vb_cma_answer(err);
	vb_mutex_take(&id->lock, VB_ORDER_CM_ID);
	err = id->state == VB_CMA_IDLE ? vb_cma_bind(id, addr, NULL)
				       : vb_cma_id_refuse_state(id, "bind_addr");
	vb_mutex_release(&id->lock);
	return vb_cma_answer(err);
}
