/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Buffers of ibv_alloc_buf(3). */
#include "memory/buf.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>

#include "base/lock.h"
#include "base/reason.h"
#include "object/context.h"
#include "memory/dmabuf.h"
#include "memory/mr.h"
#include "object/pd.h"
#include "process/process.h"
#include "host/arena.h"
#include "verbs/ops.h"

struct vb_buf {
	struct ibv_buf buf;
	struct ibv_pd *pd;
	struct vb_node *node; /* the buffer is a piece of this node's arena */
	char *addr;
	size_t length;
	uint32_t handle;
	/* Its users: regions, and the program until it frees the buffer. */
	struct vb_provided memory;
};

static struct vb_buf *buf_of(struct ibv_buf *buf)
{
	return (struct vb_buf *)(void *)buf;
}

/*
 * Called when the program has freed the buffer and no region is left on it. A region may be
 * deregistered after its buffer was freed.
 */
static void buf_end(struct vb_provided *memory)
{
	struct vb_buf *b =
		(struct vb_buf *)(void *)((char *)memory - offsetof(struct vb_buf, memory));

	vb_arena_free(b->node, b->addr, b->length);
	vb_pd_put(b->pd);
	free(b);
}

static int make(struct ibv_pd *pd, struct vb_buf *b)
{
	void *addr = NULL;
	int err = vb_process_node(&b->node);

	if (!err)
		err = vb_arena_alloc(b->node, b->length, &addr);
	if (err)
		return err;
	b->pd = pd;
	b->buf.context = pd->context;
	b->addr = addr;
	b->memory.end = buf_end;
	atomic_store(&b->memory.users, 1);
	err = vb_context_add(pd->context, VB_HANDLE_BUF, b, &b->handle);
	if (err)
		vb_arena_free(b->node, b->addr, b->length);
	return err;
}

int vb_buf_alloc(struct ibv_pd *pd, size_t size, struct ibv_buf **buf, void **addr)
{
	int err;

	if (!size)
		return vb_refuse(EINVAL, VB_REASON_ARG, "alloc_buf: no bytes");
	err = vb_pd_get(pd->context, pd);
	if (err)
		return err;
	struct vb_buf *b = calloc(1, sizeof(*b));

	if (b) {
		b->length = size;
		err = make(pd, b);
	} else {
		err = vb_refuse(ENOMEM, VB_REASON_NO_MEMORY, "no memory for a buffer");
	}
	if (err) {
		vb_pd_put(pd);
		free(b);
		return err;
	}
	*buf = &b->buf;
	*addr = b->addr;
	return 0;
}

/*
 * Registering and freeing exclude each other: no region is registered on a buffer without a handle.
 */
static int detach(struct vb_context *c, struct vb_buf *b)
{
	int err;

	vb_mutex_take(&c->lock, VB_ORDER_CONTEXT);
	err = vb_context_check(&c->vctx.context, VB_HANDLE_BUF, b->handle, b, "free_buf");
	if (!err)
		err = vb_context_remove(&c->vctx.context, VB_HANDLE_BUF, b->handle, b);
	vb_mutex_release(&c->lock);
	return err;
}

int vb_buf_free(struct ibv_buf *buf)
{
	struct vb_buf *b = buf_of(buf);
	int err = detach(vb_context_of(buf->context), b);

	if (err)
		return err;
	vb_provided_put(&b->memory);
	return 0;
}

static int check_range(const struct vb_buf *b, const void *addr, size_t length)
{
	uintptr_t start = (uintptr_t)b->addr;
	uintptr_t at = (uintptr_t)addr;

	if (at >= start && length <= b->length && at - start <= b->length - length)
		return 0;
	return vb_refuse(EINVAL, VB_REASON_ARG, "reg_buf_mr: %p+%zu is not in the buffer %p+%zu",
			 addr, length, (void *)b->addr, b->length);
}

int vb_buf_register(struct ibv_pd *pd, struct ibv_buf *buf, void *addr, size_t length,
		    uint64_t iova, unsigned int access, struct ibv_mr **mr)
{
	struct vb_context *c = vb_context_of(buf->context);
	struct vb_buf *b = buf_of(buf);
	int err;

	if (!vb_pd_same(pd, b->pd))
		return vb_refuse(EINVAL, VB_REASON_ARG,
				 "reg_buf_mr: the buffer was allocated on another pd");
	vb_mutex_take(&c->lock, VB_ORDER_CONTEXT);
	err = vb_context_check(pd->context, VB_HANDLE_BUF, b->handle, b, "reg_buf_mr");
	if (!err)
		err = check_range(b, addr, length);
	if (!err)
		vb_provided_get(&b->memory);
	vb_mutex_release(&c->lock);
	if (err)
		return err;
	err = vb_mr_register(pd, addr, length, iova, access, mr);
	if (err)
		vb_provided_put(&b->memory);
	else
		vb_mr_of(*mr)->provided = &b->memory;
	return err;
}

int vb_buf_export(struct ibv_buf *buf)
{
	const struct vb_buf *b = buf_of(buf);
	int err = vb_context_check(buf->context, VB_HANDLE_BUF, b->handle, b, "export_buf");

	if (err)
		return err;
	int fd = vb_dmabuf_export(b->node, b->addr, b->length);

	if (fd >= 0)
		return fd;
	return vb_refuse(ENODATA, VB_REASON_UNSUPPORTED,
			 "export_buf_dmabuf_fd: the buffer cannot be made a dma-buf here");
}

const struct vb_object_type vb_buf_type = {
	.name = "buf",
	.limit = VB_MAX_BUF,
};
