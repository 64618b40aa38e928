/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The parts of queue pairs and engines: making and freeing them. */
#include "remote/part.h"

#include <errno.h>
#include <stdlib.h>

#include "base/reason.h"
#include "engine/engine.h"
#include "engine/link.h"
#include "engine/qp.h"
#include "remote/inbox.h"
#include "remote/udp.h"

#define STAGING_BYTES 65536u
#define PAGE          4096u

struct vb_remote_qp *vb_remote_qp(struct vb_qp *qp)
{
	if (!qp->remote)
		qp->remote = calloc(1, sizeof(*qp->remote));
	if (!qp->remote)
		(void)vb_refuse(ENOMEM, VB_REASON_NO_MEMORY, "a queue pair's link between hosts");
	return qp->remote;
}

struct vb_remote_engine *vb_remote_engine(struct vb_engine *e)
{
	struct vb_remote_engine *r = e->remote;

	if (r)
		return r;
	r = calloc(1, sizeof(*r));
	if (!r)
		return NULL;
	__atomic_store_n(&e->remote, r, __ATOMIC_RELEASE); /* for other engines' drives */
	vb_engine_join_link(e, &vb_udp_link);
	return r;
}

/*
 * Programs' buffers and packets of the kernel mostly begin near the start of a page. Processors
 * copy several times slower where the destination is a few bytes behind the source within a page
 * (AMD's Zen 3 and 4: `rep movsb`, which the kernel uses). So the staging buffer begins in the
 * middle of a page.
 */
static void staging_create(struct vb_remote_engine *r)
{
	r->staging_memory = aligned_alloc(PAGE, STAGING_BYTES + PAGE);
	if (r->staging_memory)
		r->staging = (uint8_t *)r->staging_memory + PAGE / 2;
}

int vb_udp_engine_init(struct vb_engine *e)
{
	struct vb_remote_engine *r = vb_remote_engine(e);

	if (r && !r->staging)
		staging_create(r);
	if (r && !r->inbox) /* other engines' drives see it from now on */
		__atomic_store_n(&r->inbox, vb_udp_inbox_create(), __ATOMIC_RELEASE);
	if (!r || !r->staging || !r->inbox)
		return vb_refuse(ENOMEM, VB_REASON_NO_MEMORY, "udp buffers of an engine");
	return 0;
}

void vb_udp_engine_fini(struct vb_engine *e)
{
	free(e->remote->staging_memory);
	vb_udp_inbox_destroy(e->remote->inbox);
	free(e->remote);
	e->remote = NULL;
}
