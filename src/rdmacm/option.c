/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rdma_set_option(3). */
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include <infiniband/sa.h>

#include "base/lock.h"
#include "rdmacm/face.h"
#include "rdmacm/id.h"
#include "rdmacm/path.h"
#include "rdmacm/port.h"
#include "rdmacm/sync.h"

enum { ACK_TIMEOUT_MOST = 31, PATHS_MOST = 64 };

static int refuse_length(const char *option, size_t length)
{
	return vb_refuse(EINVAL, VB_REASON_CMA_OPTION, "set_option: %s of %zu bytes", option,
			 length);
}

static int set_tos(struct vb_cma_id *id, const void *value, size_t length)
{
	if (length != sizeof(uint8_t))
		return refuse_length("TOS", length);
	memcpy(&id->options.tos, value, sizeof(uint8_t));
	for (int i = 0; i < id->pub.route.num_paths; i++)
		id->paths[i].traffic_class = id->options.tos;
	return 0;
}

/* It can be taken back as long as the id is not bound: others may count on it then. */
static int set_reuse(struct vb_cma_id *id, const void *value, size_t length)
{
	int on;

	if (length != sizeof(on))
		return refuse_length("REUSEADDR", length);
	memcpy(&on, value, sizeof(on));
	if (id->state >= VB_CMA_LISTENING || (id->state != VB_CMA_IDLE && !on))
		return vb_cma_id_refuse_state(id, "set_option: REUSEADDR");
	id->options.reuse = on;
	return vb_cma_port_change(id, &id->pub.route.addr.dst_addr);
}

static int set_afonly(struct vb_cma_id *id, const void *value, size_t length)
{
	int on;

	if (length != sizeof(on))
		return refuse_length("AFONLY", length);
	memcpy(&on, value, sizeof(on));
	if (id->state != VB_CMA_IDLE && id->state != VB_CMA_BOUND)
		return vb_cma_id_refuse_state(id, "set_option: AFONLY");
	id->options.afonly = on;
	id->options.afonly_set = true;
	return vb_cma_port_change(id, &id->pub.route.addr.dst_addr);
}

static int set_ack_timeout(struct vb_cma_id *id, const void *value, size_t length)
{
	uint8_t timeout;

	if (length != sizeof(timeout))
		return refuse_length("ACK_TIMEOUT", length);
	memcpy(&timeout, value, sizeof(timeout));
	if (vb_cma_id_is_datagram(id))
		return vb_refuse(EINVAL, VB_REASON_CMA_OPTION,
				 "set_option: ACK_TIMEOUT of a datagram id");
	if (timeout > ACK_TIMEOUT_MOST)
		return vb_refuse(EINVAL, VB_REASON_CMA_OPTION,
				 "set_option: ACK_TIMEOUT %u, at most %d", timeout,
				 ACK_TIMEOUT_MOST);
	id->options.ack_timeout = timeout;
	id->options.ack_timeout_set = true;
	return 0;
}

/* From the record of the wire (IBA 15.2.5.16) to the one that programs read. */
static void unpack_path(const struct ibv_path_record *in, struct ibv_sa_path_rec *out)
{
	const uint32_t flow = ntohl(in->flowlabel_hoplimit);

	*out = (struct ibv_sa_path_rec){
		.dgid = in->dgid,
		.sgid = in->sgid,
		.dlid = in->dlid,
		.slid = in->slid,
		.flow_label = htonl(flow >> 8 & 0xfffff),
		.hop_limit = (uint8_t)flow,
		.traffic_class = in->tclass,
		.reversible = in->reversible_numpath >> 7,
		.numb_path = in->reversible_numpath & 0x7f,
		.pkey = in->pkey,
		.sl = (uint8_t)(ntohs(in->qosclass_sl) & 0xf),
		.mtu_selector = in->mtu >> 6,
		.mtu = in->mtu & 0x3f,
		.rate_selector = in->rate >> 6,
		.rate = in->rate & 0x3f,
		.packet_life_time_selector = in->packetlifetime >> 6,
		.packet_life_time = in->packetlifetime & 0x3f,
		.preference = in->preference,
	};
}

