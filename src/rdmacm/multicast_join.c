/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * rdma_join_multicast(3), rdma_join_multicast_ex(3), rdma_leave_multicast(3). RoCE has no manager of
 * groups: joining is attaching the queue pair, which also makes the host a member (IGMP, MLD).
 */
#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include <infiniband/ib.h>

#include "base/lock.h"
#include "rdmacm/address.h"
#include "rdmacm/face.h"
#include "rdmacm/id.h"
#include "rdmacm/multicast.h"
#include "rdmacm/sync.h"

enum { HOPS = 64, GROUP_QPN = 0xffffff };

struct vb_cma_group {
	struct sockaddr_storage addr;
	union ibv_gid mgid;
	void *context;
	bool send_only;
	struct ibv_qp *attached; /* NULL: none */
	struct vb_cma_group *next;
};

static int mgid_of(const struct sockaddr *addr, union ibv_gid *mgid)
{
	char text[VB_CMA_ADDRESS_TEXT];

	if (addr->sa_family == AF_IB) { /* a group in its own form */
		memcpy(mgid->raw,
		       ((const struct sockaddr_ib *)(const void *)addr)->sib_addr.sib_raw,
		       sizeof(mgid->raw));
		if (mgid->raw[0] == 0xff)
			return 0;
	} else if (vb_cma_address_is_multicast(addr)) {
		*mgid = vb_cma_address_gid(addr);
		return 0;
	}
	return vb_refuse(EINVAL, VB_REASON_CMA_ADDRESS, "join_multicast: %s is no multicast group",
			 vb_cma_address_text(addr, text));
}

static int check_join(const struct vb_cma_id *id, const struct rdma_cm_join_mc_attr_ex *attr)
{
	const uint32_t needed = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS;
	int err = vb_cma_id_check(id, "join_multicast");

	if (err)
		return err;
	if (!attr)
		return vb_cma_refuse_null("join_multicast", "mc_join_attr");
	if (attr->comp_mask & ~needed)
		return vb_refuse(ENOTSUP, VB_REASON_ARG_MASK, "join_multicast: comp_mask 0x%x",
				 attr->comp_mask);
	if (attr->comp_mask != needed)
		return vb_refuse(EINVAL, VB_REASON_ARG_MASK,
				 "join_multicast: comp_mask 0x%x without address or flags",
				 attr->comp_mask);
	if (attr->join_flags >= RDMA_MC_JOIN_FLAG_RESERVED)
		return vb_refuse(EINVAL, VB_REASON_ARG, "join_multicast: join_flags %u",
				 attr->join_flags);
	if (!attr->addr || !vb_cma_address_length(attr->addr))
		return vb_refuse(EINVAL, VB_REASON_ARG, "join_multicast: no address");
	if (id->pub.qp_type != IBV_QPT_UD || !id->pub.verbs)
		return vb_refuse(EINVAL, VB_REASON_CMA_STATE,
				 "join_multicast: the id is none of datagrams with a device");
	return 0;
}

static struct vb_cma_group *make_group(const struct rdma_cm_join_mc_attr_ex *attr, void *context,
				       int *err)
{
	struct vb_cma_group *group = calloc(1, sizeof(*group));

	*err = group ? mgid_of(attr->addr, &group->mgid) : vb_cma_refuse_memory("join_multicast");
	if (*err) {
		free(group);
		return NULL;
	}
	memcpy(&group->addr, attr->addr, vb_cma_address_length(attr->addr));
	group->context = context;
	group->send_only = attr->join_flags == RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER;
	return group;
}

/* When the program reads the event: its queue pair becomes a member. */
static bool arrive(struct vb_cma_event *event)
{
	struct vb_cma_id *id = vb_cma_id_of(event->pub.id);
	struct vb_cma_group *group = event->group;
	int err;

	if (group->send_only || !id->pub.qp || event->pub.status)
		return true;
	err = ibv_attach_mcast(id->pub.qp, &group->mgid, 0);
	if (!err) {
		group->attached = id->pub.qp;
		return true;
	}
	event->pub.event = RDMA_CM_EVENT_MULTICAST_ERROR;
	event->pub.status = -err;
	return true;
}

static void fill(const struct vb_cma_id *id, const struct vb_cma_group *group,
		 struct vb_cma_event *event)
{
	event->pub.param.ud = (struct rdma_ud_param){
		.private_data = group->context,
		.ah_attr =
			{
				.is_global = 1,
				.port_num = id->pub.port_num,
				.grh =
					{
						.dgid = group->mgid,
						.sgid_index = id->place.sgid_index,
						.hop_limit = HOPS,
						.traffic_class = id->options.tos,
					},
			},
		.qp_num = GROUP_QPN,
		.qkey = RDMA_UDP_QKEY,
	};
}

