/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Traffic on device memory and on buffers of ibv_alloc_buf: every operation, with it as the local
 * and as the remote side, offsets counted from the region's start, and nothing beyond the region.
 */
#include <string.h>

#include <infiniband/verbs.h>

#include "support/check.h"
#include "support/endpoint.h"

#define DM_BYTES 16384
#define AT       4096 /* where the region begins in the device memory */
#define LENGTH   8192 /* of the region */

#define FULL_ACCESS                                                                  \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC)

/*
 * A region of either kind, at the near end or the far one; `start` is its first address for work
 * requests.
 */
struct place {
	struct endpoint *ep;
	struct ibv_dm *dm;
	struct ibv_buf *buf;
	unsigned char *memory;
	struct ibv_mr *mr;
	uint64_t start;
};

static struct endpoint near, far;

static void place_make(struct place *p, struct endpoint *ep, bool device)
{
	struct ibv_alloc_dm_attr attr = {.length = DM_BYTES};

	memset(p, 0, sizeof(*p));
	p->ep = ep;
	if (device) {
		p->dm = ibv_alloc_dm(ep->context, &attr);
		CHECK(p->dm);
		p->mr = ibv_reg_dm_mr(ep->pd, p->dm, AT, LENGTH,
				      FULL_ACCESS | IBV_ACCESS_ZERO_BASED);
	} else {
		p->memory = ibv_alloc_buf(ep->pd, DM_BYTES, &p->buf);
		CHECK(p->memory);
		p->mr = ibv_reg_buf_mr(ep->pd, p->buf, p->memory + AT, LENGTH, FULL_ACCESS);
		p->start = (uintptr_t)p->memory + AT;
	}
	CHECK(p->mr);
}

static void place_close(struct place *p)
{
	EXPECT_EQ(ibv_dereg_mr(p->mr), 0);
	if (p->dm)
		EXPECT_EQ(ibv_free_dm(p->dm), 0);
	if (p->buf)
		ibv_free_buf(p->buf);
}

/* Of the region: offset and length in words of 4 bytes. */
static void place_get(struct place *p, size_t offset, void *data, size_t length)
{
	if (p->dm)
		CHECK(ibv_memcpy_from_dm(data, p->dm, AT + offset, length) == 0);
	else
		memcpy(data, p->memory + AT + offset, length);
}

static void place_put(struct place *p, size_t offset, const void *data, size_t length)
{
	if (p->dm)
		CHECK(ibv_memcpy_to_dm(p->dm, AT + offset, data, length) == 0);
	else
		memcpy(p->memory + AT + offset, data, length);
}

static bool place_is(struct place *p, size_t offset, int byte, size_t length)
{
	static unsigned char bytes[DM_BYTES];

	place_get(p, offset, bytes, length);
	for (size_t i = 0; i < length; i++) {
		if (bytes[i] != byte)
			return false;
	}
	return true;
}

static void place_fill(struct place *p, size_t offset, int byte, size_t length)
{
	static unsigned char bytes[DM_BYTES];

	memset(bytes, byte, length);
	place_put(p, offset, bytes, length);
}

static struct ibv_sge sge_of(const struct place *p, uint64_t offset, uint32_t length)
{
	return (struct ibv_sge){.addr = p->start + offset, .length = length, .lkey = p->mr->lkey};
}

static int request(struct endpoint *from, enum ibv_wr_opcode opcode, struct ibv_sge *sge,
		   uint64_t addr, uint32_t rkey)
{
	struct ibv_send_wr wr = ep_wr(opcode, 7, sge, 1);

	ep_target(&wr, addr, rkey);
	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || opcode == IBV_WR_ATOMIC_CMP_AND_SWP) {
		wr.wr.atomic.compare_add = 5;
		wr.wr.atomic.swap = 99;
	}
	return ep_run(from, &wr);
}

static void mend(void)
{
	ep_relink(&near, &far);
	while (ep_wait_event(&far, IBV_EVENT_QP_ACCESS_ERR, 5))
		;
}

