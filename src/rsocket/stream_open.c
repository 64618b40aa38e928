/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Making a stream and ending it. */
#include "rsocket/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "memory/lasting.h"
#include "rsocket/stream_private.h"

static uint32_t between(uint32_t value, uint32_t least, uint32_t most)
{
	return value < least ? least : value > most ? most : value;
}

void vb_stream_sizes_fit(struct vb_stream_sizes *sizes)
{
	sizes->send_queue =
		(uint16_t)between(sizes->send_queue, VB_STREAM_QUEUE_MIN, VB_STREAM_QUEUE_MAX);
	sizes->receive_queue =
		(uint16_t)between(sizes->receive_queue, VB_STREAM_QUEUE_MIN, VB_STREAM_QUEUE_MAX);
	sizes->inline_bytes = between(sizes->inline_bytes, 0, VB_STREAM_INLINE_MAX);
	/* An announcement names a half, whose length has to fit into an operand. */
	sizes->send_buffer = between(sizes->send_buffer, VB_STREAM_BUFFER_MIN, VB_RS_OPERAND_MAX) &
			     ~63u;
	sizes->receive_buffer =
		between(sizes->receive_buffer, VB_STREAM_BUFFER_MIN, VB_RS_OPERAND_MAX) & ~127u;
	sizes->iomaps = vb_rs_unscale(vb_rs_scale(sizes->iomaps));
}

static size_t out_mapped(const struct vb_stream *s)
{
	return s->out.size + (size_t)VB_STREAM_CONTROLS * VB_STREAM_CONTROL_PLACE;
}

static size_t in_mapped(const struct vb_stream *s)
{
	return s->in.size + VB_RS_SGES * sizeof(struct vb_rs_sge) +
	       s->sizes.iomaps * sizeof(struct vb_rs_iomap);
}

/* The memory is the kernel's until it is touched. */
static uint8_t *map(size_t size)
{
	void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return at == MAP_FAILED ? NULL : at;
}

