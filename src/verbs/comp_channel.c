/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Completion channels: ibv_create_comp_channel(3), ibv_get_cq_event(3). */
#include "verbs/face.h"

VB_EXPORT struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *ctx)
{
	struct ibv_comp_channel *channel = NULL;
	int err = ctx ? vb_ops(ctx)->create_comp_channel(ctx, &channel)
		      : vb_refuse_null("create_comp_channel", "context");

	return err ? vb_answer_null(err) : channel;
}

VB_EXPORT int ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
	if (!channel)
		return vb_answer(vb_refuse_null("destroy_comp_channel", "channel"));
	return vb_answer(vb_ops(channel->context)->destroy_comp_channel(channel));
}

VB_EXPORT int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq,
			       void **cq_context)
{
	struct ibv_cq *found = NULL;
	void *found_context = NULL;
	int err;

	if (!channel || !cq || !cq_context)
		return vb_answer_minus_one(vb_refuse_null("get_cq_event", "an argument"));
	err = vb_ops(channel->context)->get_cq_event(channel, &found, &found_context);
	if (!err) {
		*cq = found;
		*cq_context = found_context;
	}
	return vb_answer_minus_one(err);
}
