/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Objects that the program has left when it closes their context (ibv_close_device(3)). On an
 * adapter the kernel destroys them then. Here, too, they stop working, and what they held is the
 * device's again: queue pairs stop, keys become invalid, and device memory, XRC domains and the
 * numbers of thread domains can be had by others. The structures stay until the process ends,
 * because the program may still name them. The memory of buffers (ibv_alloc_buf(3)) also stays: it
 * is the program's until ibv_free_buf(3). The room of each type defines what ending means. The
 * order is that of enum vb_handle_type.
 */
#include "object/context.h"

void vb_context_end_objects(struct vb_context *c)
{
	for (int t = 0; t < VB_HANDLE_TYPES; t++) {
		const struct vb_object_type *type = c->table->types[t];
		uint32_t handle = 0;
		void *object;

		while (type && type->end && (object = vb_handle_any(&c->handles[t], &handle)))
			type->end(c, object, handle);
	}
}
