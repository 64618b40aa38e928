/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Options: rsetsockopt(3), rgetsockopt(3), rfcntl(3). An option is a row of a table: how it is
 * written, how it is read. Sizes matter until a connection has its buffers.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/rsocket.h>

#include "rsocket/service.h"
#include "rsocket/table.h"

struct option {
	int level, name;
	int (*set)(struct vb_rsocket *rs, const struct option *o, int value);
	int (*get)(struct vb_rsocket *rs, const struct option *o, int *value);
	uint32_t bit; /* of a switch */
};

/* After that, sizes are what they are. */
static bool has_sizes_fixed(const struct vb_rsocket *rs)
{
	return rs->has_stream;
}

static int set_switch(struct vb_rsocket *rs, const struct option *o, int value)
{
	if (value)
		rs->options.on |= o->bit;
	else
		rs->options.on &= ~o->bit;
	return 0;
}

static int get_switch(struct vb_rsocket *rs, const struct option *o, int *value)
{
	*value = !!(rs->options.on & o->bit);
	return 0;
}

static int set_id_switch(struct vb_rsocket *rs, const struct option *o, int value)
{
	int name = o->bit == VB_RS_REUSEADDR ? RDMA_OPTION_ID_REUSEADDR : RDMA_OPTION_ID_AFONLY;

	set_switch(rs, o, value);
	/* The one that rbind() sets is enough where the id does not take it now. */
	if (rs->id && vb_rs_state(rs) <= VB_RS_BOUND)
		rdma_set_option(rs->id, RDMA_OPTION_ID, name, &value, sizeof(value));
	return 0;
}

static int set_keepalive(struct vb_rsocket *rs, const struct option *o, int value)
{
	set_switch(rs, o, value);
	vb_rs_service_keepalive(rs);
	return 0;
}

/* The kernel doubles what it is told (socket(7)). */
static int set_buffer(struct vb_rsocket *rs, const struct option *o, int value)
{
	uint32_t size = value < 0 ? 0 : (uint32_t)value * 2;

	if (has_sizes_fixed(rs))
		return 0;
	if (o->name == SO_SNDBUF)
		rs->options.sizes.send_buffer = size;
	else
		rs->options.sizes.receive_buffer = size;
	vb_stream_sizes_fit(&rs->options.sizes);
	return 0;
}

static int get_buffer(struct vb_rsocket *rs, const struct option *o, int *value)
{
	*value = (int)(o->name == SO_SNDBUF ? rs->options.sizes.send_buffer
					    : rs->options.sizes.receive_buffer);
	return 0;
}

static int get_error(struct vb_rsocket *rs, const struct option *o, int *value)
{
	(void)o;
	*value = -__atomic_exchange_n(&rs->error, 0, __ATOMIC_RELAXED);
	if (!*value && rs->has_stream && vb_stream_ends(&rs->stream) & VB_STREAM_BROKEN)
		*value = -rs->stream.error;
	return 0;
}

static int get_constant(struct vb_rsocket *rs, const struct option *o, int *value)
{
	switch (o->name) {
	case SO_TYPE:
		*value = rs->type;
		return 0;
	case SO_DOMAIN:
		*value = rs->family;
		return 0;
	case SO_PROTOCOL:
		*value = rs->type == SOCK_STREAM ? IPPROTO_TCP : IPPROTO_UDP;
		return 0;
	default:
		*value = vb_rs_state(rs) == VB_RS_LISTENING;
		return 0;
	}
}

static int get_segment(struct vb_rsocket *rs, const struct option *o, int *value)
{
	(void)o;
	*value = 2048;
	if (rs->id && rs->id->route.num_paths > 0 && rs->id->route.path_rec)
		*value = 128 << rs->id->route.path_rec->mtu;
	return 0;
}

static int set_keep_time(struct vb_rsocket *rs, const struct option *o, int value)
{
	if (value < 1)
		return -EINVAL;
	switch (o->name) {
	case TCP_KEEPIDLE:
		rs->options.keepalive_idle = (uint32_t)value;
		vb_rs_service_keepalive(rs);
		break;
	case TCP_KEEPINTVL:
		rs->options.keepalive_interval = (uint32_t)value;
		break;
	default:
		rs->options.keepalive_count = (uint32_t)value;
		break;
	}
	return 0;
}

