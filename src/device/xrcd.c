/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ibv_open_xrcd(3), ibv_close_xrcd(3): domains by inode, who has them open, and who uses them. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/random.h"
#include "device/context.h"
#include "device/device.h"
#include "device/engine.h"
#include "device/limits.h"
#include "device/xrc.h"

pthread_mutex_t vb_xrc_lock = PTHREAD_MUTEX_INITIALIZER;
static struct vb_xrc_domain *domains;

static struct vb_xrc_domain *domain_find(const struct vb_device *device, const struct stat *st)
{
	struct vb_xrc_domain *d = domains;

	while (d &&
	       !(d->named && d->device == device && d->dev == st->st_dev && d->ino == st->st_ino))
		d = d->next;
	return d;
}

static void domain_free(struct vb_xrc_domain *d)
{
	if (d->srq)
		munmap(d->srq, VB_XRC_SRQS * sizeof(*d->srq));
	free(d);
}

static struct vb_xrc_domain *domain_new(const struct vb_device *device, const struct stat *st)
{
	struct vb_xrc_domain *d = calloc(1, sizeof(*d));
	void *map;

	if (!d)
		return NULL;
	/* Touched as it is used. */
	map = mmap(NULL, VB_XRC_SRQS * sizeof(*d->srq), PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	d->srq = map == MAP_FAILED ? NULL : map;
	if (!d->srq) {
		domain_free(d);
		return NULL;
	}
	d->device = device;
	d->named = st != NULL;
	d->next_srq = vb_random32(); /* a number of another domain should be noticed */
	if (st) {
		d->dev = st->st_dev;
		d->ino = st->st_ino;
	}
	d->next = domains;
	domains = d;
	return d;
}

static void domain_destroy(struct vb_xrc_domain *d)
{
	for (struct vb_xrc_domain **p = &domains; *p; p = &(*p)->next) {
		if (*p == d) {
			*p = d->next;
			break;
		}
	}
	if (d->engine)
		vb_engine_destroy(d->engine);
	domain_free(d);
}

/* Under the lock. The domain that the attributes name; made if that is wanted. */
static int domain_get(struct ibv_context *ctx, const struct ibv_xrcd_init_attr *attr,
		      struct vb_xrc_domain **out)
{
	const struct vb_device *device = vb_context_of(ctx)->device;
	struct vb_xrc_domain *d = NULL;
	struct stat st;

	if (attr->fd != -1) {
		if (fstat(attr->fd, &st))
			return vb_refuse(EBADF, VB_REASON_ARG,
					 "open_xrcd: %d is no open descriptor", attr->fd);
		d = domain_find(device, &st);
		if (d && (attr->oflags & O_EXCL))
			return vb_refuse(EINVAL, VB_REASON_BUSY,
					 "open_xrcd: O_EXCL, but the file has a domain");
		if (!d && !(attr->oflags & O_CREAT))
			return vb_refuse(EAGAIN, VB_REASON_ARG,
					 "open_xrcd: the file has no domain, and no O_CREAT");
	}
	if (!d)
		d = domain_new(device, attr->fd == -1 ? NULL : &st);
	*out = d;
	return d ? 0 : vb_refuse(ENOMEM, VB_REASON_NO_MEMORY, "open_xrcd");
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
	pthread_mutex_lock(&vb_xrc_lock);
	err = domain_get(ctx, attr, &domain);
	if (!err)
		err = vb_context_add(ctx, VB_HANDLE_XRCD, x, &x->handle);
	if (!err) {
		x->domain = domain;
		x->next = domain->xrcds;
		domain->xrcds = x;
	} else if (domain && !domain->xrcds) {
		domain_destroy(domain);
	}
	pthread_mutex_unlock(&vb_xrc_lock);
	if (err)
		free(x);
	else
		*out = &x->xrcd;
	return err;
}

/* Under the lock. Bodies look at their device through a context that is open. */
static void unlink_xrcd(struct vb_xrcd *x)
{
	struct vb_xrc_domain *d = x->domain;

	for (struct vb_xrcd **p = &d->xrcds; *p; p = &(*p)->next) {
		if (*p == x) {
			*p = x->next;
			break;
		}
	}
	if (!d->xrcds)
		domain_destroy(d);
	else if (d->engine)
		vb_xrc_bodies_rebase(d, d->xrcds->xrcd.context);
}

int vb_xrcd_close(struct ibv_xrcd *xrcd)
{
	struct vb_xrcd *x = vb_xrcd_of(xrcd);
	int err;

	pthread_mutex_lock(&vb_xrc_lock);
	err = vb_context_check(xrcd->context, VB_HANDLE_XRCD, x->handle, x, "xrcd");
	if (!err && x->users)
		err = vb_refuse(EBUSY, VB_REASON_BUSY,
				"close_xrcd: %u queues and queue pairs use it", x->users);
	if (!err)
		err = vb_context_remove(xrcd->context, VB_HANDLE_XRCD, x->handle, x);
	if (!err)
		unlink_xrcd(x);
	pthread_mutex_unlock(&vb_xrc_lock);
	if (!err)
		free(x);
	return err;
}

int vb_xrcd_get(struct ibv_context *ctx, struct ibv_xrcd *xrcd)
{
	struct vb_xrcd *x = vb_xrcd_of(xrcd);
	int err;

	pthread_mutex_lock(&vb_xrc_lock);
	err = vb_context_check(ctx, VB_HANDLE_XRCD, x->handle, x, "xrcd");
	if (!err && !x->domain->engine)
		err = vb_engine_create(&x->domain->engine);
	if (!err)
		x->users++;
	pthread_mutex_unlock(&vb_xrc_lock);
	return err;
}

void vb_xrcd_put(struct vb_xrcd *x)
{
	pthread_mutex_lock(&vb_xrc_lock);
	x->users--;
	pthread_mutex_unlock(&vb_xrc_lock);
}

void vb_xrc_forked(void)
{
	pthread_mutex_init(&vb_xrc_lock, NULL);
	domains = NULL;
}
