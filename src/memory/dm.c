/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Device memory: allocation within max_dm_size, copies, regions. */
#include "memory/dm.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/lock.h"
#include "base/reason.h"
#include "object/context.h"
#include "device/device.h"
#include "memory/dmabuf.h"
#include "process/limits.h"
#include "memory/copy.h"
#include "memory/memory.h"
#include "memory/mr.h"
#include "object/passport.h"
#include "object/pd.h"
#include "process/process.h"
#include "host/arena.h"
#include "host/peer.h"

static int check_attr(const struct ibv_alloc_dm_attr *attr)
{
	if (attr->comp_mask)
		return vb_refuse(EINVAL, VB_REASON_ARG_MASK, "alloc_dm: unknown comp_mask 0x%x",
				 attr->comp_mask);
	if (!attr->length || attr->length > VB_MAX_DM_BYTES)
		return vb_refuse(EINVAL, attr->length ? VB_REASON_ARG_LIMIT : VB_REASON_ARG,
				 "alloc_dm: %zu bytes, max_dm_size is %llu", attr->length,
				 (unsigned long long)VB_MAX_DM_BYTES);
	/* At most a page. */
	if (attr->log_align_req > VB_MAX_DM_LOG_ALIGN)
		return vb_refuse(EINVAL, VB_REASON_ARG_LIMIT,
				 "alloc_dm: alignment 2^%u, at most 2^%u", attr->log_align_req,
				 VB_MAX_DM_LOG_ALIGN);
	return 0;
}

static int charge(struct vb_device *device, size_t bytes)
{
	uint64_t before = atomic_fetch_add(&device->dm_bytes, bytes);

	if (before + bytes <= VB_MAX_DM_BYTES)
		return 0;
	atomic_fetch_sub(&device->dm_bytes, bytes);
	return vb_refuse(ENOMEM, VB_REASON_NO_MEMORY,
			 "alloc_dm: %zu bytes, %llu of %llu are in use", bytes,
			 (unsigned long long)before, (unsigned long long)VB_MAX_DM_BYTES);
}

static void key_publish(struct vb_dm *d, uint32_t pd)
{
	struct vb_key *k = d->entry;

	k->access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
		    IBV_ACCESS_REMOTE_ATOMIC;
	k->pd = pd;
	k->qpn = 0;
	k->start = 0;
	k->length = d->length;
	k->base = (uintptr_t)d->addr;
	k->kind = VB_KEY_REGION;
	k->windows = 0;
	__atomic_store_n(&k->key, d->key, __ATOMIC_RELEASE);
}

/* When it returns, no view of the memory is in use any more. */
static void key_withdraw(struct vb_dm *d)
{
	__atomic_store_n(&d->entry->key, 0, __ATOMIC_RELEASE);
	vb_process_quiesce(0, d->key);
	vb_node_key_free(d->node, d->key);
}

static int make(struct ibv_context *ctx, struct vb_dm *d, uint32_t log_align)
{
	struct vb_passport_dm pass = {.pd = vb_pd_number(), .length = d->length};
	int err = vb_process_node(&d->node);

	if (!err)
		err = vb_node_key_alloc(d->node, &d->key, &d->entry);
	if (err)
		return err;
	err = vb_piece_alloc(d->node, d->charged, log_align, &d->piece);
	if (err)
		goto fail;
	d->addr = d->piece.addr;
	d->dm.context = ctx;
	d->dm.comp_mask = IBV_DM_MASK_HANDLE;
	err = vb_context_add(ctx, VB_HANDLE_DM, d, &d->dm.handle);
	if (err) {
		vb_piece_free(d->node, &d->piece);
		goto fail;
	}
	key_publish(d, pass.pd);
	pass.key = d->key;
	pass.addr = (uintptr_t)d->addr;
	vb_context_be_reachable();
	vb_passport_put_dm(vb_context_of(ctx)->passport, d->dm.handle, &pass);
	return 0;
fail:
	vb_node_key_free(d->node, d->key);
	return err;
}

int vb_dm_alloc(struct ibv_context *ctx, const struct ibv_alloc_dm_attr *attr, struct ibv_dm **dm)
{
	struct vb_device *device = vb_context_of(ctx)->device;
	int err = check_attr(attr);

	if (err)
		return err;
	struct vb_dm *d = calloc(1, sizeof(*d));

	if (!d)
		return vb_refuse(ENOMEM, VB_REASON_NO_MEMORY, "no memory for a dm");
	d->length = attr->length;
	d->charged = vb_piece_bytes(attr->length, attr->log_align_req);
	err = charge(device, d->charged);
	if (!err) {
		err = make(ctx, d, attr->log_align_req);
		if (err)
			atomic_fetch_sub(&device->dm_bytes, d->charged);
	}
	if (err) {
		free(d);
		return err;
	}
	*dm = &d->dm;
	return 0;
}