static int get_keep_time(struct vb_rsocket *rs, const struct option *o, int *value)
{
	*value = (int)(o->name == TCP_KEEPIDLE    ? rs->options.keepalive_idle
		       : o->name == TCP_KEEPINTVL ? rs->options.keepalive_interval
						  : rs->options.keepalive_count);
	return 0;
}

static int set_tos(struct vb_rsocket *rs, const struct option *o, int value)
{
	(void)o;
	rs->options.tos = (uint8_t)value;
	rs->options.on |= VB_RS_TOS_SET;
	if (rs->datagram && setsockopt(rs->fd, IPPROTO_IP, IP_TOS, &value, sizeof(value)))
		return -errno;
	return 0;
}

static int get_tos(struct vb_rsocket *rs, const struct option *o, int *value)
{
	(void)o;
	*value = rs->options.tos;
	return 0;
}

/* Accepted, and without an effect on this kind of connection. */
static int set_nothing(struct vb_rsocket *rs, const struct option *o, int value)
{
	(void)rs;
	(void)o;
	(void)value;
	return 0;
}

static int set_size(struct vb_rsocket *rs, const struct option *o, int value)
{
	struct vb_stream_sizes *s = &rs->options.sizes;
	uint32_t size = value < 0 ? 0 : (uint32_t)value;

	if (vb_rs_state(rs) > VB_RS_LISTENING)
		return -EINVAL;
	switch (o->name) {
	case RDMA_SQSIZE:
		s->send_queue = size > UINT16_MAX ? UINT16_MAX : (uint16_t)size;
		break;
	case RDMA_RQSIZE:
		s->receive_queue = size > UINT16_MAX ? UINT16_MAX : (uint16_t)size;
		break;
	case RDMA_INLINE:
		s->inline_bytes = size;
		break;
	default:
		s->iomaps = size;
		break;
	}
	vb_stream_sizes_fit(s);
	return 0;
}

static int get_size(struct vb_rsocket *rs, const struct option *o, int *value)
{
	const struct vb_stream_sizes *s = &rs->options.sizes;

	*value = (int)(o->name == RDMA_SQSIZE   ? s->send_queue
		       : o->name == RDMA_RQSIZE ? s->receive_queue
		       : o->name == RDMA_INLINE ? s->inline_bytes
						: s->iomaps);
	return 0;
}

static const struct option options[] = {
	{SOL_SOCKET, SO_REUSEADDR, set_id_switch, get_switch, VB_RS_REUSEADDR},
	{SOL_SOCKET, SO_REUSEPORT, set_nothing, NULL, 0},
	{SOL_SOCKET, SO_SNDBUF, set_buffer, get_buffer, 0},
	{SOL_SOCKET, SO_RCVBUF, set_buffer, get_buffer, 0},
	{SOL_SOCKET, SO_KEEPALIVE, set_keepalive, get_switch, VB_RS_KEEPALIVE_ON},
	{SOL_SOCKET, SO_OOBINLINE, set_switch, get_switch, VB_RS_OOBINLINE},
	{SOL_SOCKET, SO_BROADCAST, set_switch, get_switch, VB_RS_BROADCAST},
	{SOL_SOCKET, SO_ERROR, NULL, get_error, 0},
	{SOL_SOCKET, SO_TYPE, NULL, get_constant, 0},
	{SOL_SOCKET, SO_DOMAIN, NULL, get_constant, 0},
	{SOL_SOCKET, SO_PROTOCOL, NULL, get_constant, 0},
	{SOL_SOCKET, SO_ACCEPTCONN, NULL, get_constant, 0},
	{IPPROTO_TCP, TCP_NODELAY, set_switch, get_switch, VB_RS_NODELAY},
	{IPPROTO_TCP, TCP_KEEPIDLE, set_keep_time, get_keep_time, 0},
	{IPPROTO_TCP, TCP_KEEPINTVL, set_keep_time, get_keep_time, 0},
	{IPPROTO_TCP, TCP_KEEPCNT, set_keep_time, get_keep_time, 0},
	{IPPROTO_TCP, TCP_MAXSEG, set_nothing, get_segment, 0},
	{IPPROTO_IP, IP_TOS, set_tos, get_tos, 0},
	{IPPROTO_IPV6, IPV6_TCLASS, set_tos, get_tos, 0},
	{IPPROTO_IPV6, IPV6_V6ONLY, set_id_switch, get_switch, VB_RS_V6ONLY},
	{SOL_RDMA, RDMA_SQSIZE, set_size, get_size, 0},
	{SOL_RDMA, RDMA_RQSIZE, set_size, get_size, 0},
	{SOL_RDMA, RDMA_INLINE, set_size, get_size, 0},
	{SOL_RDMA, RDMA_IOMAPSIZE, set_size, get_size, 0},
};

