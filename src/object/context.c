/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Contexts: opened devices, their objects' handles and limits, and the list of all of them. */
#include "object/context.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/lock.h"
#include "base/reason.h"
#include "base/sys.h"
#include "device/device.h"
#include "host/node.h"
#include "process/limits.h"
#include "object/passport.h"
#include "process/process.h"

static pthread_mutex_t all_lock = PTHREAD_MUTEX_INITIALIZER;
static struct vb_context *all;

/* For the types that are counted over all devices. */
static _Atomic uint32_t counted[VB_HANDLE_TYPES];

static int refuse_more(const struct vb_object_type *type)
{
	return vb_refuse(ENOMEM, VB_REASON_ARG_LIMIT, "%s: all %u of the device are in use",
			 type->name, type->limit);
}

int vb_object_count(const struct vb_object_type *type, enum vb_handle_type index)
{
	if (atomic_fetch_add(&counted[index], 1) < type->limit)
		return 0;
	atomic_fetch_sub(&counted[index], 1);
	return refuse_more(type);
}

void vb_object_uncount(enum vb_handle_type index)
{
	atomic_fetch_sub(&counted[index], 1);
}

void vb_object_none_counted(void)
{
	memset(counted, 0, sizeof(counted));
}

int vb_context_add(struct ibv_context *ctx, enum vb_handle_type type, void *object,
		   uint32_t *handle)
{
	struct vb_context *c = vb_context_of(ctx);
	const struct vb_object_type *t = c->table->types[type];
	_Atomic uint32_t *count = &c->device->objects[type];
	int err;

	if (t->process_wide)
		return vb_handle_add(&c->handles[type], object, handle);
	if (atomic_fetch_add(count, 1) >= t->limit) {
		atomic_fetch_sub(count, 1);
		return refuse_more(t);
	}
	err = vb_handle_add(&c->handles[type], object, handle);
	if (err)
		atomic_fetch_sub(count, 1);
	return err;
}

static int bad_handle(struct vb_context *c, enum vb_handle_type type, uint32_t handle,
		      const void *object, const char *what)
{
	if (vb_handle_inherited(&c->handles[type], handle, object))
		return vb_refuse(ENODEV, VB_REASON_FORKED,
				 "%s: handle %u belongs to the parent process", what, handle);
	return vb_refuse(ENOENT, VB_REASON_HANDLE, "%s: handle %u of this context does not name it",
			 what, handle);
}

int vb_context_remove(struct ibv_context *ctx, enum vb_handle_type type, uint32_t handle,
		      const void *object)
{
	struct vb_context *c = vb_context_of(ctx);
	const struct vb_object_type *t = c->table->types[type];

	if (vb_handle_remove(&c->handles[type], handle, object))
		return bad_handle(c, type, handle, object, t->name);
	if (!t->process_wide)
		atomic_fetch_sub(&c->device->objects[type], 1);
	return 0;
}

int vb_context_check(struct ibv_context *ctx, enum vb_handle_type type, uint32_t handle,
		     const void *object, const char *what)
{
	struct vb_context *c = vb_context_of(ctx);

	if (vb_handle_valid(&c->handles[type], handle, object))
		return 0;
	return bad_handle(c, type, handle, object, what);
}

/*
 * Sets the public members, and the slots that programs call without passing the face. The face sets
 * the other slots (verbs/ops.h).
 */
static void init_public(struct vb_context *c, struct ibv_device *device)
{
	struct ibv_context *ctx = &c->vctx.context;

	c->vctx.sz = sizeof(c->vctx);
	c->vctx.priv = (struct verbs_ex_private *)(void *)&c->face;
	ctx->device = device;
	ctx->async_fd = c->async.fd;
	ctx->num_comp_vectors = VB_NUM_COMP_VECTORS;
	ctx->abi_compat = __VERBS_ABI_IS_EXTENDED;
	c->table->set_slots(&ctx->ops);
}

