/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Protection domains and parent domains. A parent domain is a protection domain with the identity
 * of the one that it was made of, and with a thread domain and allocators added (parent_domain.c).
 */
#ifndef VB_OBJECT_PD_H
#define VB_OBJECT_PD_H

#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct vb_td;

struct vb_pd {
	struct ibv_pd pd;
	/*
	 * Never 0: keys and queue pairs are compared by it; unique in the process but for parent
	 * domains.
	 */
	uint32_t id;
	_Atomic uint32_t users; /* MRs, QPs, SRQs, AHs, CQs and parent domains on it */
	/* Parent domains only. */
	struct ibv_pd *base; /* NULL: not a parent domain */
	struct vb_td *td;    /* or NULL */
	void *(*alloc)(struct ibv_pd *pd, void *pd_context, size_t size, size_t alignment,
		       uint64_t resource_type); /* NULL: no allocators */
	void (*free)(struct ibv_pd *pd, void *pd_context, void *ptr, uint64_t resource_type);
	void *pd_context;
};

static inline struct vb_pd *vb_pd_of(struct ibv_pd *pd)
{
	return (struct vb_pd *)(void *)pd;
}

/* A parent domain equals its protection domain. */
static inline bool vb_pd_same(struct ibv_pd *a, struct ibv_pd *b)
{
	return vb_pd_of(a)->id == vb_pd_of(b)->id;
}

/*
 * The domain that a parent domain stands for; any other is its own. Regions and windows name it as
 * their pd: the inline ibv_bind_mw(3) of rdma-core's header compares the two.
 */
static inline struct ibv_pd *vb_pd_own(struct ibv_pd *pd)
{
	while (vb_pd_of(pd)->base)
		pd = vb_pd_of(pd)->base;
	return pd;
}

/* Checks the handle, then counts one more user. -ENOENT. */
int vb_pd_get(struct ibv_context *ctx, struct ibv_pd *pd);
void vb_pd_put(struct ibv_pd *pd);

/* A number that no domain has or gets: for keys that no queue pair may use. */
uint32_t vb_pd_number(void);

int vb_pd_alloc(struct ibv_context *ctx, struct ibv_pd **pd);
int vb_pd_dealloc(struct ibv_pd *pd);

/* ibv_alloc_parent_domain(3); freed by vb_pd_dealloc(). */
int vb_parent_domain_alloc(struct ibv_context *ctx, const struct ibv_parent_domain_init_attr *attr,
			   struct ibv_pd **pd);

struct vb_object_type;
extern const struct vb_object_type vb_pd_type;

#endif
