/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ibv_open_xrcd(3), ibv_close_xrcd(3): domains by inode, the openings of each, and its users. */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/fork.h"
#include "base/lock.h"
#include "base/random.h"
#include "base/sys.h"
#include "object/context.h"
#include "device/device.h"
#include "engine/engine.h"
#include "process/limits.h"
#include "process/process.h"
#include "xrc/file.h"
#include "xrc/table.h"
#include "engine/engine_channel.h"
#include "engine/engine_life.h"
#include "engine/engines.h"
#include "engine/progress.h"

pthread_mutex_t vb_xrc_lock = PTHREAD_MUTEX_INITIALIZER;
static struct vb_xrc_domain *domains;

/*
 * Joining a domain waits for other processes. Only calls for the same file wait for that, and look
 * again at this interval.
 */
#define BUSY_NAP_NS 1000000

static struct vb_xrc_domain *domain_find(const struct vb_device *device,
					 const struct vb_xrc_file *file)
{
	struct vb_xrc_domain *d = domains;

	while (d && !(d->named && d->device == device && vb_xrc_file_same(&d->file, file)))
		d = d->next;
	return d;
}

static void domain_free(struct vb_xrc_domain *d)
{
	if (d->srq)
		munmap(d->srq, VB_XRC_SRQS * sizeof(*d->srq));
	vb_xrc_file_release(&d->file);
	free(d);
}

/* `file` NULL: a domain without a file. */
static struct vb_xrc_domain *domain_new(struct ibv_context *ctx, const struct vb_xrc_file *file)
{
	struct vb_xrc_domain *d = calloc(1, sizeof(*d));
	void *map;

	if (!d)
		return NULL;
	d->file.fd = -1;
	/* Pages become present as they are used. */
	map = vb_sys_pages(VB_XRC_SRQS * sizeof(*d->srq));
	d->srq = map == MAP_FAILED ? NULL : map;
	if (!d->srq) {
		domain_free(d);
		return NULL;
	}
	d->device = vb_context_of(ctx)->device;
	d->context = ctx;
	/* So that a number of another domain is likely to be noticed. */
	d->next_srq = vb_random32();
	if (file) {
		d->named = true;
		d->file = *file;
	}
	return d;
}

/* Under vb_xrc_lock. */
static void domain_unlink(struct vb_xrc_domain *d)
{
	for (struct vb_xrc_domain **p = &domains; *p; p = &(*p)->next) {
		if (*p == d) {
			*p = d->next;
			break;
		}
	}
}

/* The domain is in no list any more. */
static void domain_destroy(struct vb_xrc_domain *d)
{
	if (d->table) {
		vb_engine_take(d->engine);
		vb_xrc_bodies_sweep(d, true);
		vb_xrc_table_leave(d);
		vb_lock_release(&d->engine->lock);
	}
	if (d->engine)
		vb_engine_destroy(d->engine);
	domain_free(d);
}

static int engine_make(struct vb_xrc_domain *d)
{
	int err;

	if (d->engine)
		return 0;
	err = vb_engine_create(&d->engine, &d->device->ibv, false);
	if (err)
		return err;
	d->hook.handed = vb_xrc_handed;
	vb_engine_take(d->engine);
	vb_engine_hook_add(d->engine, &d->hook);
	vb_lock_release(&d->engine->lock);
	return 0;
}

/* The error of joining, as ibv_open_xrcd(3) has it. */
static int join_refused(int err)
{
	switch (err) {
	case -ENOENT:
		return vb_refuse(EAGAIN, VB_REASON_ARG,
				 "open_xrcd: the file has no domain, and no O_CREAT");
	case -ETIMEDOUT:
		return vb_refuse(
			EBUSY, VB_REASON_BUSY,
			"open_xrcd: the processes that have the file's domain open stand still");
	case -EUSERS:
		return vb_refuse(EBUSY, VB_REASON_ARG_LIMIT,
				 "open_xrcd: %u processes have the file's domain open",
				 VB_COMMONS_SEATS);
	case -EADDRNOTAVAIL:
		return vb_refuse(
			EBUSY, VB_REASON_BUSY,
			"open_xrcd: another user has taken the names of the file's domain");
	default:
		return vb_refuse(-err, VB_REASON_SYSTEM, "open_xrcd: sharing the domain: %s",
				 strerror(-err));
	}
}

/*
 * The kernel shares a domain among all processes that can open the file. Here only processes of one
 * user share it.
 */
static void tell_of_others(const struct vb_xrc_domain *d)
{
	char name[VB_COMMONS_NAME];
	unsigned int uid;

	vb_xrc_file_name(&d->file, d->device->guid, name, sizeof(name));
	if (vb_seat_of_another(name, &uid))
		vb_note(VB_REASON_PEER_USER,
			"open_xrcd: user %u has a domain of this file; users do not share, this is another one",
			uid);
}

