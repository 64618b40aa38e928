/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ibv_advise_mr(3): brings in pages of on-demand regions before they are used. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/reason.h"
#include "memory/mapping.h"
#include "memory/memory.h"
#include "memory/mr.h"
#include "object/pd.h"
#include "process/process.h"

#ifndef MADV_POPULATE_READ /* Linux 5.14 */
#define MADV_POPULATE_READ  22
#define MADV_POPULATE_WRITE 23
#endif

static int refuse(int err, enum vb_reason reason, const struct ibv_sge *sge, const char *what)
{
	return vb_refuse(err, reason, "advise_mr: lkey 0x%x 0x%llx+%u: %s", sge->lkey,
			 (unsigned long long)sge->addr, sge->length, what);
}

/* Checks for the errors that the manual page lists, in an order in which each can occur. */
static int check(const struct vb_keyring *keys, uint32_t pd, bool write, const struct ibv_sge *sge,
		 uint64_t *addr)
{
	const struct vb_key *k = &keys->key[vb_key_slot(sge->lkey)];

	if (!sge->lkey || k->key != sge->lkey)
		return refuse(EFAULT, VB_REASON_LKEY_UNKNOWN, sge, "no such region");
	if (k->kind != VB_KEY_REGION)
		return refuse(EINVAL, VB_REASON_ARG, sge, "a window or the null region");
	if (k->pd != pd)
		return refuse(EPERM, VB_REASON_LKEY_PD, sge, "another protection domain");
	if (!(k->access & IBV_ACCESS_ON_DEMAND))
		return refuse(EINVAL, VB_REASON_ARG, sge, "no on-demand region");
	if (write && !(k->access & IBV_ACCESS_LOCAL_WRITE))
		return refuse(EPERM, VB_REASON_LKEY_ACCESS, sge, "the region lacks LOCAL_WRITE");
	if (sge->addr < k->start || sge->length > k->length ||
	    sge->addr - k->start > k->length - sge->length)
		return refuse(EFAULT, VB_REASON_LKEY_RANGE, sge, "outside the region");
	*addr = k->base + (sge->addr - k->start);
	return 0;
}

/*
 * Without the flag the pages may come later, or not at all: the kernel is asked, and its answer
 * ignored.
 */
static int bring_in(const struct ibv_sge *sge, uint64_t addr, bool write, bool wait)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t start = addr & ~(page - 1);
	void *at = (void *)(uintptr_t)start;
	size_t length = (size_t)(addr + sge->length - start);
	uintptr_t bad;
	bool shared;

	if (!sge->length)
		return 0;
	if (!wait) {
		madvise(at, length, MADV_WILLNEED);
		return 0;
	}
	if (madvise(at, length, write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ) == 0)
		return 0;
	if (errno == EINVAL &&
	    !vb_mapping_check((uintptr_t)addr, sge->length, write, &shared, &bad))
		return 0; /* a kernel without this advice: the call is a best effort */
	return refuse(EFAULT, VB_REASON_UNMAPPED, sge, "not mapped with these rights");
}

int vb_mr_advise(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
		 const struct ibv_sge *sge, uint32_t num_sge)
{
	bool write = advice == IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE;
	struct vb_node *node;
	uint64_t addr;
	int err = vb_pd_get(pd->context, pd);

	if (err)
		return vb_refuse(EINVAL, VB_REASON_HANDLE, "advise_mr: no such protection domain");
	vb_pd_put(pd);
	if ((unsigned int)advice > IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT)
		return vb_refuse(EOPNOTSUPP, VB_REASON_UNSUPPORTED, "advise_mr: advice %d",
				 (int)advice);
	if (flags & ~(uint32_t)IBV_ADVISE_MR_FLAG_FLUSH)
		return vb_refuse(EINVAL, VB_REASON_ARG_MASK, "advise_mr: flags 0x%x", flags);
	if (!num_sge || !sge)
		return vb_refuse(EINVAL, VB_REASON_ARG, "advise_mr: no range");
	err = vb_process_node(&node);
	for (uint32_t i = 0; !err && i < num_sge; i++)
		err = check(vb_node_keyring(node), vb_pd_of(pd)->id, write, &sge[i], &addr);
	if (advice == IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT)
		return err; /* every page that the processor can reach is present already */
	for (uint32_t i = 0; !err && i < num_sge; i++) {
		err = check(vb_node_keyring(node), vb_pd_of(pd)->id, write, &sge[i], &addr);
		if (!err)
			err = bring_in(&sge[i], addr, write, flags & IBV_ADVISE_MR_FLAG_FLUSH);
	}
	return err;
}
