/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Listeners: which one takes a request, and how many requests wait for the program. */
#include <errno.h>
#include <string.h>

#include "cm/core.h"
#include "cm/port_rule.h"

#define LISTENER(l) \
	((struct vb_cm_listener *)(void *)((char *)(l)-offsetof(struct vb_cm_listener, link)))
#define UNREAD(l) ((struct vb_cm_conn *)(void *)((char *)(l)-offsetof(struct vb_cm_conn, unread)))

static struct vb_cm_link **chain(struct vb_cm *cm, uint64_t service_id)
{
	uint64_t bucket = vb_cm_hash(cm, &service_id, sizeof(service_id)) % VB_CM_LISTENER_BUCKETS;

	return &cm->listeners[bucket];
}

static struct vb_port_binding binding(const struct vb_cm_listener *listener)
{
	struct vb_port_binding b = {.scope = listener->scope, .afonly = listener->afonly};

	memcpy(b.address, listener->address, sizeof(b.address));
	return b;
}

static unsigned int backlog(const struct vb_cm_listener *listener)
{
	return listener->backlog > 0 && listener->backlog < (int)VB_CM_BACKLOG_MOST
		       ? (unsigned int)listener->backlog
		       : VB_CM_BACKLOG_MOST;
}

int vb_cm_listen(struct vb_cm *cm, struct vb_cm_listener *listener)
{
	struct vb_cm_link **head = chain(cm, listener->service_id);
	struct vb_port_binding mine = binding(listener);

	for (struct vb_cm_link *link = *head; link; link = link->next) {
		const struct vb_cm_listener *other = LISTENER(link);
		struct vb_port_binding theirs = binding(other);

		if (other->service_id == listener->service_id &&
		    other->service == listener->service && vb_port_listen_verdict(&mine, &theirs))
			return -EADDRINUSE;
	}
	listener->unread = NULL;
	listener->unreads = 0;
	listener->link = (struct vb_cm_link){NULL, NULL};
	vb_cm_link_add(head, &listener->link);
	return 0;
}

void vb_cm_unlisten(struct vb_cm *cm, struct vb_cm_listener *listener)
{
	vb_cm_link_remove(&listener->link);
	while (listener->unread) {
		struct vb_cm_conn *conn = UNREAD(listener->unread);

		vb_cm_unread_remove(cm, conn);
		if (!vb_cm_linked(&conn->later))
			continue;
		/* The program knows nothing of it. The next try of its sender finds no listener. */
		vb_cm_conn_idle(cm, conn);
		vb_cm_conn_put(cm, conn);
	}
}

struct vb_cm_listener *vb_cm_listener_any(struct vb_cm *cm, uint64_t service_id, bool sidr)
{
	struct vb_cm_link *link = *chain(cm, service_id);

	for (; link; link = link->next) {
		struct vb_cm_listener *listener = LISTENER(link);

		if (listener->service_id == service_id && (listener->service == VB_CM_UD) == sidr)
			return listener;
	}
	return NULL;
}

struct vb_cm_listener *vb_cm_listener_find(struct vb_cm *cm, uint64_t service_id, uint8_t service,
					   const uint8_t destination[16], uint32_t scope)
{
	struct vb_cm_link *link = *chain(cm, service_id);
	enum vb_port_fit best = VB_PORT_FIT_NONE;
	struct vb_cm_listener *found = NULL;

	for (; link; link = link->next) {
		struct vb_cm_listener *listener = LISTENER(link);
		struct vb_port_binding b = binding(listener);
		enum vb_port_fit fit;

		if (listener->service_id != service_id || listener->service != service)
			continue;
		fit = vb_port_fit(&b, destination, scope);
		if (fit > best) {
			best = fit;
			found = listener;
		}
	}
	return found;
}

bool vb_cm_listener_room(const struct vb_cm *cm, const struct vb_cm_listener *listener,
			 unsigned int spare)
{
	return listener->unreads < vb_cm_with_spare(backlog(listener), spare) &&
	       cm->unreads < vb_cm_with_spare(VB_CM_UNREAD_MOST, spare);
}

void vb_cm_unread_add(struct vb_cm *cm, struct vb_cm_listener *listener, struct vb_cm_conn *conn)
{
	conn->listener = listener;
	vb_cm_link_add(&listener->unread, &conn->unread);
	listener->unreads++;
	cm->unreads++;
}

void vb_cm_unread_remove(struct vb_cm *cm, struct vb_cm_conn *conn)
{
	if (!conn->listener)
		return;
	vb_cm_link_remove(&conn->unread);
	conn->listener->unreads--;
	conn->listener = NULL;
	cm->unreads--;
}

void vb_cm_taken(struct vb_cm *cm, struct vb_cm_conn *conn)
{
	vb_cm_unread_remove(cm, conn);
	vb_cm_wait_end(cm, conn);
}
