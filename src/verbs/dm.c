/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Device memory: ibv_alloc_dm(3) and its relatives, behind the slots and pointers that inlines
 * call.
 */
#include "verbs/face.h"
#include "verbs/slots.h"

static int copy_to(struct ibv_dm *dm, uint64_t offset, const void *host, size_t length)
{
	if (!host && length)
		return vb_answer(vb_refuse_null("memcpy_to_dm", "host_addr"));
	return vb_answer(
		vb_ops(dm->context)->copy_dm(dm, offset, (void *)(uintptr_t)host, length, true));
}

static int copy_from(void *host, struct ibv_dm *dm, uint64_t offset, size_t length)
{
	if (!host && length)
		return vb_answer(vb_refuse_null("memcpy_from_dm", "host_addr"));
	return vb_answer(vb_ops(dm->context)->copy_dm(dm, offset, host, length, false));
}

struct ibv_dm *vb_face_dm(struct ibv_dm *dm)
{
	dm->memcpy_to_dm = copy_to;
	dm->memcpy_from_dm = copy_from;
	return dm;
}

struct ibv_dm *vb_slot_alloc_dm(struct ibv_context *ctx, struct ibv_alloc_dm_attr *attr)
{
	struct ibv_dm *dm = NULL;
	int err;

	if (!attr)
		return vb_answer_null(vb_refuse_null("alloc_dm", "attr"));
	err = vb_ops(ctx)->alloc_dm(ctx, attr, &dm);
	return err ? vb_answer_null(err) : vb_face_dm(dm);
}

int vb_slot_free_dm(struct ibv_dm *dm)
{
	return vb_answer(vb_ops(dm->context)->free_dm(dm));
}

struct ibv_mr *vb_slot_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *dm, uint64_t dm_offset,
				 size_t length, unsigned int access)
{
	struct ibv_mr *mr = NULL;
	int err;

	if (!dm)
		return vb_answer_null(vb_refuse_null("reg_dm_mr", "dm"));
	err = vb_ops(pd->context)->reg_dm_mr(pd, dm, dm_offset, length, access, &mr);
	return err ? vb_answer_null(err) : mr;
}
