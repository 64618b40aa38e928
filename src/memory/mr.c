/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Memory regions. */
#include "memory/mr.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/lock.h"
#include "base/reason.h"
#include "object/context.h"
#include "memory/foreign.h"
#include "memory/lasting.h"
#include "memory/mapping.h"
#include "host/arena.h"
#include "memory/mw.h"
#include "object/passport.h"
#include "object/pd.h"
#include "process/process.h"
#include "transport/access.h"

#define SUPPORTED_BITS                                                               \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED |     \
	 IBV_ACCESS_ON_DEMAND | IBV_ACCESS_HUGETLB | IBV_ACCESS_FLUSH_GLOBAL |       \
	 IBV_ACCESS_FLUSH_PERSISTENT)
#define REMOTE_CHANGE (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)

int vb_mr_check_access(unsigned int *access)
{
	unsigned int a = *access & ~(unsigned int)IBV_ACCESS_OPTIONAL_RANGE;

	if (a & ~(unsigned int)SUPPORTED_BITS)
		return vb_refuse(EINVAL, VB_REASON_ARG_MASK, "mr: unknown access flags 0x%x",
				 a & ~(unsigned int)SUPPORTED_BITS);
	if ((a & REMOTE_CHANGE) && !(a & IBV_ACCESS_LOCAL_WRITE))
		return vb_refuse(
			EINVAL, VB_REASON_ARG,
			"mr: REMOTE_WRITE and REMOTE_ATOMIC need LOCAL_WRITE (access 0x%x)", a);
	*access = a;
	return 0;
}

/* A range may end exactly at 2^64, not beyond; so for addr and iova. */
static bool wraps(uint64_t start, uint64_t length)
{
	return length && start + (length - 1) < start;
}

static int check_range(const void *addr, size_t length, uint64_t iova, unsigned int access,
		       bool *shared)
{
	bool writable = access & IBV_ACCESS_LOCAL_WRITE;
	uintptr_t bad;

	if (wraps((uintptr_t)addr, length) || wraps(iova, length))
		return vb_refuse(EINVAL, VB_REASON_ARG, "mr: %p or iova 0x%llx + %zu wraps", addr,
				 (unsigned long long)iova, length);
	/*
	 * Pages of an on-demand region come and go as the program maps them, so their kind is not
	 * known in advance.
	 */
	*shared = access & IBV_ACCESS_ON_DEMAND;
	if (!length || access & IBV_ACCESS_ON_DEMAND ||
	    !vb_mapping_check((uintptr_t)addr, length, writable, shared, &bad))
		return 0;
	return vb_refuse(EFAULT, VB_REASON_UNMAPPED, "mr: %p+%zu: not mapped %s at 0x%llx", addr,
			 length, writable ? "writable" : "readable", (unsigned long long)bad);
}

static void publish(struct vb_mr *m)
{
	struct vb_key *k = m->entry;

	k->access = m->access;
	k->pd = vb_pd_of(m->mr.pd)->id;
	k->qpn = 0;
	k->start = m->iova;
	k->length = m->mr.length;
	k->base = (uintptr_t)m->memory;
	k->kind = m->kind;
	k->windows = 0;
	k->shared = m->shared;
	k->lasting = 0;
	__atomic_store_n(&k->key, m->mr.lkey, __ATOMIC_RELEASE);
	/* The null region is no memory that another process could reach. */
	if (m->kind == VB_KEY_REGION)
		vb_passport_put_mr(vb_context_of(m->mr.context)->passport, m->mr.handle, m->mr.lkey,
				   k->pd, k->length);
}

/* No new access begins from here on. When it returns, the accesses that had begun are over. */
static void withdraw(struct vb_mr *m)
{
	vb_key_withdraw(m->entry);
	vb_process_quiesce(0, m->mr.lkey);
}

/* As withdraw(), unless windows are bound to the region (ibv_dereg_mr(3)). */
static int withdraw_unbound(struct vb_mr *m, const char *verb)
{
	if (!vb_mw_withdraw_region(m->entry))
		return vb_refuse(EBUSY, VB_REASON_BUSY, "%s: windows are bound to mr key 0x%x",
				 verb, m->mr.lkey);
	vb_process_quiesce(0, m->mr.lkey);
	return 0;
}

static int make(struct ibv_pd *pd, unsigned int access, struct vb_mr **mr)
{
	struct vb_node *node;
	struct vb_mr *m;
	int err = vb_process_node(&node);

	if (!err)
		err = vb_pd_get(pd->context, pd);
	if (err)
		return err;
	m = calloc(1, sizeof(*m));
	if (!m) {
		vb_pd_put(pd);
		return vb_refuse(ENOMEM, VB_REASON_NO_MEMORY, "no memory for an mr");
	}
	pthread_mutex_init(&m->lock, NULL);
	m->access = access;
	m->mr.context = pd->context;
	m->mr.pd = vb_pd_own(pd);
	m->given = pd;
	err = vb_node_key_alloc(node, &m->mr.lkey, &m->entry);
	if (!err) {
		err = vb_context_add(pd->context, VB_HANDLE_MR, m, &m->mr.handle);
		if (err)
			vb_node_key_free(node, m->mr.lkey);
	}
	if (err) {
		pthread_mutex_destroy(&m->lock);
		free(m);
		vb_pd_put(pd);
		return err;
	}
	m->mr.rkey = m->mr.lkey;
	*mr = m;
	return 0;
}

