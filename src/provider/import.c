/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Importing protection domains, memory regions and device memory. */
#include "provider/import.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fork.h"
#include "base/lock.h"
#include "base/reason.h"
#include "object/context.h"
#include "device/device.h"
#include "memory/dm.h"
#include "memory/foreign.h"
#include "memory/mr.h"
#include "object/passport.h"
#include "object/pd.h"
#include "process/process.h"
#include "host/arena.h"
#include "host/peer.h"

#define MEET_NS 2000000000ll /* the longest wait for an owner that is stopped */

static const struct vb_passport *origin_of(struct ibv_context *ctx, const char *verb, int *err)
{
	const struct vb_passport *origin = vb_context_of(ctx)->origin;

	*err = 0;
	if (!origin)
		*err = vb_refuse(EINVAL, VB_REASON_ARG, "%s: the context is not an imported one",
				 verb);
	else if (!vb_passport_valid(origin))
		*err = vb_refuse(ENODEV, VB_REASON_OWNER_GONE,
				 "%s: process %u has closed the context", verb, origin->pid);
	return origin;
}

/*
 * A domain of another process has a number of this process, always the same one, so that objects
 * that were imported separately belong together. Records are small, one for each domain, and stay.
 */
struct known_pd {
	struct known_pd *next;
	uint64_t token; /* of the context */
	uint32_t theirs, ours;
};

static struct known_pd *known;
static pthread_mutex_t known_lock = PTHREAD_MUTEX_INITIALIZER;

static int local_number(uint64_t token, uint32_t theirs, uint32_t *ours)
{
	int err = 0;

	vb_mutex_take(&known_lock, VB_ORDER_IMPORTED);
	struct known_pd *k = known;

	while (k && (k->token != token || k->theirs != theirs))
		k = k->next;
	if (!k) {
		k = calloc(1, sizeof(*k));
		if (k) {
			*k = (struct known_pd){known, token, theirs, *ours};
			known = k;
		} else {
			err = -ENOMEM;
		}
	}
	if (k)
		*ours = k->ours;
	vb_mutex_release(&known_lock);
	return err;
}

int vb_import_pd(struct ibv_context *ctx, uint32_t handle, struct ibv_pd **pd)
{
	int err;
	const struct vb_passport *origin = origin_of(ctx, "import_pd", &err);

	if (err)
		return err;
	uint32_t id = handle < VB_PASSPORT_PDS
			      ? __atomic_load_n(&origin->pd[handle].id, __ATOMIC_ACQUIRE)
			      : 0;

	if (!id)
		return vb_refuse(ENOENT, VB_REASON_HANDLE,
				 "import_pd: process %u has no pd of handle %u there", origin->pid,
				 handle);
	err = vb_pd_alloc(ctx, pd);
	if (err)
		return err;
	uint32_t ours = vb_pd_of(*pd)->id;

	if (vb_context_is_ours(origin->token))
		ours = id;
	else
		err = local_number(origin->token, id, &ours);
	if (err) {
		vb_pd_dealloc(*pd);
		return vb_refuse(ENOMEM, VB_REASON_NO_MEMORY, "no memory for an imported pd");
	}
	vb_pd_of(*pd)->id = ours;
	return 0;
}

/* The owner as a peer, with a reference. */
static int meet(const struct vb_passport *origin, const char *verb, struct vb_peer **owner)
{
	uint64_t nonce = __atomic_load_n(&origin->nonce, __ATOMIC_ACQUIRE);
	uint32_t block = __atomic_load_n(&origin->block, __ATOMIC_RELAXED);
	struct vb_node *node;
	int err = vb_process_node(&node);

	if (err)
		return err;
	if (nonce == vb_node_nonce(node)) {
		*owner = vb_peer_hold_self(node);
		return 0;
	}
	if (!nonce || !block)
		return vb_refuse(
			EAGAIN, VB_REASON_UNREACHABLE,
			"%s: process %u has neither a queue pair nor device memory yet, so it has no name to be reached by",
			verb, origin->pid);
	err = vb_process_start_progress();
	if (err)
		return err;
	err = vb_peer_meet(node, block, nonce, MEET_NS, owner);
	if (!err)
		return 0;
	if (err == -ENOMEM)
		return vb_refuse(ENOMEM, VB_REASON_NO_MEMORY, "%s: no memory to reach process %u",
				 verb, origin->pid);
	return vb_refuse(ENODEV, VB_REASON_OWNER_GONE, "%s: process %u cannot be reached", verb,
			 origin->pid);
}

int vb_import_mr(struct ibv_pd *pd, uint32_t handle, struct ibv_mr **mr)
{
	struct vb_passport_mr e = {0};
	struct vb_foreign record = {0};
	int err;
	const struct vb_passport *origin = origin_of(pd->context, "import_mr", &err);

	if (err)
		return err;
	if (handle < VB_PASSPORT_MRS) {
		e.key = __atomic_load_n(&origin->mr[handle].key, __ATOMIC_ACQUIRE);
		e.pd = __atomic_load_n(&origin->mr[handle].pd, __ATOMIC_ACQUIRE);
		e.length = __atomic_load_n(&origin->mr[handle].length, __ATOMIC_ACQUIRE);
	}
	if (!e.key)
		return vb_refuse(ENOENT, VB_REASON_HANDLE,
				 "import_mr: process %u has no mr of handle %u there", origin->pid,
				 handle);
	err = meet(origin, "import_mr", &record.owner);
	if (err)
		return err;
	record.key = e.key;
	record.pd = e.pd;
	err = vb_mr_import(pd, &record, e.length, NULL, mr);
	if (err)
		vb_peer_part(vb_process_node_started(), record.owner);
	return err;
}

int vb_import_dm(struct ibv_context *ctx, uint32_t handle, struct ibv_dm **dm)
{
	struct vb_passport_dm e = {0};
	struct vb_foreign record = {0};
	int err;
	const struct vb_passport *origin = origin_of(ctx, "import_dm", &err);

	if (err)
		return err;
	if (handle < VB_PASSPORT_DMS) {
		e.key = __atomic_load_n(&origin->dm[handle].key, __ATOMIC_ACQUIRE);
		e.pd = __atomic_load_n(&origin->dm[handle].pd, __ATOMIC_ACQUIRE);
		e.addr = __atomic_load_n(&origin->dm[handle].addr, __ATOMIC_ACQUIRE);
		e.length = __atomic_load_n(&origin->dm[handle].length, __ATOMIC_ACQUIRE);
	}
	if (!e.key)
		return vb_refuse(ENOENT, VB_REASON_HANDLE,
				 "import_dm: process %u has no dm of handle %u there", origin->pid,
				 handle);
	err = meet(origin, "import_dm", &record.owner);
	if (err)
		return err;
	record.key = e.key;
	record.pd = e.pd;
	err = vb_dm_import(ctx, &record, e.addr, e.length, dm);
	if (err)
		vb_peer_part(vb_process_node_started(), record.owner);
	return err;
}

/* In a forked child the lock may be held by a thread that does not exist there. */
static void forked(void)
{
	pthread_mutex_init(&known_lock, NULL);
}

VB_FORK_HOOK(.phase = VB_FORK_ROOMS, .child = forked);