static const struct option *find(int level, int name)
{
	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
		if (options[i].level == level && options[i].name == name)
			return &options[i];
	}
	return NULL;
}

/* The route of a connection that is still to be made. */
static int set_route(struct vb_rsocket *rs, const void *value, socklen_t length)
{
	struct ibv_path_data *route;

	if (vb_rs_state(rs) > VB_RS_BOUND || !length || length % sizeof(*route))
		return -EINVAL;
	route = malloc(length);
	if (!route)
		return -ENOMEM;
	memcpy(route, value, length);
	free(rs->options.route);
	rs->options.route = route;
	rs->options.route_size = length;
	return 0;
}

static uint32_t flow_of(const struct ibv_sa_path_rec *path)
{
	return be32toh(path->flow_label) << 8 | path->hop_limit;
}

/* One path as the connection manager has it, in the form of a path record. */
static struct ibv_path_data path_data(const struct ibv_sa_path_rec *path)
{
	struct ibv_path_data data = {
		.flags = IBV_PATH_FLAG_GMP | IBV_PATH_FLAG_PRIMARY | IBV_PATH_FLAG_BIDIRECTIONAL,
		.path =
			{
				.dgid = path->dgid,
				.sgid = path->sgid,
				.dlid = path->dlid,
				.slid = path->slid,
				.flowlabel_hoplimit = htobe32(flow_of(path)),
				.tclass = path->traffic_class,
				.reversible_numpath =
					(uint8_t)((uint32_t)path->reversible << 7 | 1),
				.pkey = path->pkey,
				.qosclass_sl = htobe16(path->sl),
				.mtu = (uint8_t)(2 << 6 | path->mtu),
				.rate = (uint8_t)(2 << 6 | path->rate),
				.packetlifetime = (uint8_t)(2 << 6 | path->packet_life_time),
			},
	};

	return data;
}

static int get_route(struct vb_rsocket *rs, void *value, socklen_t *length)
{
	uint8_t *to = value;
	socklen_t have = 0;
	int count;

	if (rs->options.route) {
		if (*length < rs->options.route_size)
			return -EINVAL;
		memcpy(value, rs->options.route, rs->options.route_size);
		*length = (socklen_t)rs->options.route_size;
		return 0;
	}
	count = rs->id ? rs->id->route.num_paths : 0;
	if (count <= 0 || !rs->id->route.path_rec)
		return -ENODATA;
	for (int i = 0; i < count && have + sizeof(struct ibv_path_data) <= *length; i++) {
		struct ibv_path_data data = path_data(&rs->id->route.path_rec[i]);

		memcpy(to + have, &data, sizeof(data));
		have += (socklen_t)sizeof(data);
	}
	*length = have;
	return have ? 0 : -EINVAL;
}

static int set_locked(struct vb_rsocket *rs, int level, int name, const void *value,
		      socklen_t length)
{
	const struct option *o = find(level, name);
	int number;

	if (level == SOL_SOCKET && name == SO_LINGER) {
		if (length < sizeof(rs->options.linger))
			return -EINVAL;
		memcpy(&rs->options.linger, value, sizeof(rs->options.linger));
		return 0;
	}
	if (level == SOL_RDMA && name == RDMA_ROUTE)
		return set_route(rs, value, length);
	if (level == IPPROTO_TCP && name == TCP_CONGESTION)
		return 0;
	if (!o || !o->set)
		return rs->datagram ? (setsockopt(rs->fd, level, name, value, length) ? -errno : 0)
				    : -ENOTSUP;
	if (length < sizeof(number))
		return -EINVAL;
	memcpy(&number, value, sizeof(number));
	/* The UDP socket of a datagram socket has these, too. */
	if (rs->datagram && level != SOL_RDMA && level != IPPROTO_TCP)
		setsockopt(rs->fd, level, name, value, length);
	return o->set(rs, o, number);
}