static void init_port_events(struct vb_context *c)
{
	static const enum ibv_event_type type[VB_PORT_EVENTS] = {
		[VB_EVENT_PORT_ACTIVE] = IBV_EVENT_PORT_ACTIVE,
		[VB_EVENT_PORT_ERR] = IBV_EVENT_PORT_ERR,
		[VB_EVENT_GID_CHANGE] = IBV_EVENT_GID_CHANGE,
		[VB_EVENT_DEVICE_FATAL] = IBV_EVENT_DEVICE_FATAL,
	};

	for (int e = 0; e < VB_PORT_EVENTS; e++) {
		c->port_event[e] = (struct vb_event_node){
			.type = type[e], .object = (void *)(uintptr_t)1, /* the port's number */
		};
	}
}

static int init_tables(struct vb_context *c)
{
	for (int t = 0; t < VB_HANDLE_TYPES; t++) {
		int err = vb_handle_table_init(&c->handles[t]);

		if (err)
			return err;
	}
	pthread_mutex_init(&c->vctx.context.mutex, NULL);
	return -pthread_mutex_init(&c->lock, NULL);
}

int vb_context_attach(struct vb_context *c)
{
	int err = vb_event_queue_init(&c->async);

	if (err)
		return err;
	err = vb_passport_create(&c->device->ibv, &c->passport, &c->vctx.context.cmd_fd);
	if (err)
		vb_event_queue_fini(&c->async);
	else
		init_port_events(c);
	if (!err)
		c->cmd_id = vb_file_id_of(c->vctx.context.cmd_fd);
	return err;
}

static int init_context(struct vb_context *c, const struct vb_context_table *table,
			struct ibv_device *device)
{
	int err = init_tables(c);

	c->table = table;
	c->device = vb_device_of(device);
	if (!err)
		err = vb_context_attach(c);
	if (err)
		return err;
	c->face.ops = c->table->ops;
	init_public(c, device);
	return 0;
}

/* A device may have gone since the list was made. */
static int check_present(struct ibv_device *device)
{
	struct vb_link_state link;

	vb_device_refresh_now();
	vb_device_link(vb_device_of(device), &link);
	return link.present ? 0
			    : vb_refuse(ENODEV, VB_REASON_SYSTEM,
					"open_device: the interface of %s is gone", device->name);
}

int vb_context_open(const struct vb_context_table *table, struct ibv_device *device,
		    struct ibv_context **ctx)
{
	int err = check_present(device);
	struct vb_context *c = err ? NULL : calloc(1, sizeof(*c));

	if (err)
		return err;
	if (!c)
		return vb_refuse(ENOMEM, VB_REASON_NO_MEMORY, "no memory for a context");
	err = init_context(c, table, device);
	if (err) {
		free(c);
		return err;
	}
	vb_device_get(c->device);
	vb_mutex_take(&all_lock, VB_ORDER_CONTEXTS);
	c->next = all;
	all = c;
	vb_mutex_release(&all_lock);
	*ctx = &c->vctx.context;
	return 0;
}

/* Closes cmd_fd, unless the program has closed it and may have opened a file of its own there. */
static void close_cmd(struct vb_context *c)
{
	struct ibv_context *ctx = &c->vctx.context;

	if (vb_file_is(ctx->cmd_fd, &c->cmd_id))
		vb_sys_close(ctx->cmd_fd);
	ctx->cmd_fd = -1;
}

void vb_context_adopt(struct ibv_context *ctx, const struct vb_passport *origin, int cmd_fd)
{
	struct vb_context *c = vb_context_of(ctx);

	vb_mutex_take(&all_lock, VB_ORDER_CONTEXTS);
	vb_passport_end(c->passport);
	c->passport = NULL;
	c->origin = origin;
	vb_mutex_release(&all_lock);
	close_cmd(c);
	ctx->cmd_fd = cmd_fd;
	c->cmd_id = vb_file_id_of(cmd_fd);
}

bool vb_context_is_ours(uint64_t token)
{
	bool found = false;

	vb_mutex_take(&all_lock, VB_ORDER_CONTEXTS);
	for (struct vb_context *c = all; c; c = c->next)
		found |= c->passport && !c->forked && c->passport->token == token;
	vb_mutex_release(&all_lock);
	return found;
}