static bool is_primary(uint32_t flags)
{
	const uint32_t wanted = IBV_PATH_FLAG_GMP | IBV_PATH_FLAG_PRIMARY |
				IBV_PATH_FLAG_BIDIRECTIONAL;

	return (flags & wanted) == wanted;
}

/* With the id's lock. */
static int use_paths(struct vb_cma_id *id, const struct ibv_path_data *given, size_t count,
		     struct vb_cma_event *event)
{
	struct ibv_sa_path_rec *path;
	size_t i = 0;

	if (id->state != VB_CMA_ADDR_RESOLVED)
		return vb_cma_id_refuse_state(id, "set_option: IB PATH");
	while (i < count && !is_primary(given[i].flags))
		i++;
	if (i == count)
		return vb_refuse(EINVAL, VB_REASON_CMA_OPTION,
				 "set_option: no path is marked as GMP, PRIMARY and BIDIRECTIONAL");
	path = calloc(1, sizeof(*path));
	if (!path)
		return vb_cma_refuse_memory("set_option");
	unpack_path(&given[i].path, path);
	if (path->mtu < IBV_MTU_256 || path->mtu > IBV_MTU_4096) {
		int err = vb_refuse(EINVAL, VB_REASON_CMA_OPTION, "set_option: a path MTU of %u",
				    path->mtu);

		free(path);
		return err;
	}
	vb_cma_path_use(id, path, 1);
	vb_cma_event_post_locked(id, event);
	return 0;
}

static int set_path(struct vb_cma_id *id, const void *value, size_t length)
{
	struct ibv_path_data given[PATHS_MOST];
	struct vb_cma_event *event;
	int err;

	if (!length || length % sizeof(given[0]) || length > sizeof(given))
		return refuse_length("IB PATH", length);
	memcpy(given, value, length);
	event = vb_cma_event_alloc(id, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	if (!event)
		return vb_cma_refuse_memory("set_option");
	err = use_paths(id, given, length / sizeof(given[0]), event);
	if (err)
		free(event);
	return err;
}

static int set_option(struct vb_cma_id *id, int level, int name, const void *value, size_t length)
{
	static int (*const of_id[])(struct vb_cma_id *, const void *, size_t) = {
		[RDMA_OPTION_ID_TOS] = set_tos,
		[RDMA_OPTION_ID_REUSEADDR] = set_reuse,
		[RDMA_OPTION_ID_AFONLY] = set_afonly,
		[RDMA_OPTION_ID_ACK_TIMEOUT] = set_ack_timeout,
	};

	if (level == RDMA_OPTION_ID && name >= 0 && name < (int)(sizeof(of_id) / sizeof(of_id[0])))
		return of_id[name](id, value, length);
	if (level == RDMA_OPTION_IB && name == RDMA_OPTION_IB_PATH)
		return set_path(id, value, length);
	return vb_refuse(ENOSYS, VB_REASON_CMA_OPTION, "set_option: level %d, option %d", level,
			 name);
}

VB_EXPORT int rdma_set_option(struct rdma_cm_id *pub, int level, int optname, void *optval,
			      size_t optlen)
{
	struct vb_cma_id *id = vb_cma_id_of(pub);
	int err = vb_cma_id_check(id, "set_option");
	bool waits = level == RDMA_OPTION_IB;

	if (!err && !optval)
		err = vb_cma_refuse_null("set_option", "optval");
	if (err)
		return vb_cma_answer(err);
	vb_mutex_take(&id->lock, VB_ORDER_CM_ID);
	err = set_option(id, level, optname, optval, optlen);
	vb_mutex_release(&id->lock);
	return vb_cma_answer(err || !waits ? err : vb_cma_sync_wait(id));
}
