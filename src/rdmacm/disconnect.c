/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rdma_disconnect(3). */
#include "base/clock.h"
#include "base/lock.h"
#include "rdmacm/face.h"
#include "rdmacm/id.h"
#include "rdmacm/manager.h"
#include "rdmacm/qp.h"
#include "rdmacm/sync.h"

static int check(const struct vb_cma_id *id)
{
	int err = vb_cma_id_check(id, "disconnect");

	if (!err && (!id->pub.verbs || !id->conn))
		err = vb_cma_id_refuse_state(id, "disconnect");
	return err;
}

VB_EXPORT int rdma_disconnect(struct rdma_cm_id *pub)
{
	struct vb_cma_id *id = vb_cma_id_of(pub);
	int err = check(id);
	struct vb_cm *cm;
	bool follows, removed;

	if (err)
		return vb_cma_answer(err);
	vb_cma_qp_error(id);
	cm = vb_cma_manager_take();
	/* One that is over already is no failure. */
	(void)vb_cm_disconnect(cm, id->conn, vb_clock_ns());
	follows = vb_cm_is_disconnecting(id->conn);
	removed = id->state == VB_CMA_REMOVED;
	vb_cma_manager_release();
	/* Of what is over, or has no device any more, no event follows; it may be one that waits. */
	if (removed || !(follows || vb_cma_event_waits(id)))
		return 0;
	return vb_cma_answer(vb_cma_sync_wait(id));
}
