/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Handle tables: an array of objects, found by number. The array grows, and gives a freed number
 * out again as late as possible.
 */
#include "object/handle.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/lock.h"
#include "base/reason.h"

#define FIRST_SIZE 64u

int vb_handle_table_init(struct vb_handle_table *t)
{
	memset(t, 0, sizeof(*t));
	t->next = 1;
	return -pthread_mutex_init(&t->lock, NULL);
}

void vb_handle_table_fini(struct vb_handle_table *t)
{
	free(t->object);
	t->object = NULL;
	t->size = 0;
	pthread_mutex_destroy(&t->lock);
}

/*
 * A quarter of the entries stays free, so that searching is short and a freed number rests. When
 * growing fails, the table is used as it is.
 */
static void grow(struct vb_handle_table *t)
{
	uint32_t size = t->size ? t->size * 2 : FIRST_SIZE;
	void **object, **old;

	if (t->count + 1 < t->size - t->size / 4 || size < t->size)
		return;
	object = calloc(size, sizeof(*object));
	if (!object)
		return;
	old = t->object;
	if (old)
		memcpy(object, old, t->size * sizeof(*object));
	/*
	 * A child that is forked at any moment finds a table that it can read: never a freed one,
	 * never a size that is too large.
	 */
	__atomic_store_n(&t->object, object, __ATOMIC_SEQ_CST);
	t->next = t->size ? t->size : 1;
	__atomic_store_n(&t->size, size, __ATOMIC_SEQ_CST);
	free(old);
}

/* Entry 0 is never given out: a handle that a program has cleared names nothing. */
static uint32_t find_free(const struct vb_handle_table *t)
{
	uint32_t handle = t->next;

	for (uint32_t i = 0; i < t->size; i++, handle++) {
		if (handle >= t->size)
			handle = 0;
		if (handle && !t->object[handle])
			return handle;
	}
	return 0;
}

int vb_handle_add(struct vb_handle_table *t, void *object, uint32_t *handle)
{
	uint32_t found;

	vb_mutex_take(&t->lock, VB_ORDER_HANDLES);
	grow(t);
	found = find_free(t);
	if (found) {
		t->object[found] = object;
		t->next = found + 1;
		t->count++;
		*handle = found;
	}
	vb_mutex_release(&t->lock);
	if (!found)
		return vb_refuse(ENOMEM, VB_REASON_NO_MEMORY, "no memory for a handle table of %u",
				 t->size);
	return 0;
}

static bool names(const struct vb_handle_table *t, uint32_t handle, const void *object)
{
	return object && handle < t->size && t->object[handle] == object;
}

bool vb_handle_valid(struct vb_handle_table *t, uint32_t handle, const void *object)
{
	bool valid;

	vb_mutex_take(&t->lock, VB_ORDER_HANDLES);
	valid = names(t, handle, object);
	vb_mutex_release(&t->lock);
	return valid;
}

int vb_handle_remove(struct vb_handle_table *t, uint32_t handle, const void *object)
{
	int err = -ENOENT;

	vb_mutex_take(&t->lock, VB_ORDER_HANDLES);
	if (names(t, handle, object)) {
		t->object[handle] = NULL;
		t->count--;
		err = 0;
	}
	vb_mutex_release(&t->lock);
	return err;
}

/* Objects are aligned, so the lowest bit marks the parent's. */
static void *disowned(const void *object)
{
	return (void *)((uintptr_t)object | 1);
}

static bool is_disowned(const void *object)
{
	return (uintptr_t)object & 1;
}

void vb_handle_forked(struct vb_handle_table *t)
{
	pthread_mutex_init(&t->lock, NULL);
	t->count = 0;
	for (uint32_t i = 1; i < t->size; i++)
		t->count += t->object[i] != NULL;
}

void vb_handle_each(const struct vb_handle_table *t, void (*fn)(void *object))
{
	for (uint32_t i = 1; i < t->size; i++) {
		if (t->object[i] && !is_disowned(t->object[i]))
			fn(t->object[i]);
	}
}

void vb_handle_disown(struct vb_handle_table *t)
{
	for (uint32_t i = 1; i < t->size; i++) {
		if (t->object[i])
			t->object[i] = disowned(t->object[i]);
	}
	t->inherited = t->count;
}

bool vb_handle_inherited(struct vb_handle_table *t, uint32_t handle, const void *object)
{
	bool inherited;

	vb_mutex_take(&t->lock, VB_ORDER_HANDLES);
	inherited = names(t, handle, disowned(object));
	vb_mutex_release(&t->lock);
	return inherited;
}

void *vb_handle_any(struct vb_handle_table *t, uint32_t *handle)
{
	void *object = NULL;
	uint32_t from;

	vb_mutex_take(&t->lock, VB_ORDER_HANDLES);
	from = *handle;
	for (uint32_t i = 0; i < t->size && !object; i++) {
		*handle = (from + i) % t->size;
		object = is_disowned(t->object[*handle]) ? NULL : t->object[*handle];
	}
	vb_mutex_release(&t->lock);
	return object;
}
