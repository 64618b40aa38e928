/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The life of a connection: its number, the lists that it is in, its end. */
#include <errno.h>
#include <string.h>

#include "cm/core.h"

/* The next number that no connection has, or 0. At most three quarters of them are given away. */
static uint32_t new_id(struct vb_cm *cm)
{
	if (cm->conns >= cm->id_mask / 4 * 3)
		return 0;
	for (;;) {
		uint32_t id = cm->id_base | (cm->id_next & cm->id_mask);

		cm->id_next += cm->id_step;
		if (id && id != vb_cm_question_id(cm) && !vb_cm_by_local(cm, id))
			return id;
	}
}

int vb_cm_conn_new(struct vb_cm *cm, const struct vb_cm_path *path, struct vb_cm_conn **conn)
{
	uint32_t id = new_id(cm);
	struct vb_cm_conn *c;

	if (!id) {
		cm->env->drop(cm, VB_REASON_CM_NO_IDS, path, NULL);
		return -EADDRNOTAVAIL;
	}
	c = cm->env->conn_alloc(cm);
	if (!c) {
		cm->env->drop(cm, VB_REASON_CM_NO_MEMORY, path, NULL);
		return -ENOMEM;
	}
	memset(c, 0, sizeof(*c));
	c->state = VB_CM_IDLE;
	c->local_id = id;
	c->path = *path;
	c->tid = (uint64_t)cm->agent << 32 | id;
	vb_cm_link_add(&cm->by_local[id % VB_CM_BUCKETS], &c->by_local);
	cm->conns++;
	*conn = c;
	return 0;
}

static void forget_answer(struct vb_cm *cm, struct vb_cm_conn *conn)
{
	if (!vb_cm_linked(&conn->remembered))
		return;
	if (!conn->remembered.next)
		cm->newest = conn->remembered.place;
	vb_cm_link_remove(&conn->remembered);
	cm->remembered--;
}

void vb_cm_publish(struct vb_cm *cm, struct vb_cm_conn *conn)
{
	if (!conn->place && cm->env->publish)
		cm->env->publish(cm, conn);
}

static void withdraw(struct vb_cm *cm, struct vb_cm_conn *conn)
{
	if (conn->place && cm->env->withdraw)
		cm->env->withdraw(cm, conn);
	conn->place = 0;
}

void vb_cm_conn_idle(struct vb_cm *cm, struct vb_cm_conn *conn)
{
	withdraw(cm, conn);
	conn->state = VB_CM_IDLE;
	vb_cm_retry_stop(cm, conn);
	vb_cm_link_remove(&conn->by_remote);
	vb_cm_link_remove(&conn->by_qpn);
	forget_answer(cm, conn);
}

void vb_cm_conn_put(struct vb_cm *cm, struct vb_cm_conn *conn)
{
	if (!conn->released || conn->state != VB_CM_IDLE)
		return;
	vb_cm_unread_remove(cm, conn);
	vb_cm_link_remove(&conn->by_local);
	cm->conns--;
	cm->env->conn_free(cm, conn);
}

void vb_cm_conn_timewait(struct vb_cm *cm, struct vb_cm_conn *conn, uint64_t now)
{
	withdraw(cm, conn);
	vb_cm_wait_end(cm, conn);
	conn->state = VB_CM_TIMEWAIT;
	vb_cm_link_remove(&conn->by_qpn);
	vb_cm_heap_set(&cm->timers, &conn->timer, now + cm->times.timewait);
}

/* The oldest answer makes room for a new one. */
static void make_room(struct vb_cm *cm)
{
	struct vb_cm_conn *conn;

	if (cm->remembered < VB_CM_REMEMBERED_MOST)
		return;
	conn = (struct vb_cm_conn *)(void *)((char *)cm->oldest -
					     offsetof(struct vb_cm_conn, remembered));
	vb_cm_conn_idle(cm, conn);
	vb_cm_conn_put(cm, conn);
}

void vb_cm_conn_remember(struct vb_cm *cm, struct vb_cm_conn *conn, enum vb_cm_state state,
			 uint64_t now)
{
	uint64_t time = cm->times.remember;

	make_room(cm);
	withdraw(cm, conn);
	vb_cm_wait_end(cm, conn);
	conn->state = (uint8_t)state;
	vb_cm_link_remove(&conn->by_qpn);
	vb_cm_link_add(cm->newest, &conn->remembered);
	cm->newest = &conn->remembered.next;
	cm->remembered++;
	/* A peer that was asked for time tries again only when it is over. */
	if (conn->mra)
		time += vb_cm_mra_ns(VB_CM_MRA_TIMEOUT);
	conn->give_up = now + time;
	vb_cm_heap_set(&cm->timers, &conn->timer, conn->give_up);
}

bool vb_cm_report(struct vb_cm *cm, struct vb_cm_conn *conn, const struct vb_cm_event *event)
{
	if (conn->released)
		return true;
	if (event->type == VB_CM_EVENT_DISCONNECTED) {
		if (conn->disconnected)
			return true;
		conn->disconnected = true;
	}
	return cm->env->event(cm, conn, event);
}

void vb_cm_report_plain(struct vb_cm *cm, struct vb_cm_conn *conn, enum vb_cm_event_type type,
			int status)
{
	const struct vb_cm_event event = {
		.type = type,
		.status = status,
		.path = &conn->path,
		.service = conn->service,
		.service_id = conn->service_id,
	};

	vb_cm_report(cm, conn, &event);
}

void vb_cm_established(struct vb_cm *cm, struct vb_cm_conn *conn, uint64_t now)
{
	vb_cm_retry_stop(cm, conn);
	conn->established = true;
	conn->state = VB_CM_ESTABLISHED;
	if (conn->closing)
		vb_cm_send_dreq(cm, conn, now);
	else
		vb_cm_report_plain(cm, conn, VB_CM_EVENT_ESTABLISHED, 0);
}

void vb_cm_disconnected(struct vb_cm *cm, struct vb_cm_conn *conn, int status, uint64_t now)
{
	vb_cm_conn_timewait(cm, conn, now);
	/* A peer that did not see REP repeats REQ, which must not look like a new one. */
	if (!conn->active && !conn->established)
		vb_cm_heap_set(&cm->timers, &conn->timer, now + cm->times.remember);
	vb_cm_report_plain(cm, conn, VB_CM_EVENT_DISCONNECTED, status);
}
