/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Thread domains. The queue pairs of one thread domain share an engine, and the locks of all
 * objects on it lean towards the thread that uses them (base/bias.h). That thread takes them
 * without an atomic operation; other threads may use them as well.
 */
#ifndef VB_OBJECT_TD_H
#define VB_OBJECT_TD_H

#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdint.h>

struct vb_engine;

struct vb_td {
	struct ibv_td td;
	uint32_t handle;
	uint32_t users; /* parent domains; under the context's lock */
	pthread_mutex_t lock;
	/* Made with the first queue pair (engine/td_engine.h). Ends with the domain. */
	struct vb_engine *engine;
	void (*engine_end)(struct vb_engine *engine);
};

static inline struct vb_td *vb_td_of(struct ibv_td *td)
{
	return (struct vb_td *)(void *)td;
}

int vb_td_alloc(struct ibv_context *ctx, struct ibv_td **td);
int vb_td_dealloc(struct ibv_td *td);

/* Counts a parent domain as a user. -EINVAL: of another context. */
int vb_td_get(struct ibv_context *ctx, struct ibv_td *td);
void vb_td_put(struct vb_td *td);

struct vb_object_type;
extern const struct vb_object_type vb_td_type;

#endif