/* The far side's memory as the target. */
static void remote(bool device)
{
	const char *name = device ? "device memory" : "a buffer";
	struct ibv_sge sge;
	struct place p;
	uint64_t word;

	place_make(&p, &far, device);
	for (uint32_t length = 1; length <= LENGTH; length = length * 3 + 1) {
		expect_case("%s: WRITE and READ of %u bytes", name, length);
		place_fill(&p, 0, 0, LENGTH);
		sge = ep_sge(&near, 0, length);
		ep_fill(&near, 0, 0x41, length);
		EXPECT_STATUS(request(&near, IBV_WR_RDMA_WRITE, &sge, p.start, p.mr->rkey),
			      IBV_WC_SUCCESS);
		EXPECT(place_is(&p, 0, 0x41, length / 4 * 4));
		ep_fill(&near, 0, 0, LENGTH);
		EXPECT_STATUS(request(&near, IBV_WR_RDMA_READ, &sge, p.start, p.mr->rkey),
			      IBV_WC_SUCCESS);
		EXPECT(ep_is_filled(&near, 0, 0x41, length));
		EXPECT(ep_is_filled(&near, length, 0, 16));
	}
	expect_case("%s: atomics", name);
	word = 1000;
	place_put(&p, 16, &word, 8);
	sge = ep_sge(&near, 0, 8);
	EXPECT_STATUS(request(&near, IBV_WR_ATOMIC_FETCH_AND_ADD, &sge, p.start + 16, p.mr->rkey),
		      IBV_WC_SUCCESS);
	ep_peek(&near, 0, &word, 8);
	EXPECT_EQ(word, 1000);
	place_get(&p, 16, &word, 8);
	EXPECT_EQ(word, 1005);
	EXPECT_STATUS(request(&near, IBV_WR_ATOMIC_CMP_AND_SWP, &sge, p.start + 16, p.mr->rkey),
		      IBV_WC_SUCCESS);
	ep_peek(&near, 0, &word, 8);
	EXPECT_EQ(word, 1005);
	word = 5;
	place_put(&p, 16, &word, 8);
	EXPECT_STATUS(request(&near, IBV_WR_ATOMIC_CMP_AND_SWP, &sge, p.start + 16, p.mr->rkey),
		      IBV_WC_SUCCESS);
	place_get(&p, 16, &word, 8);
	EXPECT_EQ(word, 99);
	expect_case("%s: one byte beyond the region", name);
	sge = ep_sge(&near, 0, 8);
	EXPECT_STATUS(request(&near, IBV_WR_RDMA_WRITE, &sge, p.start + LENGTH - 7, p.mr->rkey),
		      IBV_WC_REM_ACCESS_ERR);
	mend();
	place_close(&p);
}

/*
 * As the near side's memory: source of SEND and WRITE, sink of READ and atomics; and as a receive
 * buffer.
 */
static void local(bool device)
{
	const char *name = device ? "device memory" : "a buffer";
	struct place near_place, far_place;
	struct ibv_sge sge, into;
	struct ibv_wc wc;
	uint64_t word = 77;

	place_make(&near_place, &near, device);
	place_make(&far_place, &far, device);
	expect_case("%s: SEND from it into it", name);
	place_fill(&near_place, 0, 0x51, 6000);
	into = sge_of(&far_place, 100, 6000);
	CHECK(ep_post_recv(&far, 3, &into, 1) == 0);
	sge = sge_of(&near_place, 0, 6000);
	EXPECT_STATUS(request(&near, IBV_WR_SEND, &sge, 0, 0), IBV_WC_SUCCESS);
	EXPECT_STATUS(ep_poll_one(&far, EP_RECV_CQ, &wc), IBV_WC_SUCCESS);
	EXPECT(place_is(&far_place, 100, 0x51, 6000));
	EXPECT(place_is(&far_place, 6100, 0, 100));
	expect_case("%s: WRITE from it", name);
	EXPECT_STATUS(request(&near, IBV_WR_RDMA_WRITE, &sge, far.local.addr, far.local.rkey),
		      IBV_WC_SUCCESS);
	EXPECT(ep_is_filled(&far, 0, 0x51, 6000));
	expect_case("%s: READ into it", name);
	ep_fill(&far, 0, 0x52, 6000);
	EXPECT_STATUS(request(&near, IBV_WR_RDMA_READ, &sge, far.local.addr, far.local.rkey),
		      IBV_WC_SUCCESS);
	EXPECT(place_is(&near_place, 0, 0x52, 6000));
	expect_case("%s: an atomic's old value into it", name);
	ep_poke(&far, 0, &word, 8);
	sge = sge_of(&near_place, 8, 8);
	EXPECT_STATUS(request(&near, IBV_WR_ATOMIC_FETCH_AND_ADD, &sge, far.local.addr,
			      far.local.rkey),
		      IBV_WC_SUCCESS);
	place_get(&near_place, 8, &word, 8);
	EXPECT_EQ(word, 77);
	expect_case("%s: beyond the region", name);
	sge = sge_of(&near_place, LENGTH - 4, 8);
	EXPECT_STATUS(request(&near, IBV_WR_RDMA_WRITE, &sge, far.local.addr, far.local.rkey),
		      IBV_WC_LOC_PROT_ERR);
	mend();
	place_close(&near_place);
	place_close(&far_place);
}

int main(int argc, char **argv)
{
	struct ep_config config = ep_defaults(IBV_QPT_RC);

	ep_main(argc, argv);
	ep_pair(&near, &far, &config, &config, EP_HERE);
	for (int device = 0; device < 2; device++) {
		remote(device);
		local(device);
	}
	ep_pair_close(&near, &far);
	return expect_done();
}