static int join(struct vb_cma_id *id, const struct rdma_cm_join_mc_attr_ex *attr, void *context)
{
	struct vb_cma_event *event = vb_cma_event_alloc(id, RDMA_CM_EVENT_MULTICAST_JOIN, 0);
	struct vb_cma_group *group, **place = &id->groups;
	int err = 0;

	if (!event)
		return vb_cma_refuse_memory("join_multicast");
	group = make_group(attr, context, &err);
	if (!group) {
		free(event);
		return err;
	}
	event->arrive = arrive;
	event->group = group;
	vb_mutex_take(&id->lock, VB_ORDER_CM_ID);
	fill(id, group, event);
	while (*place)
		place = &(*place)->next;
	*place = group;
	vb_cma_event_post_locked(id, event);
	vb_mutex_release(&id->lock);
	return 0;
}

VB_EXPORT int rdma_join_multicast_ex(struct rdma_cm_id *pub,
				     struct rdma_cm_join_mc_attr_ex *mc_join_attr, void *context)
{
	struct vb_cma_id *id = vb_cma_id_of(pub);
	int err = check_join(id, mc_join_attr);

	if (!err)
		err = join(id, mc_join_attr, context);
	return vb_cma_answer(err ? err : vb_cma_sync_wait(id));
}

VB_EXPORT int rdma_join_multicast(struct rdma_cm_id *pub, struct sockaddr *addr, void *context)
{
	struct rdma_cm_join_mc_attr_ex attr = {
		.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS,
		.join_flags = RDMA_MC_JOIN_FLAG_FULLMEMBER,
		.addr = addr,
	};

	return rdma_join_multicast_ex(pub, &attr, context);
}

static struct vb_cma_group *take_group(struct vb_cma_id *id, const struct sockaddr *addr)
{
	const socklen_t length = vb_cma_address_length(addr);
	struct vb_cma_group **place, *group = NULL;

	vb_mutex_take(&id->lock, VB_ORDER_CM_ID);
	for (place = &id->groups; *place; place = &(*place)->next) {
		if (!memcmp(&(*place)->addr, addr, length)) {
			group = *place;
			*place = group->next;
			break;
		}
	}
	vb_mutex_release(&id->lock);
	return group;
}

static void leave(const struct vb_cma_id *id, struct vb_cma_group *group)
{
	/* A queue pair that the program has destroyed, or changed for another one, is no member. */
	if (group->attached && group->attached == id->pub.qp)
		(void)ibv_detach_mcast(group->attached, &group->mgid, 0);
	free(group);
}

VB_EXPORT int rdma_leave_multicast(struct rdma_cm_id *pub, struct sockaddr *addr)
{
	struct vb_cma_id *id = vb_cma_id_of(pub);
	int err = vb_cma_id_check(id, "leave_multicast");
	struct vb_cma_group *group;

	if (!err && (!addr || !vb_cma_address_length(addr)))
		err = vb_refuse(EINVAL, VB_REASON_ARG, "leave_multicast: no address");
	if (err)
		return vb_cma_answer(err);
	group = take_group(id, addr);
	if (!group)
		return vb_cma_answer(vb_refuse(EADDRNOTAVAIL, VB_REASON_CMA_ADDRESS,
					       "leave_multicast: the id has not joined the group"));
	if (id->sync && id->pub.event && vb_cma_event_of(id->pub.event)->group == group)
		vb_cma_sync_ack(id);
	vb_cma_event_forget_group(id, group);
	leave(id, group);
	return 0;
}

void vb_cma_multicast_detach(struct vb_cma_id *id)
{
	vb_mutex_take(&id->lock, VB_ORDER_CM_ID);
	for (struct vb_cma_group *group = id->groups; group; group = group->next) {
		if (group->attached && group->attached == id->pub.qp)
			(void)ibv_detach_mcast(group->attached, &group->mgid, 0);
		group->attached = NULL;
	}
	vb_mutex_release(&id->lock);
}

void vb_cma_multicast_end(struct vb_cma_id *id)
{
	struct vb_cma_group *group;

	while ((group = id->groups)) {
		id->groups = group->next;
		/* Whether the queue pair is still there, only the program knows. */
		free(group);
	}
}