static int open_buffers(struct vb_stream *s)
{
	s->out.size = s->sizes.send_buffer;
	s->in.size = s->sizes.receive_buffer;
	s->arrived.lengths = calloc((size_t)s->sizes.receive_queue + 1, sizeof(uint32_t));
	s->out.buffer = map(out_mapped(s));
	s->in.buffer = map(in_mapped(s));
	if (!s->arrived.lengths || !s->out.buffer || !s->in.buffer)
		return -ENOMEM;
	s->out.mr = ibv_reg_mr(s->pd, s->out.buffer, out_mapped(s), IBV_ACCESS_LOCAL_WRITE);
	s->in.mr = ibv_reg_mr(s->pd, s->in.buffer, in_mapped(s),
			      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	if (!s->out.mr || !s->in.mr)
		return -errno;
	vb_mr_lasts(s->in.mr);
	return 0;
}

/* What the peer may use, and a batch of those that are being posted again. */
static uint32_t receives(const struct vb_stream *s)
{
	return s->sizes.receive_queue + (uint32_t)VB_STREAM_BATCH;
}

static int open_queue(struct vb_stream *s, struct ibv_context *context)
{
	int flags;

	s->channel = ibv_create_comp_channel(context);
	if (!s->channel)
		return -errno;
	flags = fcntl(s->channel->fd, F_GETFL);
	if (flags < 0 || fcntl(s->channel->fd, F_SETFL, flags | O_NONBLOCK))
		return -errno;
	s->cq = ibv_create_cq(context, s->sizes.send_queue + (int)receives(s), s, s->channel, 0);
	return s->cq ? 0 : -errno;
}

/* The queues that are asked for may be longer than those of the device. */
static int fit_device(struct vb_stream *s, struct ibv_context *context)
{
	struct ibv_device_attr attr;
	int err = ibv_query_device(context, &attr);
	uint32_t most = err ? 0 : (uint32_t)attr.max_qp_wr;

	if (s->sizes.send_queue > most)
		s->sizes.send_queue = (uint16_t)most;
	if (receives(s) > most)
		s->sizes.receive_queue = (uint16_t)(most - VB_STREAM_BATCH);
	return -err;
}

/* Most streams are used by one thread, for which a lock with a bias costs no atomic operation. */
static int locks_init(struct vb_stream *s)
{
	vb_lock_place(&s->in.lock, VB_ORDER_RS_IN);
	vb_lock_place(&s->out.lock, VB_ORDER_RS_OUT);
	vb_lock_place(&s->poll, VB_ORDER_RS_POLL);
	return vb_bias_allow(&s->in.lock) || vb_bias_allow(&s->out.lock) || vb_bias_allow(&s->poll)
		       ? -ENOMEM
		       : 0;
}

static void locks_end(struct vb_stream *s)
{
	vb_bias_forget(&s->in.lock);
	vb_bias_forget(&s->out.lock);
	vb_bias_forget(&s->poll);
}

int vb_stream_open(struct vb_stream *s, struct ibv_context *context, struct ibv_pd *pd,
		   const struct vb_stream_sizes *sizes)
{
	int err;

	memset(s, 0, sizeof(*s));
	s->sizes = *sizes;
	s->pd = pd;
	vb_stream_sizes_fit(&s->sizes);
	err = locks_init(s);
	if (!err)
		err = fit_device(s, context);
	if (!err)
		err = open_queue(s, context);
	if (!err)
		err = open_buffers(s);
	if (err)
		vb_stream_close(s);
	return err;
}

void vb_stream_close(struct vb_stream *s)
{
	vb_stream_iomaps_close(s);
	if (s->in.mr)
		ibv_dereg_mr(s->in.mr);
	if (s->out.mr)
		ibv_dereg_mr(s->out.mr);
	if (s->in.buffer)
		munmap(s->in.buffer, in_mapped(s));
	if (s->out.buffer)
		munmap(s->out.buffer, out_mapped(s));
	if (s->cq) {
		ibv_ack_cq_events(s->cq, s->unacked);
		ibv_destroy_cq(s->cq);
	}
	if (s->channel)
		ibv_destroy_comp_channel(s->channel);
	free(s->arrived.lengths);
	locks_end(s);
	memset(s, 0, sizeof(*s));
}

void vb_stream_qp_attr(struct vb_stream *s, struct ibv_qp_init_attr *attr)
{
	*attr = (struct ibv_qp_init_attr){
		.qp_context = s,
		.send_cq = s->cq,
		.recv_cq = s->cq,
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 0,
		.cap =
			{
				.max_send_wr = s->sizes.send_queue,
				.max_recv_wr = receives(s),
				.max_send_sge = 2,
				.max_recv_sge = 1,
				.max_inline_data = s->sizes.inline_bytes,
			},
	};
}

int vb_stream_attach(struct vb_stream *s, struct ibv_qp *qp)
{
	s->qp = qp;
	for (int i = 0; i < VB_STREAM_BATCH; i++) {
		s->chain[i] = (struct ibv_recv_wr){
			.wr_id = vb_stream_wr_id(VB_STREAM_WR_RECEIVE, 0, 0),
			.next = i + 1 < VB_STREAM_BATCH ? &s->chain[i + 1] : NULL,
		};
	}
	for (uint32_t i = 0; i < receives(s); i++) {
		struct ibv_recv_wr wr = {.wr_id = s->chain[0].wr_id};
		struct ibv_recv_wr *bad;
		int err = ibv_post_recv(qp, &wr, &bad);

		if (err)
			return -err;
	}
	return 0;
}

void vb_stream_hello(const struct vb_stream *s, struct vb_rs_hello *hello)
{
	*hello = (struct vb_rs_hello){
		.big_endian = vb_rs_is_big_endian(),
		.iomap = true,
		.credits = s->sizes.receive_queue,
		.iomaps = s->sizes.iomaps,
		.target = {(uintptr_t)vb_stream_target(s), s->in.mr->rkey, VB_RS_SGES},
		.data = {(uintptr_t)s->in.buffer, s->in.mr->rkey, s->in.size / 2},
	};
}

int vb_stream_begin(struct vb_stream *s, const struct vb_rs_hello *peer)
{
	vb_lock_take(&s->out.lock);
	s->peer = *peer;
	s->peer_swapped = peer->big_endian != vb_rs_is_big_endian();
	s->out.target = peer->data;
	s->returned.limit = peer->credits;
	vb_lock_release(&s->out.lock);

	/*
	 * The peer has the first half by the connection data. The second one is free from the start,
	 * and so is half of the queue.
	 */
	vb_lock_take(&s->poll);
	s->arrived.halves = 1;
	__atomic_store_n(&s->begun, true, __ATOMIC_RELEASE);
	vb_stream_controls(s);
	vb_lock_release(&s->poll);
	return vb_stream_ends(s) & VB_STREAM_BROKEN ? s->error : 0;
}

void vb_stream_break(struct vb_stream *s, int error)
{
	int none = 0;

	__atomic_compare_exchange_n(&s->error, &none, error, false, __ATOMIC_RELAXED,
				    __ATOMIC_RELAXED);
	__atomic_or_fetch(&s->ends, VB_STREAM_BROKEN, __ATOMIC_RELEASE);
}

void vb_stream_lost(struct vb_stream *s, int error)
{
	/* What came before the end is read before it. */
	vb_stream_drain(s);
	if (error)
		vb_stream_break(s, error);
	else
		__atomic_or_fetch(&s->ends, VB_STREAM_PEER_LEFT, __ATOMIC_RELEASE);
}

static uint32_t ends_of(int how)
{
	switch (how) {
	case SHUT_RD:
		return VB_STREAM_NO_READ;
	case SHUT_WR:
		return VB_STREAM_NO_WRITE;
	default:
		return VB_STREAM_NO_READ | VB_STREAM_NO_WRITE;
	}
}

int vb_stream_shutdown(struct vb_stream *s, int how)
{
	const uint32_t both = VB_STREAM_NO_READ | VB_STREAM_NO_WRITE;
	uint32_t before, after;

	/* No message of the sending direction may follow the one that ends it. */
	vb_lock_take(&s->out.lock);
	vb_lock_take(&s->poll);
	before = __atomic_fetch_or(&s->ends, ends_of(how), __ATOMIC_RELEASE);
	after = before | ends_of(how);
	if ((after & both) == both && (before & both) != both)
		__atomic_store_n(&s->wanted, 1u << VB_RS_DISCONNECT, __ATOMIC_RELAXED);
	else if (after & ~before & VB_STREAM_NO_WRITE)
		__atomic_or_fetch(&s->wanted, 1u << VB_RS_SHUTDOWN, __ATOMIC_RELAXED);
	vb_stream_controls(s);
	vb_lock_release(&s->poll);
	vb_lock_release(&s->out.lock);
	return 0;
}
