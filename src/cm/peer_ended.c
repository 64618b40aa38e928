/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A process of this host was killed. Its carrier knows that, so nobody waits for messages that do not
 * come: each connection with it ends as by the last word that was left unsaid (close.c).
 */
#include <errno.h>

#include "cm/core.h"

#define BY_LOCAL(l) \
	((struct vb_cm_conn *)(void *)((char *)(l)-offsetof(struct vb_cm_conn, by_local)))

/* As by a REJ. A late copy of its REQ must not look like a new one (receive.c). */
static void rejected(struct vb_cm *cm, struct vb_cm_conn *conn, uint16_t reason, uint64_t now)
{
	static const uint8_t nothing[VB_CM_PRIVATE_REJ];
	const struct vb_cm_event event = {
		.type = VB_CM_EVENT_REJECTED,
		.status = reason,
		.private_data = nothing,
		.private_length = VB_CM_PRIVATE_REJ,
		.service = conn->service,
		.service_id = conn->service_id,
		.path = &conn->path,
	};

	if (conn->closing) {
		vb_cm_disconnected(cm, conn, 0, now);
		return;
	}
	if (conn->active)
		vb_cm_conn_idle(cm, conn);
	else
		vb_cm_conn_timewait(cm, conn, now);
	vb_cm_report(cm, conn, &event);
	vb_cm_conn_put(cm, conn);
}

/* May free the connection. */
static void end(struct vb_cm *cm, struct vb_cm_conn *conn, uint64_t now)
{
	switch (conn->state) {
	case VB_CM_REQ_SENT:
		/* Who asked for time will not answer: somebody else says so to the next try. */
		if (conn->mra)
			vb_cm_heap_set(&cm->timers, &conn->timer, now);
		break;
	case VB_CM_REQ_RCVD:
		rejected(cm, conn, VB_CM_REJ_TIMEOUT, now);
		break;
	case VB_CM_REP_RCVD:
	case VB_CM_REP_SENT:
		rejected(cm, conn, VB_CM_REJ_CONSUMER, now);
		break;
	case VB_CM_ESTABLISHED:
	case VB_CM_DREQ_SENT:
		vb_cm_disconnected(cm, conn, 0, now);
		break;
	default:
		break;
	}
}

void vb_cm_peer_ended(struct vb_cm *cm, uint32_t id_base, unsigned int id_bits,
		      bool (*is_near)(const uint8_t gid[16]), uint64_t now)
{
	for (unsigned int i = 0; i < VB_CM_BUCKETS; i++) {
		struct vb_cm_link *link = cm->by_local[i];

		while (link) {
			struct vb_cm_conn *conn = BY_LOCAL(link);
			uint32_t peer = conn->state == VB_CM_REQ_SENT ? conn->asker
								      : conn->remote_id;

			link = link->next;
			if (peer >> id_bits == id_base >> id_bits && is_near(conn->path.dgid))
				end(cm, conn, now);
		}
	}
}