/* The region's key was never valid. */
static void unmake(struct vb_mr *m)
{
	vb_context_remove(m->mr.context, VB_HANDLE_MR, m->mr.handle, m);
	vb_node_key_free(vb_process_node_started(), m->mr.lkey);
	vb_pd_put(m->given);
	pthread_mutex_destroy(&m->lock);
	free(m);
}

int vb_mr_register(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned int access,
		   struct ibv_mr **mr)
{
	struct vb_mr *m = NULL;
	bool shared = false;
	int err = vb_mr_check_access(&access);

	if (access & IBV_ACCESS_ZERO_BASED)
		iova = 0;
	if (!err)
		err = check_range(addr, length, iova, access, &shared);
	if (!err)
		err = make(pd, access, &m);
	if (err)
		return err;
	err = vb_arena_present(vb_process_node_started(), addr, length);
	if (err) {
		unmake(m);
		return err;
	}
	m->mr.addr = addr;
	m->memory = addr;
	m->mr.length = length;
	m->iova = iova;
	m->shared = shared;
	publish(m);
	*mr = &m->mr;
	return 0;
}

void vb_mr_lasts(struct ibv_mr *mr)
{
	__atomic_store_n(&vb_mr_of(mr)->entry->lasting, 1, __ATOMIC_RELAXED);
}

int vb_mr_register_piece(struct ibv_pd *pd, void *memory, size_t length, unsigned int access,
			 struct vb_provided *provided, struct ibv_mr **mr)
{
	struct vb_mr *m = NULL;
	int err = vb_mr_check_access(&access);

	if (!err)
		err = make(pd, access, &m);
	if (err)
		return err;
	m->memory = memory;
	m->mr.length = length;
	m->provided = provided;
	publish(m);
	*mr = &m->mr;
	return 0;
}

int vb_mr_import(struct ibv_pd *pd, const struct vb_foreign *record, size_t length,
		 struct vb_provided *provided, struct ibv_mr **mr)
{
	struct vb_mr *m = NULL;
	int err = make(pd, 0, &m);

	if (err)
		return err;
	err = vb_foreign_add(m->mr.lkey, record);
	if (err) {
		unmake(m);
		return err;
	}
	m->foreign = true;
	m->provided = provided;
	m->mr.length = length;
	m->entry->kind = VB_KEY_FOREIGN;
	m->entry->pd = vb_pd_of(pd)->id;
	m->entry->qpn = 0;
	m->entry->length = 0;
	m->entry->windows = 0;
	__atomic_store_n(&m->entry->key, m->mr.lkey, __ATOMIC_RELEASE);
	*mr = &m->mr;
	return 0;
}

int vb_mr_register_mapping(struct ibv_pd *pd, const struct vb_mr_mapping *mapping,
			   unsigned int access, struct ibv_mr **mr)
{
	struct vb_mr *m = NULL;
	int err = make(pd, access, &m);

	if (err)
		return err;
	m->mr.addr = mapping->addr;
	m->mr.length = mapping->length;
	m->memory = mapping->memory;
	m->map = mapping->map;
	m->map_length = mapping->map_length;
	m->iova = mapping->iova;
	m->shared = true;
	publish(m);
	*mr = &m->mr;
	return 0;
}

/* Any address, any length, local access alone: peers get no key. */
int vb_mr_alloc_null(struct ibv_pd *pd, struct ibv_mr **mr)
{
	struct vb_mr *m = NULL;
	int err = make(pd, IBV_ACCESS_LOCAL_WRITE, &m);

	if (err)
		return err;
	m->mr.rkey = 0;
	m->mr.length = SIZE_MAX;
	m->kind = VB_KEY_NULL;
	publish(m);
	*mr = &m->mr;
	return 0;
}

/*
 * The region stays untouched when ibv_rereg_mr(3) is refused here. The face has judged the
 * arguments before.
 */
static int check_rereg(struct ibv_mr *mr)
{
	if (vb_context_check(mr->context, VB_HANDLE_MR, mr->handle, mr, "rereg_mr"))
		return IBV_REREG_MR_ERR_INPUT;
	if (vb_mr_of(mr)->provided || vb_mr_of(mr)->foreign || vb_mr_of(mr)->map ||
	    vb_mr_of(mr)->kind != VB_KEY_REGION) {
		vb_note_refused(EINVAL, VB_REASON_ARG, "rereg_mr: the memory is not the program's");
		return IBV_REREG_MR_ERR_INPUT;
	}
	return 0;
}

