/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Handles: a context finds its objects by number. A handle that is foreign, overwritten or
 * destroyed is noticed (ENOENT) and never followed.
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
	/* Of `count`: entries of a forked child that still name the parent's objects. */
	uint32_t inherited;
};

int vb_handle_table_init(struct vb_handle_table *t);
void vb_handle_table_fini(struct vb_handle_table *t);
/* -ENOMEM. Handles are not reused at once. */
int vb_handle_add(struct vb_handle_table *t, void *object, uint32_t *handle);
/* Whether the handle names `object`. Does not read *object. */
bool vb_handle_valid(struct vb_handle_table *t, uint32_t handle, const void *object);
/* -ENOENT if the handle does not name the object. */
int vb_handle_remove(struct vb_handle_table *t, uint32_t handle, const void *object);

/*
 * In a forked child, which has one thread: makes the table usable again, whatever another thread of
 * the parent was doing to it. Entries change by single stores, and a table that has grown is stored
 * before its size.
 */
void vb_handle_forked(struct vb_handle_table *t);
void vb_handle_each(const struct vb_handle_table *t, void (*fn)(void *object));
/* Marks every object as the parent's: its handle is no longer valid, and is not given out again. */
void vb_handle_disown(struct vb_handle_table *t);
/*
 * Whether the handle named the object in the process that forked this one. Does not read *object.
 */
bool vb_handle_inherited(struct vb_handle_table *t, uint32_t handle, const void *object);

/*
 * An object of the table, looked for from *handle on, or NULL: for ending all objects one after the
 * other in one walk.
 */
void *vb_handle_any(struct vb_handle_table *t, uint32_t *handle);

#endif
