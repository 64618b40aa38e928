/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What is asked of a queue pair besides its work: connection options (ECE), the order of data, an
 * alternate path.
 */
#include <string.h>

#include <infiniband/verbs.h>

#include "support/check.h"
#include "support/endpoint.h"

static void options(struct endpoint *ep)
{
	struct ibv_ece ece = {.vendor_id = 9, .options = 9, .comp_mask = 9}, given;
	uint32_t handle = ep->qp->handle;

	expect_case("ECE: what is set");
	EXPECT_EQ(ibv_query_ece(ep->qp, &ece), 0);
	EXPECT(ece.vendor_id != 0 && ece.options == 0 && ece.comp_mask == 0);
	expect_case("ECE: of a vendor whose options are not known, none is accepted");
	given = (struct ibv_ece){.vendor_id = 0x2c9, .options = 0x30000002};
	EXPECT_EQ(ibv_set_ece(ep->qp, &given), 0);
	EXPECT(given.vendor_id == ece.vendor_id && given.options == 0);
	expect_case("ECE: refused, and nothing stored");
	given = (struct ibv_ece){.vendor_id = 3, .options = 4, .comp_mask = 1};
	EXPECT_REFUSED(ibv_set_ece(ep->qp, &given), EINVAL);
	given.comp_mask = 1u << 31;
	EXPECT_REFUSED(ibv_set_ece(ep->qp, &given), EINVAL);
	EXPECT(given.vendor_id == 3 && given.options == 4 && given.comp_mask == 1u << 31);
	given.comp_mask = 0;
	EXPECT_REFUSED(ibv_set_ece(ep->qp, NULL), EINVAL);
	EXPECT_REFUSED(ibv_query_ece(ep->qp, NULL), EINVAL);
	ep->qp->handle = 0xdeadbeef;
	EXPECT_REFUSED(ibv_query_ece(ep->qp, &given), ENOENT);
	EXPECT_REFUSED(ibv_set_ece(ep->qp, &given), ENOENT);
	EXPECT(given.vendor_id == 3 && given.options == 4);
	ep->qp->handle = handle;
}

/*
 * 0 also stands for "not known": nothing is promised but that the last word comes last, which no
 * flag says.
 */
static void order(struct endpoint *ep)
{
	const uint32_t known = IBV_QUERY_QP_DATA_IN_ORDER_RETURN_CAPS |
			       IBV_QUERY_QP_DATA_IN_ORDER_DEVICE_ONLY;

	for (uint32_t flags = 0; flags <= known; flags++) {
		for (int op = IBV_WR_RDMA_WRITE; op <= IBV_WR_ATOMIC_WRITE; op++) {
			int bits =
				ibv_query_qp_data_in_order(ep->qp, (enum ibv_wr_opcode)op, flags);

			expect_case("data in order: opcode %d, flags %u", op, flags);
			EXPECT(bits >= 0);
			if (flags & IBV_QUERY_QP_DATA_IN_ORDER_RETURN_CAPS)
				EXPECT(!(bits & IBV_QUERY_QP_DATA_IN_ORDER_WHOLE_MSG) ||
				       (bits & IBV_QUERY_QP_DATA_IN_ORDER_ALIGNED_128_BYTES));
			else
				EXPECT(bits <= 1);
		}
	}
	expect_case("data in order: what cannot be answered is 0 with errno");
	for (int bit = 2; bit < 32; bit++) {
		errno = 0;
		EXPECT_EQ(ibv_query_qp_data_in_order(ep->qp, IBV_WR_SEND, 1u << bit), 0);
		EXPECT_EQ(errno, EOPNOTSUPP);
	}
	errno = 0;
	EXPECT_EQ(ibv_query_qp_data_in_order(NULL, IBV_WR_SEND, 0), 0);
	EXPECT_EQ(errno, EINVAL);
}

/*
 * No path migration is reported, so an alternate path is refused and nothing of the call takes
 * effect.
 */
static void alternate_path(struct endpoint *ep)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS,
		.alt_ah_attr = {.is_global = 1, .port_num = 1, .grh = {.dgid = ep->local.gid}},
		.alt_port_num = 1,
		.alt_timeout = 14,
		.min_rnr_timer = 9,
	};
	struct ibv_device_attr device;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr found;

	expect_case("alternate path");
	CHECK(!ibv_query_device(ep->context, &device));
	EXPECT(!(device.device_cap_flags & IBV_DEVICE_AUTO_PATH_MIG));
	ep_link(ep, ep);
	EXPECT_EQ(ep_modify(ep, &attr, IBV_QP_STATE | IBV_QP_ALT_PATH | IBV_QP_MIN_RNR_TIMER),
		  EINVAL);
	EXPECT_EQ(ibv_query_qp(ep->qp, &found, IBV_QP_MIN_RNR_TIMER, &init), 0);
	EXPECT(found.min_rnr_timer != 9);
	EXPECT_EQ(found.path_mig_state, IBV_MIG_MIGRATED);
}

int main(int argc, char **argv)
{
	struct ep_config config = ep_defaults(IBV_QPT_RC);
	struct endpoint ep;

	ep_main(argc, argv);
	ep_open(&ep, &config, EP_HERE);
	options(&ep);
	order(&ep);
	alternate_path(&ep);
	ep_close(&ep);
	return expect_done();
}