/*
 * A view of memory of another process or of another context. Memory of another process is mapped
 * once more for as long as the view lasts. Its bytes outlive their owner, because they are shared
 * memory. Views that the owner itself makes use the owner's mapping.
 */
int vb_dm_import(struct ibv_context *ctx, const struct vb_foreign *view, uint64_t addr,
		 size_t length, struct ibv_dm **dm)
{
	struct vb_dm *d = calloc(1, sizeof(*d));
	int err = 0;

	if (!d)
		return vb_refuse(ENOMEM, VB_REASON_NO_MEMORY, "no memory for an imported dm");
	d->node = vb_process_node_started();
	d->imported = true;
	d->view = *view;
	d->length = length;
	d->addr = (char *)(uintptr_t)addr;
	d->dm.context = ctx;
	d->dm.comp_mask = IBV_DM_MASK_HANDLE;
	if (!vb_peer_is_self(view->owner)) {
		d->mapping = vb_arena_map_piece(view->owner, addr, length);
		d->addr = d->mapping;
		if (!d->mapping)
			err = vb_refuse(vb_peer_shares(view->owner) ? ENOMEM : EPERM,
					VB_REASON_NO_DIRECT_ACCESS, "import_dm: process %u %s",
					vb_peer_pid(view->owner),
					vb_peer_shares(view->owner)
						? "has memory that cannot be mapped here"
						: "gives this one no memory");
	}
	if (!err)
		err = vb_context_add(ctx, VB_HANDLE_DM, d, &d->dm.handle);
	if (err) {
		if (d->mapping)
			vb_arena_unmap_piece(d->mapping, length);
		free(d);
		return err;
	}
	*dm = &d->dm;
	return 0;
}

static const struct vb_passport_dm nothing;

/*
 * Registering and freeing exclude each other: the handle and the count of regions change together.
 */
static int detach(struct vb_context *c, struct vb_dm *d)
{
	int err;

	vb_mutex_take(&c->lock, VB_ORDER_CONTEXT);
	err = vb_context_check(&c->vctx.context, VB_HANDLE_DM, d->dm.handle, d, "dm");
	if (!err && atomic_load(&d->memory.users))
		err = vb_refuse(EBUSY, VB_REASON_BUSY, "free_dm: %u regions are registered on it",
				atomic_load(&d->memory.users));
	if (!err)
		err = vb_context_remove(&c->vctx.context, VB_HANDLE_DM, d->dm.handle, d);
	if (!err)
		vb_passport_put_dm(c->passport, d->dm.handle, &nothing);
	vb_mutex_release(&c->lock);
	return err;
}

static void give_back(struct vb_context *c, struct vb_dm *d)
{
	if (d->mapping)
		vb_arena_unmap_piece(d->mapping, d->length);
	if (d->imported) {
		vb_peer_part(d->node, d->view.owner);
	} else {
		key_withdraw(d);
		vb_piece_free(d->node, &d->piece);
	}
	atomic_fetch_sub(&c->device->dm_bytes, d->charged);
}

int vb_dm_free(struct ibv_dm *dm)
{
	struct vb_context *c = vb_context_of(dm->context);
	struct vb_dm *d = vb_dm_of(dm);
	int err = detach(c, d);

	if (err)
		return err;
	give_back(c, d);
	free(d);
	return 0;
}

/* Called when no region is left on the memory. */
static void end(struct vb_context *c, void *object, uint32_t handle)
{
	struct vb_dm *d = object;

	vb_context_remove(&c->vctx.context, VB_HANDLE_DM, handle, d);
	vb_passport_put_dm(c->passport, handle, &nothing);
	give_back(c, d);
	d->length = 0; /* every range is refused from now on */
}

int vb_dm_export(struct ibv_dm *dm)
{
	const struct vb_dm *d = vb_dm_of(dm);
	int err = vb_context_check(dm->context, VB_HANDLE_DM, dm->handle, dm, "dm_export");

	if (err)
		return err;
	if (d->imported)
		return vb_refuse(EOPNOTSUPP, VB_REASON_UNSUPPORTED,
				 "dm_export_dmabuf_fd: the memory is imported");
	/* A dma-buf consists of whole pages. */
	if (d->piece.slab)
		return vb_refuse(EOPNOTSUPP, VB_REASON_UNSUPPORTED,
				 "dm_export_dmabuf_fd: the memory shares a page with other");
	return vb_dmabuf_export(d->node, d->addr, d->length);
}

static bool in_range(const struct vb_dm *d, uint64_t offset, uint64_t length)
{
	return length <= d->length && offset <= d->length - length;
}

static int gone(const char *verb)
{
	return vb_refuse(ENODEV, VB_REASON_OWNER_GONE,
			 "%s: the imported memory was freed by its owner", verb);
}

