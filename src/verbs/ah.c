/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Address handles: ibv_create_ah(3), ibv_init_ah_from_wc(3), ibv_create_ah_from_wc(3). */
#include "verbs/ah_from_wc.h"
#include "verbs/face.h"
#include "verbs/gid.h"

VB_EXPORT struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	struct ibv_ah *ah = NULL;
	int err;

	if (!pd || !attr)
		return vb_answer_null(vb_refuse_null("create_ah", pd ? "attr" : "pd"));
	err = vb_ops(pd->context)->create_ah(pd, attr, &ah);
	return err ? vb_answer_null(err) : ah;
}

VB_EXPORT int ibv_destroy_ah(struct ibv_ah *ah)
{
	if (!ah)
		return vb_answer(vb_refuse_null("destroy_ah", "ah"));
	return vb_answer(vb_ops(ah->context)->destroy_ah(ah));
}

static int init_from_wc(struct ibv_context *ctx, uint8_t port, const struct ibv_wc *wc,
			const struct ibv_grh *grh, struct ibv_ah_attr *attr)
{
	struct vb_wc_route route;
	int err, index;

	if (!ctx || !wc || (!grh && (wc->wc_flags & IBV_WC_GRH)))
		return vb_refuse_null("init_ah_from_wc", "an argument");
	vb_ah_attr_local(wc, port, attr);
	if (!(wc->wc_flags & IBV_WC_GRH))
		return 0;
	err = vb_wc_route_parse(grh, &route);
	if (err)
		return err;
	index = vb_gid_find(ctx, port, &route.receiver, route.type);
	if (index < 0)
		return vb_refuse(
			-index, VB_REASON_ARG,
			"init_ah_from_wc: the message was not sent to an address of port %u", port);
	vb_ah_attr_global(&route, (uint8_t)index, attr);
	return 0;
}

VB_EXPORT int ibv_init_ah_from_wc(struct ibv_context *ctx, uint8_t port_num, struct ibv_wc *wc,
				  struct ibv_grh *grh, struct ibv_ah_attr *ah_attr)
{
	struct ibv_ah_attr attr = {0};
	int err;

	if (!ah_attr)
		return vb_answer_minus_one(vb_refuse_null("init_ah_from_wc", "ah_attr"));
	err = init_from_wc(ctx, port_num, wc, grh, &attr);
	if (!err)
		*ah_attr = attr;
	return vb_answer_minus_one(err);
}

VB_EXPORT struct ibv_ah *ibv_create_ah_from_wc(struct ibv_pd *pd, struct ibv_wc *wc,
					       struct ibv_grh *grh, uint8_t port_num)
{
	struct ibv_ah_attr attr = {0};
	int err;

	if (!pd)
		return vb_answer_null(vb_refuse_null("create_ah_from_wc", "pd"));
	err = init_from_wc(pd->context, port_num, wc, grh, &attr);
	return err ? vb_answer_null(err) : ibv_create_ah(pd, &attr);
}

/* The network stack sends the frames: there is no MAC address to resolve. */
VB_EXPORT int ibv_resolve_eth_l2_from_gid(struct ibv_context *ctx, struct ibv_ah_attr *attr,
					  uint8_t eth_mac[ETHERNET_LL_SIZE], uint16_t *vid)
{
	(void)ctx;
	(void)attr;
	(void)eth_mac;
	(void)vid;
	return vb_answer(vb_refuse_verb("resolve_eth_l2_from_gid"));
}