/* Other processes may have the domain of this file open. fd: the program's. */
static int share(struct vb_xrc_domain *d, int fd, int oflags)
{
	bool fresh = false;
	int err = vb_xrc_file_hold(fd, &d->file);

	if (err)
		return vb_refuse(-err, VB_REASON_SYSTEM, "open_xrcd: keeping the file: %s",
				 strerror(-err));
	err = engine_make(d);
	if (!err)
		err = vb_process_start_progress();
	if (err)
		return err;
	err = vb_xrc_table_join(d, oflags & O_CREAT, &fresh);
	if (err)
		return join_refused(err);
	if (!fresh && (oflags & O_EXCL))
		return vb_refuse(EINVAL, VB_REASON_BUSY,
				 "open_xrcd: O_EXCL, but the file has a domain");
	if (fresh)
		tell_of_others(d);
	vb_engine_take(d->engine);
	if (vb_xrc_table_survey(d))
		vb_xrc_look_again();
	vb_lock_release(&d->engine->lock);
	return 0;
}

/*
 * With vb_xrc_lock, which is released meanwhile. Makes the domain; other threads of this process
 * can find it from the beginning.
 */
static int domain_make(struct ibv_context *ctx, const struct ibv_xrcd_init_attr *attr,
		       const struct vb_xrc_file *file, struct vb_xrc_domain **out)
{
	struct vb_xrc_domain *d = domain_new(ctx, file);

	if (!d)
		return vb_refuse(ENOMEM, VB_REASON_NO_MEMORY, "open_xrcd");
	d->next = domains;
	domains = d;
	*out = d;
	if (!d->named)
		return 0;
	d->busy = true;
	vb_mutex_release(&vb_xrc_lock);
	int err = share(d, attr->fd, attr->oflags);

	vb_mutex_take(&vb_xrc_lock, VB_ORDER_XRC_DOMAINS);
	d->busy = false;
	return err;
}

/*
 * With vb_xrc_lock, which is released meanwhile. The domain that the attributes name, made if that
 * is wanted. *out also gets one that could not be joined.
 */
static int domain_get(struct ibv_context *ctx, const struct ibv_xrcd_init_attr *attr,
		      struct vb_xrc_domain **out)
{
	const struct vb_device *device = vb_context_of(ctx)->device;
	const struct timespec nap = {0, BUSY_NAP_NS};
	struct vb_xrc_file file;
	struct vb_xrc_domain *d;

	if (attr->fd == -1)
		return domain_make(ctx, attr, NULL, out);
	if (vb_xrc_file_look(attr->fd, &file))
		return vb_refuse(EBADF, VB_REASON_ARG, "open_xrcd: %d is no open descriptor",
				 attr->fd);
	while ((d = domain_find(device, &file)) && d->busy) {
		vb_mutex_release(&vb_xrc_lock);
		vb_sys_nanosleep(&nap);
		vb_mutex_take(&vb_xrc_lock, VB_ORDER_XRC_DOMAINS);
	}
	if (!d)
		return domain_make(ctx, attr, &file, out);
	if (attr->oflags & O_EXCL)
		return vb_refuse(EINVAL, VB_REASON_BUSY,
				 "open_xrcd: O_EXCL, but the file has a domain");
	*out = d;
	return 0;
}

static int attr_check(const struct ibv_xrcd_init_attr *attr)
{
	const uint32_t both = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;

	if (attr->comp_mask == both)
		return 0;
	return vb_refuse(EINVAL, VB_REASON_ARG_MASK,
			 "open_xrcd: comp_mask 0x%x, needed are FD and OFLAGS", attr->comp_mask);
}

int vb_xrcd_open(struct ibv_context *ctx, const struct ibv_xrcd_init_attr *attr,
		 struct ibv_xrcd **out)
{
	struct vb_xrc_domain *domain = NULL;
	struct vb_xrcd *x;
	int err = attr_check(attr);

	if (err)
		return err;
	x = calloc(1, sizeof(*x));
	if (!x)
		return vb_refuse(ENOMEM, VB_REASON_NO_MEMORY, "open_xrcd");
	x->xrcd.context = ctx;
	vb_mutex_take(&vb_xrc_lock, VB_ORDER_XRC_DOMAINS);
	err = domain_get(ctx, attr, &domain);
	if (!err)
		err = vb_context_add(ctx, VB_HANDLE_XRCD, x, &x->handle);
	if (!err) {
		x->domain = domain;
		x->next = domain->xrcds;
		domain->xrcds = x;
	}
	if (domain && !domain->xrcds)
		domain_unlink(domain);
	else
		domain = NULL;
	vb_mutex_release(&vb_xrc_lock);
	if (domain)
		domain_destroy(domain);
	if (err)
		free(x);
	else
		*out = &x->xrcd;
	return err;
}

/*
 * Under vb_xrc_lock. Bodies need a context that is open. Returns the domain, if this was its last
 * opening.
 */
static struct vb_xrc_domain *unlink_xrcd(struct vb_xrcd *x)
{
	struct vb_xrc_domain *d = x->domain;

	for (struct vb_xrcd **p = &d->xrcds; *p; p = &(*p)->next) {
		if (*p == x) {
			*p = x->next;
			break;
		}
	}
	if (d->xrcds) {
		vb_xrc_bodies_rebase(d, d->xrcds->xrcd.context);
		return NULL;
	}
	domain_unlink(d);
	return d;
}

