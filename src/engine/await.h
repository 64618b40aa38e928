/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Queue pairs that wait for contact with their peer. There may be thousands, of one engine or of
 * one each. So they do not ask again in each drive, but when there is news: a channel has come, or
 * the state of a contact has changed. All under the engine's lock, unless said.
 */
#ifndef VB_ENGINE_AWAIT_H
#define VB_ENGINE_AWAIT_H

#include <stdbool.h>

#include "engine/engine.h"
#include "engine/qp.h"

struct vb_node;

/* The queue pair waits from now on; it does so at most once. */
void vb_await_begin(struct vb_engine *engine, struct vb_qp *qp, enum vb_awaits what);
void vb_await_end(struct vb_engine *engine, struct vb_qp *qp);

/* What queue pairs that wait for contact have heard of since the last call. */
enum vb_await_news {
	VB_AWAIT_SILENCE,
	VB_AWAIT_NEWS, /* of some contact: those whose peer it is are to ask (vb_await_is_told) */
	VB_AWAIT_CALL, /* all are to ask */
};
enum vb_await_news vb_await_heard_slow(struct vb_engine *engine);
static inline enum vb_await_news vb_await_heard(struct vb_engine *e)
{
	return e->awaiting[VB_AWAITS_CONTACT - 1] ? vb_await_heard_slow(e) : VB_AWAIT_SILENCE;
}

/*
 * Whether there is news of the process that the queue pair waits for: with hundreds of peers most
 * news is of another one.
 */
bool vb_await_is_told(const struct vb_engine *engine, const struct vb_qp *qp);

/*
 * Any thread, without an engine's lock. The state of a contact has changed: engines with queue
 * pairs that wait for one are called.
 */
void vb_await_news(struct vb_node *node);
/*
 * Progress thread. Not every change is told, so those that wait also ask at growing intervals.
 * Returns when it is to be called again, 0: nobody waits.
 */
uint64_t vb_await_serve(struct vb_node *node, uint64_t now);

#endif
