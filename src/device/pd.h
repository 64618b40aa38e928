/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Protection domains. */
#ifndef VB_DEVICE_PD_H
#define VB_DEVICE_PD_H

#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdint.h>

struct vb_pd {
	struct ibv_pd pd;
	uint32_t id; /* unique in the process, never 0: what keys and queue pairs are compared by */
	_Atomic uint32_t users; /* MRs, QPs, SRQs, AHs made on it */
};

static inline struct vb_pd *vb_pd_of(struct ibv_pd *pd)
{
	return (struct vb_pd *)(void *)pd;
}

/* Checks the handle, then counts one more user. -ENOENT. */
int vb_pd_get(struct ibv_context *ctx, struct ibv_pd *pd);
void vb_pd_put(struct ibv_pd *pd);

int vb_pd_alloc(struct ibv_context *ctx, struct ibv_pd **pd);
int vb_pd_dealloc(struct ibv_pd *pd);

#endif
