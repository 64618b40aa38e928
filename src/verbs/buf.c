/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Memory that a device provides or describes: ibv_alloc_buf(3), ibv_alloc_dmah(3), and what can be
 * exported as a dma-buf.
 */
#include "verbs/face.h"

/* A descriptor, or -1 with errno set. */
static int answer_fd(int fd)
{
	return fd >= 0 ? fd : vb_answer_minus_one(fd);
}

VB_EXPORT void *ibv_alloc_buf(struct ibv_pd *pd, size_t size, struct ibv_buf **buf)
{
	struct ibv_buf *made = NULL;
	void *addr = NULL;
	int err;

	if (!pd || !buf)
		return vb_answer_null(vb_refuse_null("alloc_buf", pd ? "buf" : "pd"));
	err = vb_ops(pd->context)->alloc_buf(pd, size, &made, &addr);
	if (err)
		return vb_answer_null(err);
	*buf = made;
	return addr;
}

/* ibv_free_buf(3) returns no value: a buffer that is still registered stays, and errno is EBUSY. */
VB_EXPORT void ibv_free_buf(struct ibv_buf *buf)
{
	if (buf)
		vb_answer(vb_ops(buf->context)->free_buf(buf));
}

VB_EXPORT struct ibv_mr *ibv_reg_buf_mr(struct ibv_pd *pd, struct ibv_buf *buf, void *addr,
					size_t length, int access)
{
	struct ibv_mr *mr = NULL;
	int err;

	if (!pd || !buf)
		return vb_answer_null(vb_refuse_null("reg_buf_mr", pd ? "buf" : "pd"));
	err = vb_ops(pd->context)
		      ->reg_buf_mr(pd, buf, addr, length, (uintptr_t)addr, (unsigned int)access,
				   &mr);
	return err ? vb_answer_null(err) : mr;
}

VB_EXPORT int ibv_export_buf_dmabuf_fd(struct ibv_buf *buf)
{
	if (!buf)
		return vb_answer_minus_one(vb_refuse_null("export_buf_dmabuf_fd", "buf"));
	return answer_fd(vb_ops(buf->context)->export_buf(buf));
}

VB_EXPORT int ibv_dm_export_dmabuf_fd(struct ibv_dm *dm)
{
	if (!dm)
		return vb_answer_minus_one(vb_refuse_null("dm_export_dmabuf_fd", "dm"));
	return answer_fd(vb_ops(dm->context)->export_dm(dm));
}

VB_EXPORT struct ibv_dmah *ibv_alloc_dmah(struct ibv_context *ctx, struct ibv_dmah_init_attr *attr)
{
	struct ibv_dmah *dmah = NULL;
	int err;

	if (!ctx || !attr)
		return vb_answer_null(vb_refuse_null("alloc_dmah", ctx ? "attr" : "context"));
	err = vb_ops(ctx)->alloc_dmah(ctx, attr, &dmah);
	return err ? vb_answer_null(err) : dmah;
}

VB_EXPORT int ibv_dealloc_dmah(struct ibv_dmah *dmah)
{
	if (!dmah)
		return vb_answer(vb_refuse_null("dealloc_dmah", "dmah"));
	return vb_answer(vb_ops(dmah->context)->dealloc_dmah(dmah));
}