void vb_context_name_all(void)
{
	/* The nonce that passports hold; a forked child gets another one. */
	static _Atomic uint64_t named;
	uint64_t nonce = vb_node_nonce(vb_process_node_started());

	if (atomic_exchange(&named, nonce) == nonce)
		return;
	vb_mutex_take(&all_lock, VB_ORDER_CONTEXTS);
	for (struct vb_context *c = all; c; c = c->next) {
		if (c->passport && !c->forked)
			vb_passport_name(c->passport);
	}
	vb_mutex_release(&all_lock);
}

void vb_context_be_reachable(void)
{
	struct vb_node *node;
	struct vb_page_qp *entry;
	uint32_t qpn;

	if (vb_process_node(&node) ||
	    __atomic_load_n(&vb_node_page(node)->header.num_blocks, __ATOMIC_ACQUIRE))
		return;
	/* The name of a process is that of a block of numbers. */
	if (vb_process_start_progress() || vb_node_qpn_alloc(node, &qpn, &entry))
		return;
	vb_node_qpn_free(node, qpn);
	vb_context_name_all();
}

static void unlist(struct vb_context *c)
{
	struct vb_context **at = &all;

	vb_mutex_take(&all_lock, VB_ORDER_CONTEXTS);
	while (*at && *at != c)
		at = &(*at)->next;
	if (*at)
		*at = c->next;
	vb_mutex_release(&all_lock);
}

static uint32_t objects_left(const struct vb_context *c)
{
	uint32_t n = 0;

	for (int t = 0; t < VB_HANDLE_TYPES; t++)
		n += c->handles[t].count - c->handles[t].inherited;
	return n;
}

static bool holds_inherited(const struct vb_context *c)
{
	uint32_t n = 0;

	for (int t = 0; t < VB_HANDLE_TYPES; t++)
		n += c->handles[t].inherited;
	return n > 0;
}

static void end_passports(struct vb_context *c)
{
	vb_passport_end(c->passport);
	c->passport = NULL;
	vb_passport_unmap(c->origin);
	c->origin = NULL;
}

int vb_context_close(struct ibv_context *ctx)
{
	struct vb_context *c = vb_context_of(ctx);

	unlist(c);
	if (!c->forked)
		c->table->closing(c);
	close_cmd(c);
	if (c->forked) {
		/* The queue's lock and its readers belong to the parent. */
		if (vb_file_is(ctx->async_fd, &c->async.id))
			vb_sys_close(ctx->async_fd);
		ctx->async_fd = -1;
		return 0;
	}
	vb_event_queue_close(&c->async);
	ctx->async_fd = -1;
	if (objects_left(c)) {
		vb_note(VB_REASON_BUSY,
			"close_device: %u objects of the context were not destroyed",
			objects_left(c));
		vb_context_end_objects(c);
		end_passports(c);
		return 0;
	}
	end_passports(c);
	if (holds_inherited(c)) /* the program may still name its objects */
		return 0;
	for (int t = 0; t < VB_HANDLE_TYPES; t++)
		vb_handle_table_fini(&c->handles[t]);
	vb_device_put(c->device);
	free(c);
	return 0;
}

/* Raises the event on every context of the device. */
static void port_event(const struct vb_device *device, enum vb_port_event event)
{
	vb_mutex_take(&all_lock, VB_ORDER_CONTEXTS);
	for (struct vb_context *c = all; c; c = c->next) {
		if (c->device == device && !c->forked)
			vb_event_queue_raise(&c->async, &c->port_event[event]);
	}
	vb_mutex_release(&all_lock);
}

__attribute__((constructor)) static void at_load(void)
{
	vb_device_tell(port_event);
}

void vb_context_list_lock(void)
{
	vb_mutex_take(&all_lock, VB_ORDER_CONTEXTS);
}

void vb_context_list_unlock(void)
{
	vb_mutex_release(&all_lock);
}

void vb_context_each(void (*fn)(struct vb_context *c))
{
	for (struct vb_context *c = all; c; c = c->next)
		fn(c);
}
