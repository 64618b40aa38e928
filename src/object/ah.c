/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Address handles and the resolving of address attributes. */
#include "object/ah.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/reason.h"
#include "object/context.h"
#include "device/device.h"
#include "device/gid.h"
#include "object/pd.h"
#include "device/port.h"
#include "udp/address.h"

#define DEFAULT_HOP_LIMIT 64 /* with 0 a packet would not leave the host */

/*
 * For every address of its RoCE core Linux uses the hop limit of the route. Programs count on that:
 * ibv_rc_pingpong and ibv_ud_pingpong ask for 1, and still reach other networks over adapters. So 0
 * and 1 mean the route's limit, and a larger value is taken as it is; so is 1 towards a group.
 */
static uint8_t hop_limit(const struct vb_path *path, uint8_t wanted, bool local)
{
	if (wanted > 1 || (wanted && vb_udp_is_group(path->dgid)))
		return wanted;
	return local || vb_udp_is_group(path->dgid) ? DEFAULT_HOP_LIMIT : VB_HOP_LIMIT_ROUTE;
}

bool vb_ah_udp_only(void)
{
	const char *text = secure_getenv("VERBATIM_LINK");

	return text && !strcmp(text, "udp");
}

/* The lowest index that has one; -1: none has. */
static int first_gid(struct ibv_context *ctx)
{
	union ibv_gid gid;

	for (uint32_t i = 0; i < VB_GID_TABLE; i++) {
		if (vb_device_gid(vb_context_of(ctx)->device, (uint32_t)i, &gid, NULL))
			return (int)i;
	}
	return -1;
}

int vb_ah_resolve(struct ibv_context *ctx, const struct ibv_ah_attr *attr, struct vb_path *path,
		  bool *local)
{
	union ibv_gid sgid;
	int err = vb_port_check(attr->port_num);

	if (err)
		return err;
	vb_device_refresh();
	if (!attr->is_global)
		return vb_refuse(EINVAL, VB_REASON_GID_INDEX,
				 "address: is_global is 0, but RoCE needs a GID; the port's first "
				 "is at index %d",
				 first_gid(ctx));
	if (!vb_device_gid(vb_context_of(ctx)->device, attr->grh.sgid_index, &sgid, NULL))
		return vb_refuse(EINVAL, VB_REASON_GID_INDEX,
				 "address: gid index %u of the port is empty; its first GID is at "
				 "index %d",
				 attr->grh.sgid_index, first_gid(ctx));
	memset(path, 0, sizeof(*path));
	memcpy(path->sgid, sgid.raw, sizeof(path->sgid));
	vb_udp_gid_on_wire(path->dgid, attr->grh.dgid.raw);
	path->flow_label = attr->grh.flow_label & IB_GRH_FLOWLABEL_MASK;
	path->traffic_class = attr->grh.traffic_class;
	*local = vb_gid_is_local(&attr->grh.dgid) && !vb_ah_udp_only();
	path->hop_limit = hop_limit(path, attr->grh.hop_limit, *local);
	return 0;
}

int vb_ah_create(struct ibv_pd *pd, const struct ibv_ah_attr *attr, struct ibv_ah **ah)
{
	struct ibv_context *ctx = pd->context;
	struct vb_ah *a;
	int err = vb_pd_get(ctx, pd);

	if (err)
		return err;
	a = calloc(1, sizeof(*a));
	if (!a)
		err = vb_refuse(ENOMEM, VB_REASON_NO_MEMORY, "no memory for an address handle");
	if (!err)
		err = vb_ah_resolve(ctx, attr, &a->path, &a->local);
	if (!err)
		err = vb_context_add(ctx, VB_HANDLE_AH, a, &a->ah.handle);
	if (err) {
		free(a);
		vb_pd_put(pd);
		return err;
	}
	a->attr = *attr;
	a->ah.context = ctx;
	a->ah.pd = pd;
	*ah = &a->ah;
	return 0;
}

int vb_ah_destroy(struct ibv_ah *ah)
{
	int err = vb_context_remove(ah->context, VB_HANDLE_AH, ah->handle, ah);

	if (err)
		return err;
	vb_pd_put(ah->pd);
	free(vb_ah_of(ah));
	return 0;
}

const struct vb_object_type vb_ah_type = {
	.name = "ah",
	.limit = VB_MAX_AH,
};