/*
 * The view is judged again after the copy. A place in the arena is used again so late
 * (host/arena.c) that bytes which were copied while the owner freed its memory went into no other
 * memory.
 */
static int copy(struct vb_dm *d, uint64_t offset, void *host, size_t length, bool to)
{
	const char *verb = to ? "memcpy_to_dm" : "memcpy_from_dm";
	bool own = d->imported && !d->mapping;

	if (d->imported && !vb_foreign_current(&d->view))
		return gone(verb);
	if (own && to && !vb_mem_copy_in((uintptr_t)d->addr + offset, host, length))
		return gone(verb);
	if (own && !to && !vb_mem_copy_out(host, (uintptr_t)d->addr + offset, length))
		return gone(verb);
	if (!own && to)
		memcpy(d->addr + offset, host, length);
	if (!own && !to)
		memcpy(host, d->addr + offset, length);
	return !d->imported || vb_foreign_current(&d->view) ? 0 : gone(verb);
}

/*
 * Adapters copy device memory by words of 4 bytes. A program that runs here must run there, so the
 * same is demanded.
 */
int vb_dm_copy(struct ibv_dm *dm, uint64_t offset, void *host, size_t length, bool to)
{
	const char *verb = to ? "memcpy_to_dm" : "memcpy_from_dm";
	struct vb_dm *d = vb_dm_of(dm);

	if (d->node != vb_process_node_started())
		return vb_refuse(ENODEV, VB_REASON_FORKED, "%s: it is the parent's", verb);
	if (offset % 4 || length % 4)
		return vb_refuse(EINVAL, VB_REASON_ARG,
				 "%s: offset %llu and length %zu must be multiples of 4", verb,
				 (unsigned long long)offset, length);
	if (!in_range(d, offset, length))
		return vb_refuse(EFAULT, VB_REASON_ARG, "%s: %llu+%zu exceeds %zu bytes", verb,
				 (unsigned long long)offset, length, d->length);
	return length ? copy(d, offset, host, length, to) : 0;
}

/* The owner's key is judged at each use. */
static int register_view(struct ibv_pd *pd, struct vb_dm *d, uint64_t offset, size_t length,
			 unsigned int access, struct ibv_mr **mr)
{
	struct vb_foreign part = d->view;
	int err = vb_mr_check_access(&access);

	if (err)
		return err;
	part.part = true;
	part.offset = offset;
	part.length = length;
	part.access = access;
	vb_peer_hold(d->node, part.owner);
	err = vb_mr_import(pd, &part, length, &d->memory, mr);
	if (err)
		vb_peer_part(d->node, part.owner);
	return err;
}

int vb_dm_register(struct ibv_pd *pd, struct ibv_dm *dm, uint64_t offset, size_t length,
		   unsigned int access, struct ibv_mr **mr)
{
	struct vb_context *c = vb_context_of(dm->context);
	struct vb_dm *d = vb_dm_of(dm);
	int err;

	if (!(access & IBV_ACCESS_ZERO_BASED))
		return vb_refuse(EINVAL, VB_REASON_ARG, "reg_dm_mr: access 0x%x lacks ZERO_BASED",
				 access);
	if (access & (IBV_ACCESS_ON_DEMAND | IBV_ACCESS_HUGETLB))
		return vb_refuse(EINVAL, VB_REASON_ARG,
				 "reg_dm_mr: access 0x%x is for memory of the program", access);
	/*
	 * Peers would reach such memory through this process's address space only, where an atomic
	 * of theirs is not one of the processor.
	 */
	if (d->mapping && (access & IBV_ACCESS_REMOTE_ATOMIC))
		return vb_refuse(EOPNOTSUPP, VB_REASON_UNSUPPORTED,
				 "reg_dm_mr: REMOTE_ATOMIC on another process's device memory");
	vb_mutex_take(&c->lock, VB_ORDER_CONTEXT);
	err = dm->context == pd->context
		      ? vb_context_check(dm->context, VB_HANDLE_DM, dm->handle, dm, "reg_dm_mr")
		      : vb_refuse(ENOENT, VB_REASON_HANDLE,
				  "reg_dm_mr: memory and domain are of different contexts");
	if (!err && !in_range(d, offset, length))
		err = vb_refuse(EINVAL, VB_REASON_ARG, "reg_dm_mr: %llu+%zu exceeds %zu bytes",
				(unsigned long long)offset, length, d->length);
	if (!err)
		vb_provided_get(&d->memory);
	vb_mutex_release(&c->lock);
	if (err)
		return err;
	err = d->imported
		      ? register_view(pd, d, offset, length, access, mr)
		      : vb_mr_register_piece(pd, d->addr + offset, length, access, &d->memory, mr);
	if (err)
		vb_provided_put(&d->memory);
	return err;
}

const struct vb_object_type vb_dm_type = {
	.name = "dm",
	.limit = VB_MAX_DM,
	.end = end,
};
