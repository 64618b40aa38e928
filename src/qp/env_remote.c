/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What peers' requests do to this process's memory when the responder executes them. Keys are
 * judged and memory is copied here and nowhere else. Regions that are imported from another process
 * are in memory/foreign.c.
 */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/reason.h"
#include "base/sys.h"
#include "qp/comp_cntr.h"
#include "qp/env.h"
#include "memory/foreign.h"
#include "memory/copy.h"
#include "memory/memory.h"
#include "qp/qp.h"
#include "host/peer.h"

/*
 * The engine in which a window is bound fills in its entry; before it changes anything, it waits
 * for engines that mark the key. A region's entry changes after a pass through all engines.
 */
static enum vb_reason touch(struct vb_qp *qp, const char *what, uint32_t rkey, uint64_t va,
			    uint64_t length, uint32_t need, uint64_t *addr)
{
	struct vb_mem mem = vb_env_memory(qp);
	const struct vb_key *k = &mem.keys->key[vb_key_slot(rkey)];
	bool marks = __atomic_load_n(&k->kind, __ATOMIC_RELAXED) == VB_KEY_WINDOW;
	enum vb_reason reason;

	if (marks)
		vb_mark_set_own(qp->engine->node, qp->engine->index, rkey);
	reason = vb_mem_check_explained(&mem, what, rkey, va, length, need, addr);
	if (reason && marks)
		vb_mark_clear(qp->engine->node, qp->engine->index);
	return reason;
}

static void touched(struct vb_qp *qp)
{
	vb_mark_clear(qp->engine->node, qp->engine->index);
}

static bool is_shared(const struct vb_mem *mem, uint32_t rkey)
{
	return mem->keys->key[vb_key_slot(rkey)].shared;
}

/* Memory of the library's own: the copy needs no care. */
static bool is_lasting(const struct vb_mem *mem, uint32_t rkey)
{
	return mem->keys->key[vb_key_slot(rkey)].lasting;
}

enum vb_reason vb_env_remote_check(struct vb_tqp *t, uint32_t rkey, uint64_t va, uint64_t length,
				   uint32_t need)
{
	struct vb_qp *qp = vb_qp_of_tqp(t);
	uint64_t addr;
	enum vb_reason reason = touch(qp, "remote request", rkey, va, length, need, &addr);

	if (!reason)
		touched(qp);
	return reason;
}

static enum vb_reason memory_gone(const struct vb_tqp *t, uint32_t rkey, uint64_t va,
				  uint64_t length)
{
	vb_note(VB_REASON_MEMORY_GONE,
		"qp 0x%x: rkey 0x%x 0x%llx+%llu is registered, but the program has unmapped it",
		t->qpn, rkey, (unsigned long long)va, (unsigned long long)length);
	return VB_REASON_MEMORY_GONE;
}

enum vb_reason vb_env_remote_write(struct vb_tqp *t, uint32_t rkey, uint64_t va, const void *src,
				   uint32_t length)
{
	struct vb_qp *qp = vb_qp_of_tqp(t);
	struct vb_mem mem = vb_env_memory(qp);
	uint64_t addr;

	if (vb_foreign_any() && vb_foreign_is(&mem, rkey))
		return vb_foreign_write(&mem, rkey, va, src, length, IBV_ACCESS_REMOTE_WRITE,
					VB_ACCESS_REMOTE);
	enum vb_reason reason =
		touch(qp, "remote WRITE", rkey, va, length, IBV_ACCESS_REMOTE_WRITE, &addr);

	if (reason)
		return reason;
	if (is_lasting(&mem, rkey))
		vb_mem_put(addr, src, length);
	else if (!vb_mem_copy_in(addr, src, length))
		reason = memory_gone(t, rkey, va, length);
	touched(qp);
	return reason;
}

bool vb_env_remote_write_region(struct vb_qp *qp, uint32_t rkey, uint64_t va, const void *src,
				uint32_t length)
{
	struct vb_mem mem = vb_env_memory(qp);
	const struct vb_key *k = &mem.keys->key[vb_key_slot(rkey)];
	uint64_t addr;

	if (vb_foreign_any() ||
	    !vb_access_region(k, rkey, mem.pd, mem.qpn, va, length, IBV_ACCESS_REMOTE_WRITE))
		return false;
	addr = k->base + (va - k->start);
	if (!k->lasting)
		return vb_mem_copy_in(addr, src, length);
	vb_mem_put(addr, src, length);
	return true;
}

