/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A peer that breaks the protocol breaks its own connection and nothing else: more bytes than were
 * announced, messages without bytes, announcements of places that are in use, mappings beyond the
 * table. Operations of a later version are passed over.
 */
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "pair.h"
#include "rsocket/stream_private.h"
#include "support/check.h"

static struct resources r;

/* A message that the stream itself would not send. */
static void inject(struct end *from, uint32_t message, uint32_t bytes)
{
	struct ibv_sge sge = {(uintptr_t)from->stream.out.buffer, bytes, from->stream.out.mr->lkey};
	struct ibv_send_wr *bad, wr = {
					 .wr_id = vb_stream_wr_id(VB_STREAM_WR_CONTROL, 0, 0),
					 .sg_list = &sge,
					 .num_sge = bytes ? 1 : 0,
					 .opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
					 .send_flags = IBV_SEND_SIGNALED,
					 .imm_data = htobe32(message),
					 .wr.rdma.remote_addr = from->stream.peer.target.addr,
					 .wr.rdma.rkey = from->stream.peer.target.key,
				 };

	from->stream.controls++;
	CHECK_ZERO(ibv_post_send(from->qp, &wr, &bad));
}

static void row(const char *what, uint32_t message, uint32_t bytes, int times, bool breaks)
{
	struct vb_stream_sizes sizes = end_sizes();
	struct end a, b;
	char data[8];

	expect_case("%s", what);
	ends_link(&a, &b, &r, &sizes);
	for (int i = 0; i < times; i++) {
		inject(&a, message, bytes);
		ends_settle(&a, &b);
	}
	if (breaks) {
		EXPECT_EQ(vb_stream_ends(&b.stream), VB_STREAM_BROKEN);
		EXPECT_EQ(end_send(&b, "x", 1), -EPROTO);
	} else {
		EXPECT_EQ(vb_stream_ends(&b.stream), 0);
		EXPECT_EQ(end_send(&a, "x", 1), 1);
		ends_settle(&a, &b);
		EXPECT_EQ(end_receive(&b, data, sizeof(data)), 1);
	}
	end_close(&a);
	end_close(&b);
}

int main(void)
{
	resources_open(&r, 16, false);
	row("more bytes than the buffer has", vb_rs_message(VB_RS_DATA, 131073), 0, 1, true);
	row("the largest number of bytes", vb_rs_message(VB_RS_DATA, VB_RS_OPERAND_MAX), 0, 1,
	    true);
	row("a message of no bytes", vb_rs_message(VB_RS_DATA, 0), 0, 1, true);
	row("more messages than credits", vb_rs_message(VB_RS_DATA, 1), 0, 385, true);
	row("an announcement too many", vb_rs_message(VB_RS_SGL, 384), 16, 2, true);
	row("credits again", vb_rs_message(VB_RS_SGL, 384), 0, 5, false);
	row("a mapping beyond the table", vb_rs_message(VB_RS_IOMAP, 8), 0, 1, true);
	row("the last mapping of the table", vb_rs_message(VB_RS_IOMAP, 7), 0, 1, false);
	row("operations of a later version", vb_rs_message(1, 7), 0, 3, false);
	row("controls of a later version", vb_rs_message(VB_RS_CTRL, 77), 0, 3, false);
	row("keepalive with an immediate", vb_rs_message(VB_RS_CTRL, VB_RS_KEEPALIVE), 0, 3, false);
	resources_close(&r);
	return expect_done();
}