int vb_xrcd_close(struct ibv_xrcd *xrcd)
{
	struct vb_xrcd *x = vb_xrcd_of(xrcd);
	struct vb_xrc_domain *last = NULL;
	int err;

	vb_mutex_take(&vb_xrc_lock, VB_ORDER_XRC_DOMAINS);
	err = vb_context_check(xrcd->context, VB_HANDLE_XRCD, x->handle, x, "xrcd");
	if (!err && x->users)
		err = vb_refuse(EBUSY, VB_REASON_BUSY,
				"close_xrcd: %u queues and queue pairs use it", x->users);
	if (!err)
		err = vb_context_remove(xrcd->context, VB_HANDLE_XRCD, x->handle, x);
	if (!err)
		last = unlink_xrcd(x);
	vb_mutex_release(&vb_xrc_lock);
	if (last)
		domain_destroy(last);
	if (!err)
		free(x);
	return err;
}

/* The context is being closed, and the users of the domain have ended. The object stays. */
static void end(struct vb_context *c, void *object, uint32_t handle)
{
	struct vb_xrcd *x = object;
	struct vb_xrc_domain *last;

	vb_mutex_take(&vb_xrc_lock, VB_ORDER_XRC_DOMAINS);
	vb_context_remove(&c->vctx.context, VB_HANDLE_XRCD, handle, x);
	last = unlink_xrcd(x);
	vb_mutex_release(&vb_xrc_lock);
	if (last)
		domain_destroy(last);
}

int vb_xrcd_get(struct ibv_context *ctx, struct ibv_xrcd *xrcd)
{
	struct vb_xrcd *x = vb_xrcd_of(xrcd);
	int err;

	vb_mutex_take(&vb_xrc_lock, VB_ORDER_XRC_DOMAINS);
	err = vb_context_check(ctx, VB_HANDLE_XRCD, x->handle, x, "xrcd");
	if (!err)
		err = engine_make(x->domain);
	if (!err)
		x->users++;
	vb_mutex_release(&vb_xrc_lock);
	return err;
}

void vb_xrcd_put(struct vb_xrcd *x)
{
	vb_mutex_take(&vb_xrc_lock, VB_ORDER_XRC_DOMAINS);
	x->users--;
	vb_mutex_release(&vb_xrc_lock);
}

/* True if it must be called again. */
static bool survey(void)
{
	bool unsettled = false;

	vb_mutex_take(&vb_xrc_lock, VB_ORDER_XRC_DOMAINS);
	for (struct vb_xrc_domain *d = domains; d; d = d->next) {
		if (!d->table || d->busy)
			continue;
		vb_engine_take(d->engine);
		unsettled |= vb_xrc_table_survey(d);
		vb_engine_flush(d->engine);
		vb_lock_release(&d->engine->lock);
	}
	vb_mutex_release(&vb_xrc_lock);
	return unsettled;
}

/*
 * A process is known to be dead before the kernel has closed its sockets, whose names its successor
 * needs. So the survey is repeated soon, and then at growing intervals, as long as a queue pair has
 * no home.
 */
#define AGAIN_FIRST_NS 2000000ull
#define AGAIN_MOST_NS  500000000ull
static _Atomic uint64_t again_at, again_ns;

void vb_xrc_survey(void)
{
	vb_mutex_take(&vb_xrc_lock, VB_ORDER_XRC_DOMAINS);
	bool any = domains != NULL;

	vb_mutex_release(&vb_xrc_lock);
	if (!any)
		return;
	survey();
	atomic_store(&again_ns, AGAIN_FIRST_NS);
	atomic_store(&again_at, vb_clock_ns() + AGAIN_FIRST_NS);
}

void vb_xrc_look_again(void)
{
	uint64_t at = vb_clock_ns() + AGAIN_FIRST_NS;

	atomic_store(&again_ns, AGAIN_FIRST_NS);
	atomic_store(&again_at, at);
	vb_progress_expect(at);
}

/* Repeats the survey when that is due. */
static uint64_t serve(void)
{
	uint64_t at = atomic_load(&again_at);

	if (!at || vb_clock_ns() < at)
		return at;
	uint64_t delay = atomic_load(&again_ns) * 2;
	bool unsettled = survey();

	if (delay > AGAIN_MOST_NS) {
		delay = AGAIN_MOST_NS;
		at = unsettled ? vb_clock_ns() + delay : 0;
	} else {
		at = vb_clock_ns() + delay;
	}
	atomic_store(&again_ns, delay);
	atomic_store(&again_at, at);
	return at;
}

/* In a forked child the domains are the parent's. */
static void forked(void)
{
	pthread_mutex_init(&vb_xrc_lock, NULL);
	domains = NULL;
}

VB_PROCESS_HOOK(.contact_changed = vb_xrc_survey);

VB_PROGRESS_HOOK(.serve = serve);

VB_FORK_HOOK(.phase = VB_FORK_ROOMS, .child = forked);

const struct vb_object_type vb_xrcd_type = {
	.name = "xrcd",
	.limit = VB_MAX_XRCD,
	.end = end,
};
