/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Connecting streams by hand. */
#include "pair.h"

#include <string.h>

#include "support/check.h"
#include "support/process.h"

enum { FIRST_PSN = 0xfffff0, QUIET_TURNS = 200 };

struct vb_stream_sizes end_sizes(void)
{
	return (struct vb_stream_sizes){
		.send_queue = 384,
		.receive_queue = 384,
		.inline_bytes = 64,
		.send_buffer = 131072,
		.receive_buffer = 131072,
		.iomaps = 8,
	};
}

void end_open(struct end *end, struct resources *r, const struct vb_stream_sizes *sizes)
{
	struct ep_config config = ep_defaults(IBV_QPT_RC);
	struct ibv_qp_init_attr attr;

	memset(end, 0, sizeof(*end));
	CHECK_ZERO(vb_stream_open(&end->stream, r->context, r->pd, sizes));
	vb_stream_qp_attr(&end->stream, &attr);
	end->qp = ibv_create_qp(r->pd, &attr);
	CHECK(end->qp);
	ep_init_qp(end->qp, &config);
	CHECK_ZERO(vb_stream_attach(&end->stream, end->qp));
	vb_stream_hello(&end->stream, &end->hello);
	end->local = (struct peer){
		.gid = r->gid, .qpn = end->qp->qp_num, .psn = FIRST_PSN, .mtu = r->mtu};
}

void end_connect(struct end *end, struct resources *r, const struct peer *peer)
{
	struct ep_config config = ep_defaults(IBV_QPT_RC);
	struct endpoint ep = {.config = config, .qp = end->qp, .resources = r, .local = end->local};

	ep.config.sgid_index = (uint8_t)r->gid_index;
	ep.config.mtu = r->mtu;
	ep_connect(&ep, peer);
}

void end_close(struct end *end)
{
	CHECK_ZERO(ibv_destroy_qp(end->qp));
	vb_stream_close(&end->stream);
}

void ends_link(struct end *a, struct end *b, struct resources *r,
	       const struct vb_stream_sizes *sizes)
{
	end_open(a, r, sizes);
	end_open(b, r, sizes);
	end_connect(a, r, &b->local);
	end_connect(b, r, &a->local);
	CHECK_ZERO(vb_stream_begin(&a->stream, &b->hello));
	CHECK_ZERO(vb_stream_begin(&b->stream, &a->hello));
	ends_settle(a, b);
}

void end_exchange(struct end *end, struct resources *r, int sock)
{
	struct vb_rs_hello hello;
	struct peer peer;

	message_swap(sock, &end->local, &peer, sizeof(peer));
	message_swap(sock, &end->hello, &hello, sizeof(hello));
	end_connect(end, r, &peer);
	message_meet(sock);
	CHECK_ZERO(vb_stream_begin(&end->stream, &hello));
}

void ends_settle(struct end *a, struct end *b)
{
	for (int quiet = 0; quiet < QUIET_TURNS; quiet++) {
		if (vb_stream_progress(&a->stream) | vb_stream_progress(&b->stream))
			quiet = 0;
	}
}

ssize_t end_send(struct end *end, const void *data, size_t length)
{
	struct iovec iov = {(void *)data, length};

	return vb_stream_send(&end->stream, &iov, 1, 0);
}

ssize_t end_receive(struct end *end, void *data, size_t length)
{
	struct iovec iov = {data, length};

	return vb_stream_receive(&end->stream, &iov, 1, 0, false);
}
