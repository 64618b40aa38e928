/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Parent domains: ibv_alloc_parent_domain(3). */
#include <errno.h>
#include <stdlib.h>

#include "base/reason.h"
#include "object/context.h"
#include "object/passport.h"
#include "object/pd.h"
#include "object/td.h"

/*
 * Unprotected memory matters in a confidential guest with a real adapter. Here all memory serves,
 * so the wish is accepted and changes nothing.
 */
#define KNOWN_MASK                                           \
	((uint32_t)(IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS | \
		    IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT | \
		    IBV_PARENT_DOMAIN_INIT_ATTR_ALLOW_CC_UNPROTECTED_ALLOC))

static int check(const struct ibv_parent_domain_init_attr *attr)
{
	if (attr->comp_mask & ~KNOWN_MASK)
		return vb_refuse(EINVAL, VB_REASON_ARG_MASK, "alloc_parent_domain: comp_mask 0x%x",
				 attr->comp_mask);
	if (!attr->pd)
		return vb_refuse(EINVAL, VB_REASON_ARG, "alloc_parent_domain: no pd");
	if ((attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS) &&
	    (!attr->alloc || !attr->free))
		return vb_refuse(EINVAL, VB_REASON_ARG, "alloc_parent_domain: %s is NULL",
				 attr->alloc ? "free" : "alloc");
	return 0;
}

static void fill(struct vb_pd *p, const struct ibv_parent_domain_init_attr *attr)
{
	p->id = vb_pd_of(attr->pd)->id;
	p->base = attr->pd;
	if (attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS) {
		p->alloc = attr->alloc;
		p->free = attr->free;
	}
	if (attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT)
		p->pd_context = attr->pd_context;
}

int vb_parent_domain_alloc(struct ibv_context *ctx, const struct ibv_parent_domain_init_attr *attr,
			   struct ibv_pd **pd)
{
	int err = check(attr);
	struct vb_pd *p;

	if (err)
		return err;
	err = vb_pd_get(ctx, attr->pd);
	if (err)
		return err;
	err = attr->td ? vb_td_get(ctx, attr->td) : 0;
	if (err)
		goto put_pd;
	p = calloc(1, sizeof(*p));
	err = p ? 0 : vb_refuse(ENOMEM, VB_REASON_NO_MEMORY, "no memory for a parent domain");
	if (err)
		goto put_td;
	fill(p, attr);
	p->td = attr->td ? vb_td_of(attr->td) : NULL;
	p->pd.context = ctx;
	err = vb_context_add(ctx, VB_HANDLE_PD, p, &p->pd.handle);
	if (!err) {
		vb_passport_put_pd(vb_context_of(ctx)->passport, p->pd.handle, p->id);
		*pd = &p->pd;
		return 0;
	}
	free(p);
put_td:
	if (attr->td)
		vb_td_put(vb_td_of(attr->td));
put_pd:
	vb_pd_put(attr->pd);
	return err;
}
