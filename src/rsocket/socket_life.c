/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Making and ending a socket. */
#include "rsocket/socket.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "base/sys.h"
#include "rsocket/config.h"
#include "rsocket/datagram.h"
#include "rsocket/listen.h"

ssize_t vb_rs_answer(ssize_t result)
{
	if (result >= 0)
		return result;
	errno = (int)-result;
	return -1;
}

struct vb_rsocket *vb_rs_alloc(int family, int type)
{
	struct vb_rsocket *rs = NULL;

	if (posix_memalign((void **)&rs, __alignof__(*rs), sizeof(*rs)))
		return NULL;
	*rs = (struct vb_rsocket){
		.fd = -1,
		.family = family,
		.type = type,
		.mutex = PTHREAD_MUTEX_INITIALIZER,
		.options =
			{
				.sizes = vb_rs_config()->sizes,
				.keepalive_idle = vb_rs_config()->keepalive_s,
				.keepalive_interval = 75,
				.keepalive_count = 9,
			},
	};
	return rs;
}

void vb_rs_free(struct vb_rsocket *rs)
{
	if (rs->datagram)
		vb_datagram_close(rs);
	if (rs->id && rs->id->qp)
		rdma_destroy_qp(rs->id);
	if (rs->has_stream)
		vb_stream_close(&rs->stream);
	if (rs->id)
		rdma_destroy_id(rs->id);
	if (rs->channel)
		rdma_destroy_event_channel(rs->channel);
	if (rs->backlog)
		vb_rs_backlog_close(rs, rs->state == VB_RS_LISTENING);
	free(rs->options.route);
	pthread_mutex_destroy(&rs->mutex);
	free(rs);
}

int vb_rs_open_channel(struct vb_rsocket *rs)
{
	int flags;

	rs->channel = rdma_create_event_channel();
	if (!rs->channel)
		return -errno;
	rs->fd = rs->channel->fd;
	flags = fcntl(rs->fd, F_GETFL);
	if (flags < 0 || fcntl(rs->fd, F_SETFL, flags | O_NONBLOCK))
		return -errno;
	return 0;
}

int vb_rs_open_stream(struct vb_rsocket *rs, uint8_t hello[VB_RS_HELLO_SIZE])
{
	struct ibv_qp_init_attr attr;
	struct vb_rs_hello mine;
	int err = vb_stream_open(&rs->stream, rs->id->verbs, rs->id->pd, &rs->options.sizes);

	if (err)
		return err;
	rs->has_stream = true;
	vb_stream_qp_attr(&rs->stream, &attr);
	if (rdma_create_qp(rs->id, rs->id->pd, &attr))
		return -errno;
	err = vb_stream_attach(&rs->stream, rs->id->qp);
	vb_stream_hello(&rs->stream, &mine);
	vb_rs_hello_encode(&mine, hello);
	return err;
}

bool vb_rs_is_nonblocking(const struct vb_rsocket *rs, int flags)
{
	return flags & MSG_DONTWAIT ||
	       __atomic_load_n(&rs->flags, __ATOMIC_RELAXED) & (uint32_t)O_NONBLOCK;
}

void vb_rs_fail(struct vb_rsocket *rs, int error)
{
	__atomic_store_n(&rs->error, error, __ATOMIC_RELAXED);
	vb_rs_set_state(rs, VB_RS_FAILED);
}
