/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * rdma_resolve_route(3). RoCE asks nobody for a route: the path record follows from the two
 * addresses and the interface.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <stdlib.h>

#include "base/lock.h"
#include "rdmacm/address.h"
#include "rdmacm/face.h"
#include "rdmacm/id.h"
#include "rdmacm/manager.h"
#include "rdmacm/path.h"
#include "rdmacm/sync.h"

enum {
	EXACTLY = 2,      /* selector: the value, not a bound */
	PACKET_LIFE = 18, /* 4.096 us * 2^18, of which the ACK timeout is one more */
	HOPS = 64,
	OVERHEAD = 96, /* headers around a payload, as Linux counts them */
};

/* The largest path MTU whose packets fit; 0: none. */
static uint8_t mtu_of(uint32_t interface_mtu)
{
	for (int mtu = IBV_MTU_4096; mtu >= IBV_MTU_256; mtu--) {
		if ((128u << mtu) + OVERHEAD <= interface_mtu)
			return (uint8_t)mtu;
	}
	return 0;
}

/* Bits of a lane, in Mb/s, by the code of ibv_port_attr.active_speed. */
static int lane_mbps(unsigned int speed)
{
	static const struct {
		unsigned int code;
		int mbps;
	} lanes[] = {{1, 2500},   {2, 5000},   {4, 10000},    {8, 10000},   {16, 14063},
		     {32, 25782}, {64, 53125}, {128, 106250}, {256, 212500}};

	for (size_t i = 0; i < sizeof(lanes) / sizeof(lanes[0]); i++) {
		if (lanes[i].code == speed)
			return lanes[i].mbps;
	}
	return lanes[0].mbps;
}

/* The highest static rate that the port has. */
static uint8_t rate_of(const struct ibv_port_attr *attr)
{
	static const int lanes_of[] = {[1] = 1, [2] = 4, [4] = 8, [8] = 12, [16] = 2};
	const unsigned int widths = sizeof(lanes_of) / sizeof(lanes_of[0]);
	int lanes = attr->active_width < widths ? lanes_of[attr->active_width] : 1;
	int most = lane_mbps(attr->active_speed) * (lanes ? lanes : 1), best = 0;
	enum ibv_rate rate = IBV_RATE_2_5_GBPS;

	for (int code = IBV_RATE_2_5_GBPS; code <= IBV_RATE_1200_GBPS; code++) {
		int mbps = ibv_rate_to_mbps((enum ibv_rate)code);

		if (mbps > best && mbps <= most) {
			best = mbps;
			rate = (enum ibv_rate)code;
		}
	}
	return (uint8_t)rate;
}

/* RoCE v2, annex A17: what network devices tell the packets of two connections apart by. */
static uint32_t flow_label_of(const struct rdma_addr *addr)
{
	uint32_t label;

	if (addr->dst_addr.sa_family == AF_INET6 && addr->dst_sin6.sin6_flowinfo)
		return ntohl(addr->dst_sin6.sin6_flowinfo) & 0xfffff;
	label = ntohs(vb_cma_address_port(&addr->src_addr)) * 31u +
		ntohs(vb_cma_address_port(&addr->dst_addr));
	return label & 0xfffff;
}

int vb_cma_path_make(const struct vb_cma_id *id, struct ibv_sa_path_rec *path)
{
	const struct rdma_addr *addr = &id->pub.route.addr;
	struct ibv_port_attr attr;

	if (ibv_query_port(id->place.verbs, id->place.port_num, &attr))
		return -ENODEV;
	*path = (struct ibv_sa_path_rec){
		.dgid = addr->addr.ibaddr.dgid,
		.sgid = addr->addr.ibaddr.sgid,
		.flow_label = htonl(flow_label_of(addr)),
		.hop_limit = HOPS,
		.traffic_class = id->options.tos,
		.reversible = 1,
		.numb_path = 1,
		.pkey = htobe16(0xffff),
		.mtu_selector = EXACTLY,
		.mtu = mtu_of(id->mtu),
		.rate_selector = EXACTLY,
		.rate = rate_of(&attr),
		.packet_life_time_selector = EXACTLY,
		.packet_life_time = PACKET_LIFE,
	};
	if (id->options.ack_timeout_set && id->options.ack_timeout)
		path->packet_life_time = (uint8_t)(id->options.ack_timeout - 1);
	if (!path->mtu)
		return vb_refuse(EINVAL, VB_REASON_CMA_ROUTE,
				 "resolve_route: an interface of %u bytes carries no packet",
				 id->mtu);
	return 0;
}

void vb_cma_path_use(struct vb_cma_id *id, struct ibv_sa_path_rec *paths, int count)
{
	free(id->paths);
	id->paths = paths;
	id->pub.route.path_rec = paths;
	id->pub.route.num_paths = count;
	id->state = VB_CMA_ROUTE_RESOLVED;
}

/*
 * The sockets of other hosts are opened here, without a lock, because that may take time. Where the
 * port is in other hands the peer cannot be reached: the event says so, and nobody waits for a
 * minute and a half.
 */
static int reach(struct vb_cma_id *id)
{
	union ibv_gid gid;
	bool resolved;

	vb_mutex_take(&id->lock, VB_ORDER_CM_ID);
	resolved = id->state == VB_CMA_ADDR_RESOLVED;
	gid = id->pub.route.addr.addr.ibaddr.dgid;
	vb_mutex_release(&id->lock);
	return resolved ? vb_cma_manager_reach(gid.raw) : 0;
}

/* With the id's lock. */
static int resolve(struct vb_cma_id *id, struct vb_cma_event *event)
{
	struct ibv_sa_path_rec *path;
	int err;

	if (id->state != VB_CMA_ADDR_RESOLVED)
		return vb_cma_id_refuse_state(id, "resolve_route");
	if (event->pub.event == RDMA_CM_EVENT_ROUTE_ERROR) {
		vb_cma_event_post_locked(id, event);
		return 0;
	}
	path = calloc(1, sizeof(*path));
	if (!path)
		return vb_cma_refuse_memory("resolve_route");
	err = vb_cma_path_make(id, path);
	if (err) {
		free(path);
		return err;
	}
	vb_cma_path_use(id, path, 1);
	vb_cma_event_post_locked(id, event);
	return 0;
}

VB_EXPORT int rdma_resolve_route(struct rdma_cm_id *pub, int timeout_ms)
{
	struct vb_cma_id *id = vb_cma_id_of(pub);
	int err = vb_cma_id_check(id, "resolve_route");
	struct vb_cma_event *event = NULL;

	if (!err && !timeout_ms)
		err = vb_refuse(EINVAL, VB_REASON_ARG, "resolve_route: timeout_ms is 0");
	if (err)
		return vb_cma_answer(err);
	event = vb_cma_event_alloc(id, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	if (!event)
		return vb_cma_answer(vb_cma_refuse_memory("resolve_route"));
	event->pub.status = reach(id);
	if (event->pub.status)
		event->pub.event = RDMA_CM_EVENT_ROUTE_ERROR;
	vb_mutex_take(&id->lock, VB_ORDER_CM_ID);
	err = resolve(id, event);
	vb_mutex_release(&id->lock);
	if (err)
		free(event);
	return vb_cma_answer(err ? err : vb_cma_sync_wait(id));
}