/* Computes what the region is to become. On failure nothing has changed. */
static int judge_rereg(struct vb_mr *m, int flags, struct ibv_pd *pd, struct vb_mr *next)
{
	int err;

	if (m->dead)
		return vb_refuse(EINVAL, VB_REASON_HANDLE,
				 "rereg_mr: the region is unusable since a failed rereg");
	if (!flags)
		return vb_refuse(EINVAL, VB_REASON_ARG_MASK, "rereg_mr: no flags");
	err = vb_mr_check_access(&next->access);
	if (err)
		return err;
	if (next->access & IBV_ACCESS_ZERO_BASED)
		next->iova = 0;
	if (flags & (IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_ACCESS))
		err = check_range(next->mr.addr, next->mr.length, next->iova, next->access,
				  &next->shared);
	if (!err && flags & IBV_REREG_MR_CHANGE_TRANSLATION)
		err = vb_arena_present(vb_process_node_started(), next->mr.addr, next->mr.length);
	if (!err && (flags & IBV_REREG_MR_CHANGE_PD))
		err = vb_pd_get(m->mr.context, pd);
	return err;
}

static int reregister(struct vb_mr *m, int flags, struct ibv_pd *pd, const struct vb_mr *wish)
{
	struct vb_mr next = {
		.mr = m->mr, .iova = m->iova, .access = m->access, .shared = m->shared};

	if (flags & IBV_REREG_MR_CHANGE_ACCESS) {
		next.access = wish->access;
		if (m->access & ~next.access & IBV_ACCESS_ZERO_BASED)
			next.iova = (uintptr_t)m->mr.addr;
	}
	if (flags & IBV_REREG_MR_CHANGE_TRANSLATION) {
		next.mr.addr = wish->mr.addr;
		next.mr.length = wish->mr.length;
		next.iova = (uintptr_t)wish->mr.addr;
	}
	/* While windows are bound nothing changes: the region and its windows go on. */
	if (!m->dead && withdraw_unbound(m, "rereg_mr"))
		return IBV_REREG_MR_ERR_CMD;
	if (judge_rereg(m, flags, pd, &next)) {
		m->dead = true;
		return IBV_REREG_MR_ERR_CMD;
	}
	m->mr.addr = next.mr.addr;
	m->memory = next.mr.addr;
	m->mr.length = next.mr.length;
	m->iova = next.iova;
	m->access = next.access;
	m->shared = next.shared;
	if (flags & IBV_REREG_MR_CHANGE_PD) {
		vb_pd_put(m->given);
		m->given = pd;
		m->mr.pd = vb_pd_own(pd);
	}
	publish(m);
	return 0;
}

int vb_mr_reregister(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t length,
		     int access)
{
	struct vb_mr wish = {.mr = {.addr = addr, .length = length},
			     .access = (unsigned int)access};
	struct vb_mr *m = vb_mr_of(mr);
	int err = check_rereg(mr);

	if (err)
		return err;
	vb_mutex_take(&m->lock, VB_ORDER_REGION);
	err = reregister(m, flags, pd, &wish);
	vb_mutex_release(&m->lock);
	return err;
}

/* Returns what the region's key and its memory held. No thread uses them any more. */
static void give_back(struct vb_mr *m)
{
	if (m->foreign)
		vb_foreign_remove(m->mr.lkey);
	vb_node_key_free(vb_process_node_started(), m->mr.lkey);
	vb_pd_put(m->given);
	if (m->provided)
		vb_provided_put(m->provided);
	if (m->map)
		munmap(m->map, m->map_length);
}

static void end(struct vb_context *c, void *object, uint32_t handle)
{
	struct vb_mr *m = object;

	withdraw(m);
	vb_context_remove(&c->vctx.context, VB_HANDLE_MR, handle, m);
	vb_passport_put_mr(c->passport, handle, 0, 0, 0);
	give_back(m);
}

int vb_mr_deregister(struct ibv_mr *mr)
{
	struct vb_mr *m = vb_mr_of(mr);
	int err = vb_context_check(mr->context, VB_HANDLE_MR, mr->handle, mr, "mr");

	if (!err)
		err = withdraw_unbound(m, "dereg_mr");
	if (!err)
		err = vb_context_remove(mr->context, VB_HANDLE_MR, mr->handle, mr);
	if (err)
		return err;
	vb_passport_put_mr(vb_context_of(mr->context)->passport, mr->handle, 0, 0, 0);
	give_back(m);
	pthread_mutex_destroy(&m->lock);
	free(m);
	return 0;
}

const struct vb_object_type vb_mr_type = {
	.name = "mr",
	.limit = VB_MAX_MR,
	.end = end,
};
