/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* An open device. The public context is the last member of verbs_context, so that ours stands before it (ABI). */
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

/* What contexts have to know of a type of objects; told by the room that the type belongs to. */
struct vb_object_type {
	const char *name;
	uint32_t limit;
	bool process_wide; /* the limit is on those of all devices together, counted by vb_object_count() */
	bool survives; /* in a forked child: good for the child's objects, not the parent's alone */
	/* The context is being closed: the object stops working, and its handle names nothing. NULL: stays as it is. */
	void (*end)(struct vb_context *c, void *object, uint32_t handle);
	/* In a forked child, one thread. NULL: nothing is to be done with the object. */
	void (*forked)(void *object);
};

/* What contexts have to know of the rooms above, which is all that depends on what the device can do. */
struct vb_context_table {
	const struct vb_ops *ops;
	const struct vb_ops *forked_ops; /* of a context inherited through fork, not re-opened yet */
	/* Posting, polling and arming, which programs call without passing the face. */
	void (*set_slots)(struct ibv_context_ops *slots);
	void (*set_forked_slots)(struct ibv_context_ops *slots);
	const struct vb_object_type *types[VB_HANDLE_TYPES];
	void (*closing)(struct vb_context *c); /* nothing of it has ended yet */
};

struct vb_context {
	struct vb_face face; /* vctx.priv points here; face.ops changes in a forked child */
	const struct vb_context_table *table;
	struct vb_device *device;
	struct vb_event_queue async;
	struct vb_file_id cmd_id; /* what cmd_fd stood for */
	struct vb_event_node port_event[VB_PORT_EVENTS];
	struct vb_handle_table handles[VB_HANDLE_TYPES];
	struct vb_passport *passport;     /* what others may import of it; NULL: nothing */
	const struct vb_passport *origin; /* an imported context's (import.c) */
	pthread_mutex_t lock;             /* PDs: users and handle change together */
	bool forked; /* inherited through fork and not re-opened: only its memory and descriptors are this process's */
	struct vb_context *next;   /* all contexts of the process (context.c) */
	struct verbs_context vctx; /* .context is what programs see */
};

static inline struct vb_context *vb_context_of(struct ibv_context *ctx)
{
	return (struct vb_context *)(void *)((char *)ctx -
					     offsetof(struct vb_context, vctx.context));
}

/* The context's part of ibv_open_device(3) and ibv_close_device(3); holds a reference of the device. */
int vb_context_open(const struct vb_context_table *table, struct ibv_device *device,
		    struct ibv_context **ctx);
int vb_context_close(struct ibv_context *ctx);

/*
 * Objects whose limit is the process's are counted while they are made and until their memory is freed. -ENOMEM with the reason
 * recorded.
 */
int vb_object_count(const struct vb_object_type *type, enum vb_handle_type index);
void vb_object_uncount(enum vb_handle_type index);

/*
 * Counts the object against the device's limit for its type (per device and process; -ENOMEM with the reason recorded),
 * unless it is counted already, and gives it a handle. remove is the opposite of add: -ENOENT with the reason recorded if the handle does not name
 * the object.
 */
int vb_context_add(struct ibv_context *ctx, enum vb_handle_type type, void *object,
		   uint32_t *handle);
int vb_context_remove(struct ibv_context *ctx, enum vb_handle_type type, uint32_t handle,
		      const void *object);

/*
 * -ENOENT with the reason recorded unless ctx's handle table says that `handle` names `object`. `what` for the
 * message: "cq".
 */
int vb_context_check(struct ibv_context *ctx, enum vb_handle_type type, uint32_t handle,
		     const void *object, const char *what);

/* Makes the context that was just opened the view of another one; it owns both afterwards. */
void vb_context_adopt(struct ibv_context *ctx, const struct vb_passport *origin, int cmd_fd);
/* Is the context of this token one of this process's? */
bool vb_context_is_ours(uint64_t token);
/* The process has got its name: passports tell it. */
void vb_context_name_all(void);
/*
 * What the program has may be imported by others (ibv_import_device(3)) before it has a queue pair: the process gets a
 * name and a thread that answers. When they cannot be had, importing is refused, and nothing else.
 */
void vb_context_be_reachable(void);

/* The descriptors that programs see, and the queue behind one of them. */
int vb_context_attach(struct vb_context *c);

/* context_end.c: the context is being closed with objects left. */
void vb_context_end_objects(struct vb_context *c);

/* The list: for context_fork.c. */
void vb_context_list_lock(void);
void vb_context_list_unlock(void);
void vb_context_each(void (*fn)(struct vb_context *c)); /* under its lock */
void vb_object_none_counted(void);

/*
 * context_fork.c. In a forked child what contexts hold is the parent's, but for protection and thread domains. A verb that
 * creates re-opens its context first: from then on it is the child's, while what it inherited goes on being refused.
 */
int vb_context_reopen(struct ibv_context *ctx);

#endif
