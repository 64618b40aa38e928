/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * An open device. The public context is the last member of verbs_context, so the library's own
 * members stand before it (ABI).
 */
#ifndef VB_OBJECT_CONTEXT_H
#define VB_OBJECT_CONTEXT_H

#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "device/device.h"
#include "object/event_queue.h"
#include "object/handle.h"
#include "process/limits.h"
#include "verbs/ops.h"

struct vb_context;
struct vb_passport;

/* What contexts must know of a type of objects; set by the room of the type. */
struct vb_object_type {
	const char *name;
	uint32_t limit;
	bool process_wide; /* the limit is for all devices together; counted by vb_object_count() */
	/*
	 * In a forked child the object serves the child's objects, and is not the parent's alone.
	 */
	bool survives;
	/*
	 * The context is being closed: the object stops working, and its handle becomes invalid.
	 * NULL: the object stays as it is.
	 */
	void (*end)(struct vb_context *c, void *object, uint32_t handle);
	/* In a forked child, which has one thread. NULL: the object needs nothing. */
	void (*forked)(void *object);
};

/* What contexts must know of the rooms above: everything that depends on what the device can do. */
struct vb_context_table {
	const struct vb_ops *ops;
	/* Table of a context that was inherited through fork and is not re-opened yet. */
	const struct vb_ops *forked_ops;
	/*
	 * Sets the slots for posting, polling and arming, which programs call without passing the
	 * face.
	 */
	void (*set_slots)(struct ibv_context_ops *slots);
	void (*set_forked_slots)(struct ibv_context_ops *slots);
	const struct vb_object_type *types[VB_HANDLE_TYPES];
	void (*closing)(struct vb_context *c); /* called before any object has ended */
};

struct vb_context {
	struct vb_face face; /* vctx.priv points here; face.ops changes in a forked child */
	const struct vb_context_table *table;
	struct vb_device *device;
	struct vb_event_queue async;
	struct vb_file_id cmd_id; /* identifies the file that cmd_fd stood for */
	struct vb_event_node port_event[VB_PORT_EVENTS];
	struct vb_handle_table handles[VB_HANDLE_TYPES];
	struct vb_passport *passport;     /* the objects that others may import; NULL: none */
	const struct vb_passport *origin; /* of an imported context (provider/import.c) */
	pthread_mutex_t lock;             /* PDs: users and handle change together */
	/*
	 * Inherited through fork and not re-opened: only memory and descriptors are this process's.
	 */
	bool forked;
	struct vb_context *next;   /* list of all contexts of the process (context.c) */
	struct verbs_context vctx; /* programs see vctx.context */
};

static inline struct vb_context *vb_context_of(struct ibv_context *ctx)
{
	return (struct vb_context *)(void *)((char *)ctx -
					     offsetof(struct vb_context, vctx.context));
}

/*
 * The context's part of ibv_open_device(3) and ibv_close_device(3). Holds a reference of the
 * device.
 */
int vb_context_open(const struct vb_context_table *table, struct ibv_device *device,
		    struct ibv_context **ctx);
int vb_context_close(struct ibv_context *ctx);

/*
 * Objects with a limit for the whole process are counted from before they are made until their
 * memory is freed. -ENOMEM with the reason recorded.
 */
int vb_object_count(const struct vb_object_type *type, enum vb_handle_type index);
void vb_object_uncount(enum vb_handle_type index);

/*
 * Counts the object against the device's limit for its type (per device and process; -ENOMEM with
 * the reason recorded), unless vb_object_count() has counted it, and gives it a handle.
 * vb_context_remove() is the opposite: -ENOENT with the reason recorded if the handle does not name
 * the object.
 */
int vb_context_add(struct ibv_context *ctx, enum vb_handle_type type, void *object,
		   uint32_t *handle);
int vb_context_remove(struct ibv_context *ctx, enum vb_handle_type type, uint32_t handle,
		      const void *object);

/*
 * -ENOENT with the reason recorded unless `handle` names `object` in the context's table. `what` is
 * for the message: "cq".
 */
int vb_context_check(struct ibv_context *ctx, enum vb_handle_type type, uint32_t handle,
		     const void *object, const char *what);

/*
 * Makes the context, which was just opened, a view of another one. The context then owns `origin`
 * and `cmd_fd`.
 */
void vb_context_adopt(struct ibv_context *ctx, const struct vb_passport *origin, int cmd_fd);
/* Whether a context of this process has this token. */
bool vb_context_is_ours(uint64_t token);
/* Called when the process has got its name: writes the name into all passports. */
void vb_context_name_all(void);
/*
 * Lets others import the program's objects (ibv_import_device(3)) before it has a queue pair: gives
 * the process a name and a thread that answers. Where these cannot be had, only importing is
 * refused.
 */
void vb_context_be_reachable(void);

/* Makes the descriptors that programs see, and the queue behind async_fd. */
int vb_context_attach(struct vb_context *c);

/* context_end.c: the context is being closed with objects left. */
void vb_context_end_objects(struct vb_context *c);

/* The list: for context_fork.c. */
void vb_context_list_lock(void);
void vb_context_list_unlock(void);
void vb_context_each(void (*fn)(struct vb_context *c)); /* under the lock of the list */
void vb_object_none_counted(void);

/*
 * context_fork.c. In a forked child the objects of a context are the parent's, but for protection
 * and thread domains. A verb that creates an object re-opens its context first. From then on the
 * context is the child's; inherited objects are still refused.
 */
int vb_context_reopen(struct ibv_context *ctx);

#endif
