/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Events of the node for the engines: channels that came and went, peers that ended. */
#include "engine/await.h"
#include "engine/drive.h"
#include "engine/engine.h"
#include "engine/engine_channel.h"
#include "engine/engines.h"
#include "engine/progress_thread.h"
#include "host/channel.h"
#include "process/process.h"

#define LAST_BATCHES 64u

struct lost {
	struct vb_channel *channel; /* this channel, or */
	struct vb_peer *peer;       /* all channels of this peer */
};

static void lose_peer(struct vb_engine *engine, const struct vb_peer *peer)
{
	struct vb_channel *next;

	for (struct vb_channel *c = vb_channel_list_first(&engine->channels); c; c = next) {
		next = vb_channel_list_next(&engine->channels, c);
		if (c->peer == peer)
			vb_engine_lose_channel(engine, c, true);
	}
}

static void lose_channels(struct vb_engine *engine, void *arg)
{
	const struct lost *lost = arg;

	vb_engine_take(engine);
	/* What the peer sent before it ended is delivered; a ring holds several batches. */
	for (uint32_t i = 0; i < LAST_BATCHES && vb_engine_drive(engine); i++)
		;
	if (lost->channel && lost->channel->listed)
		vb_engine_lose_channel(engine, lost->channel, false);
	else if (lost->peer)
		lose_peer(engine, lost->peer);
	vb_engine_drive(engine);
	vb_lock_release(&engine->lock);
}

static void channel_down(uint32_t index, struct vb_channel *channel)
{
	struct lost lost = {.channel = channel};
	struct vb_engine *engine = vb_engines_hold(index);

	if (!engine)
		return;
	lose_channels(engine, &lost);
	vb_engines_release(engine);
}

static void peer_gone(struct vb_peer *peer)
{
	struct lost lost = {.peer = peer};

	vb_process_each_engine(lose_channels, &lost);
}

static void contact_changed(void)
{
	vb_await_news(vb_process_node_started());
}

static void at_exit(void)
{
	vb_engines_each_at_exit(vb_engine_at_exit);
}

VB_PROCESS_HOOK(.channel_up = vb_engines_adopt, .channel_down = channel_down,
		.peer_gone = peer_gone, .contact_changed = contact_changed,
		.pass_through = vb_engines_pass_through, .at_exit = at_exit,
		.progress = vb_progress_main);