VB_EXPORT int rsetsockopt(int socket, int level, int optname, const void *optval, socklen_t optlen)
{
	struct vb_rsocket *rs = vb_rs_get(socket);
	int err = -EFAULT;

	if (!rs)
		return (int)vb_rs_answer(-EBADF);
	vb_mutex_take(&rs->mutex, VB_ORDER_RS_SOCKET);
	if (optval)
		err = set_locked(rs, level, optname, optval, optlen);
	vb_mutex_release(&rs->mutex);
	vb_rs_put(socket);
	return (int)vb_rs_answer(err);
}

/* Gives a value of fewer bytes where the caller has room for fewer. */
static int give(void *to, socklen_t *length, const void *value, socklen_t size)
{
	if (*length > size)
		*length = size;
	memcpy(to, value, *length);
	return 0;
}

static int get_info(struct vb_rsocket *rs, void *value, socklen_t *length)
{
	struct tcp_info info = {.tcpi_state = TCP_CLOSE};
	int mtu;

	if (vb_rs_state(rs) == VB_RS_CONNECTED && !vb_stream_ends(&rs->stream))
		info.tcpi_state = TCP_ESTABLISHED;
	else if (vb_rs_state(rs) == VB_RS_LISTENING)
		info.tcpi_state = TCP_LISTEN;
	get_segment(rs, NULL, &mtu);
	info.tcpi_snd_mss = info.tcpi_rcv_mss = (uint32_t)mtu;
	return give(value, length, &info, sizeof(info));
}

static int get_locked(struct vb_rsocket *rs, int level, int name, void *value, socklen_t *length)
{
	static const char congestion[16] = "rdma";
	const struct option *o = find(level, name);
	int number, err;

	if (level == SOL_SOCKET && name == SO_LINGER)
		return give(value, length, &rs->options.linger, sizeof(rs->options.linger));
	if (level == SOL_RDMA && name == RDMA_ROUTE)
		return get_route(rs, value, length);
	if (level == IPPROTO_TCP && name == TCP_CONGESTION)
		return give(value, length, congestion, sizeof(congestion));
	if (level == IPPROTO_TCP && name == TCP_INFO)
		return get_info(rs, value, length);
	if (!o || !o->get)
		return rs->datagram ? (getsockopt(rs->fd, level, name, value, length) ? -errno : 0)
				    : -ENOTSUP;
	err = o->get(rs, o, &number);
	return err ? err : give(value, length, &number, sizeof(number));
}

VB_EXPORT int rgetsockopt(int socket, int level, int optname, void *optval, socklen_t *optlen)
{
	struct vb_rsocket *rs = vb_rs_get(socket);
	int err = -EFAULT;

	if (!rs)
		return (int)vb_rs_answer(-EBADF);
	vb_mutex_take(&rs->mutex, VB_ORDER_RS_SOCKET);
	if (optval && optlen)
		err = (int)*optlen < 0 ? -EINVAL : get_locked(rs, level, optname, optval, optlen);
	vb_mutex_release(&rs->mutex);
	vb_rs_put(socket);
	return (int)vb_rs_answer(err);
}

static int control(struct vb_rsocket *rs, int cmd, int value)
{
	switch (cmd) {
	case F_GETFL:
		return O_RDWR | (int)rs->flags;
	case F_SETFL:
		__atomic_store_n(&rs->flags, (uint32_t)(value & O_NONBLOCK), __ATOMIC_RELAXED);
		return 0;
	case F_GETFD:
		return (int)rs->fd_flags;
	case F_SETFD:
		rs->fd_flags = (uint32_t)value & FD_CLOEXEC;
		return 0;
	default:
		return -ENOTSUP;
	}
}

VB_EXPORT int rfcntl(int socket, int cmd, ... /* arg */)
{
	struct vb_rsocket *rs = vb_rs_get(socket);
	int value = 0, result;
	va_list args;

	if (!rs)
		return (int)vb_rs_answer(-EBADF);
	if (cmd == F_SETFL || cmd == F_SETFD) {
		va_start(args, cmd);
		value = va_arg(args, int);
		va_end(args);
	}
	result = control(rs, cmd, value);
	vb_rs_put(socket);
	return (int)vb_rs_answer(result);
}
