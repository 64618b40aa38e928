/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Handles: a context finds its objects by number, so that a foreign, overwritten or destroyed one is noticed (ENOENT) and
 * never followed.
 */
#ifndef VB_OBJECT_HANDLE_H
#define VB_OBJECT_HANDLE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct vb_handle_table {
	pthread_mutex_t lock;
	void **object;
	uint32_t size, count, next;
	uint32_t inherited; /* of `count`: a forked child's slots that still name the parent's objects */
};

int vb_handle_table_init(struct vb_handle_table *t);
void vb_handle_table_fini(struct vb_handle_table *t);
/* -ENOMEM. Handles are not reused at once. */
int vb_handle_add(struct vb_handle_table *t, void *object, uint32_t *handle);
/* Is `object` what the handle names? Does not read *object. */
bool vb_handle_valid(struct vb_handle_table *t, uint32_t handle, const void *object);
/* -ENOENT if it is not. */
int vb_handle_remove(struct vb_handle_table *t, uint32_t handle, const void *object);

/*
 * In a forked child, which has one thread: the table is usable again, whatever another thread of the parent was doing to it. Slots change by
 * single stores, and a table that has grown is there before its size says so.
 */
void vb_handle_forked(struct vb_handle_table *t);
void vb_handle_each(const struct vb_handle_table *t, void (*fn)(void *object));
/* Every object becomes the parent's: its handle is no longer valid, and is not given out again. */
void vb_handle_disown(struct vb_handle_table *t);
/* Did the handle name the object in the process that forked this one? Does not read *object. */
bool vb_handle_inherited(struct vb_handle_table *t, uint32_t handle, const void *object);

/* Some object of the table, or NULL: to end all of them. */
void *vb_handle_any(struct vb_handle_table *t, uint32_t *handle);

#endif
