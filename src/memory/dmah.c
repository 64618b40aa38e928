/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* DMA handles. */
#include "memory/dmah.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/reason.h"
#include "object/context.h"

#define KNOWN                                                                     \
	((uint32_t)(IBV_DMAH_INIT_ATTR_MASK_CPU_ID | IBV_DMAH_INIT_ATTR_MASK_PH | \
		    IBV_DMAH_INIT_ATTR_MASK_TPH_MEM_TYPE))
#define LARGEST_HINT 3 /* PCI Express: two bits */

struct vb_dmah {
	struct ibv_dmah dmah;
	uint32_t handle;
};

static int check_attr(const struct ibv_dmah_init_attr *attr)
{
	long cpus = sysconf(_SC_NPROCESSORS_CONF);

	if (attr->comp_mask & ~KNOWN)
		return vb_refuse(EINVAL, VB_REASON_ARG_MASK, "alloc_dmah: unknown comp_mask 0x%x",
				 attr->comp_mask & ~KNOWN);
	if ((attr->comp_mask & IBV_DMAH_INIT_ATTR_MASK_CPU_ID) && attr->cpu_id >= (uint64_t)cpus)
		return vb_refuse(EINVAL, VB_REASON_ARG, "alloc_dmah: processor %u of %ld",
				 attr->cpu_id, cpus);
	if ((attr->comp_mask & IBV_DMAH_INIT_ATTR_MASK_PH) && attr->ph > LARGEST_HINT)
		return vb_refuse(EINVAL, VB_REASON_ARG, "alloc_dmah: processing hint %u", attr->ph);
	if ((attr->comp_mask & IBV_DMAH_INIT_ATTR_MASK_TPH_MEM_TYPE) &&
	    attr->tph_mem_type > IBV_TPH_MEM_TYPE_PM)
		return vb_refuse(EINVAL, VB_REASON_ARG, "alloc_dmah: memory type %u",
				 attr->tph_mem_type);
	return 0;
}

int vb_dmah_alloc(struct ibv_context *ctx, const struct ibv_dmah_init_attr *attr,
		  struct ibv_dmah **dmah)
{
	int err = check_attr(attr);

	if (err)
		return err;
	struct vb_dmah *d = calloc(1, sizeof(*d));

	if (!d)
		return vb_refuse(ENOMEM, VB_REASON_NO_MEMORY, "no memory for a dmah");
	d->dmah.context = ctx;
	err = vb_context_add(ctx, VB_HANDLE_DMAH, d, &d->handle);
	if (err) {
		free(d);
		return err;
	}
	*dmah = &d->dmah;
	return 0;
}

static uint32_t handle_of(struct ibv_dmah *dmah)
{
	return ((struct vb_dmah *)(void *)dmah)->handle;
}

int vb_dmah_check(struct ibv_context *ctx, struct ibv_dmah *dmah)
{
	return vb_context_check(ctx, VB_HANDLE_DMAH, handle_of(dmah), dmah, "dmah");
}

int vb_dmah_dealloc(struct ibv_dmah *dmah)
{
	int err = vb_context_remove(dmah->context, VB_HANDLE_DMAH, handle_of(dmah), dmah);

	if (!err)
		free(dmah);
	return err;
}

const struct vb_object_type vb_dmah_type = {
	.name = "dmah",
	.limit = VB_MAX_DMAH,
};