enum vb_reason vb_env_remote_read(struct vb_tqp *t, uint32_t rkey, uint64_t va, void *dst,
				  uint32_t length)
{
	struct vb_qp *qp = vb_qp_of_tqp(t);
	struct vb_mem mem = vb_env_memory(qp);
	uint64_t addr;

	if (vb_foreign_any() && vb_foreign_is(&mem, rkey))
		return vb_foreign_read(&mem, rkey, va, dst, length, IBV_ACCESS_REMOTE_READ,
				       VB_ACCESS_REMOTE);
	enum vb_reason reason =
		touch(qp, "remote READ", rkey, va, length, IBV_ACCESS_REMOTE_READ, &addr);

	if (reason)
		return reason;
	if (is_lasting(&mem, rkey))
		vb_mem_get(dst, addr, length);
	else if (!vb_mem_copy_out(dst, addr, length))
		reason = memory_gone(t, rkey, va, length);
	touched(qp);
	return reason;
}

enum vb_reason vb_env_remote_atomic(struct vb_tqp *t, uint32_t rkey, uint64_t va, bool compare_swap,
				    uint64_t swap_add, uint64_t compare, uint64_t *original)
{
	struct vb_qp *qp = vb_qp_of_tqp(t);
	struct vb_mem mem = vb_env_memory(qp);
	uint64_t addr;

	if (vb_foreign_any() && vb_foreign_is(&mem, rkey))
		return vb_foreign_atomic(&mem, rkey, va, compare_swap, swap_add, compare, original);
	enum vb_reason reason =
		touch(qp, "remote ATOMIC", rkey, va, 8, IBV_ACCESS_REMOTE_ATOMIC, &addr);

	if (reason)
		return reason;
	struct vb_atomic op = {compare_swap, swap_add, compare};

	*original = 0;
	int err = vb_node_atomic(qp->engine->node, addr, is_shared(&mem, rkey), &op, original);

	touched(qp);
	return err ? memory_gone(t, rkey, va, sizeof(*original)) : VB_REASON_NONE;
}

enum vb_reason vb_env_remote_atomic_write(struct vb_tqp *t, uint32_t rkey, uint64_t va,
					  const void *value)
{
	struct vb_qp *qp = vb_qp_of_tqp(t);
	struct vb_mem mem = vb_env_memory(qp);
	uint64_t addr;

	if (vb_foreign_any() && vb_foreign_is(&mem, rkey))
		return vb_foreign_write(&mem, rkey, va, value, 8, IBV_ACCESS_REMOTE_WRITE,
					VB_ACCESS_REMOTE);
	enum vb_reason reason =
		touch(qp, "remote ATOMIC_WRITE", rkey, va, 8, IBV_ACCESS_REMOTE_WRITE, &addr);

	if (reason)
		return reason;
	uint64_t word;

	memcpy(&word, value, sizeof(word));
	if (vb_node_atomic_write(qp->engine->node, addr, is_shared(&mem, rkey), word))
		reason = memory_gone(t, rkey, va, 8);
	touched(qp);
	return reason;
}

/*
 * Memory is coherent: bytes that were written are visible to all. msync(2) makes them persistent in
 * shared mappings of files.
 */
static bool make_persistent(uint64_t addr, uint64_t length)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t start = addr & ~(page - 1);

	return !length || !vb_sys_msync((void *)(uintptr_t)start, addr + length - start, MS_SYNC);
}

enum vb_reason vb_env_remote_flush(struct vb_tqp *t, uint32_t rkey, uint64_t va, uint64_t length,
				   uint32_t type, bool whole)
{
	struct vb_qp *qp = vb_qp_of_tqp(t);
	const struct vb_key *k = &vb_node_keyring(qp->engine->node)->key[vb_key_slot(rkey)];
	uint32_t need = (type & IBV_FLUSH_GLOBAL ? IBV_ACCESS_FLUSH_GLOBAL : 0) |
			(type & IBV_FLUSH_PERSISTENT ? IBV_ACCESS_FLUSH_PERSISTENT : 0);
	struct vb_mem mem = vb_env_memory(qp);
	enum vb_reason reason;
	uint64_t addr;

	/* Only its owner can make an imported region persistent, or knows all of it. */
	if (vb_foreign_any() && vb_foreign_is(&mem, rkey))
		return whole || type & IBV_FLUSH_PERSISTENT
			       ? VB_REASON_RKEY_ACCESS
			       : vb_foreign_check(&mem, rkey, va, length, need, VB_ACCESS_REMOTE,
						  &addr);
	if (whole) {
		va = k->start;
		length = k->length;
	}
	reason = touch(qp, "remote FLUSH", rkey, va, length, need, &addr);
	if (reason)
		return reason;
	if (type & IBV_FLUSH_PERSISTENT && !make_persistent(addr, length))
		reason = memory_gone(t, rkey, va, length);
	touched(qp);
	return reason;
}

void vb_env_remote_done(struct vb_tqp *t, uint8_t op, uint64_t bytes, bool ok)
{
	vb_comp_cntr_count(vb_qp_of_tqp(t),
			   op == VB_OP_WRITE ? IBV_QP_ATTACH_COMP_CNTR_OP_REMOTE_RDMA_WRITE
					     : IBV_QP_ATTACH_COMP_CNTR_OP_REMOTE_RDMA_READ,
			   bytes, ok);
}
