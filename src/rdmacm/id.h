/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Ids: what a program holds of a conversation, and what the library knows of it beside.
 *
 * An id has one lock, for its state, its addresses and its list of events. Nothing of the program is
 * called under it, and nothing waits for the program under it. Order: the core (rdmacm/manager.h), the
 * list of ids (rdmacm/id_list.h), an id, the devices, a channel's queue (base/lock_order.h). The
 * program's own members (context, qp, and what it may set) are read when a call needs them,
 * without the lock, as the manual pages have it.
 */
#ifndef VB_RDMACM_ID_H
#define VB_RDMACM_ID_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <rdma/rdma_cma.h>

#include "cm/cm.h"
#include "rdmacm/channel.h"
#include "rdmacm/devices.h"
#include "rdmacm/event.h"
#include "rdmacm/exchange.h"

enum vb_cma_state {
	VB_CMA_IDLE,
	VB_CMA_BOUND,
	VB_CMA_ADDR_RESOLVED,
	VB_CMA_ROUTE_RESOLVED,
	VB_CMA_LISTENING,
	VB_CMA_CONNECTING, /* either side, until ESTABLISHED */
	VB_CMA_CONNECTED,
	VB_CMA_DISCONNECTED,
	VB_CMA_REMOVED, /* its device is gone */
	VB_CMA_STATES
};

/* What rdma_set_option(3) has set. */
struct vb_cma_options {
	uint8_t tos;
	uint8_t ack_timeout;
	bool ack_timeout_set;
	bool reuse;
	bool afonly;
	bool afonly_set;
};

struct vb_cma_id {
	struct rdma_cm_id pub;
	pthread_mutex_t lock;
	pthread_cond_t acked;                      /* an event was acknowledged */
	struct vb_cma_event *events, **events_end; /* not acknowledged, oldest first */
	struct vb_cma_event *reserve;              /* linked by `next` */
	unsigned int reserved;
	struct vb_cma_channel *channel;
	struct vb_cma_id *list_next, **list_place; /* rdmacm/id_list.h; place NULL: not in it */
	uint32_t generation;
	enum vb_cma_state state;
	bool sync; /* the channel is the id's own, and calls wait for their events */
	struct vb_cma_options options;

	struct vb_cma_place place; /* where the id is bound; place.device NULL: nowhere */
	uint64_t port;             /* its port: rdmacm/port.h; 0: none */
	uint32_t mtu;              /* bytes that the interface carries */
	struct ibv_sa_path_rec *paths;

	/* Of the core, and written under its lock. */
	struct vb_cm_conn *conn;
	struct vb_cm_listener *listener;
	bool requested; /* made for a request that waits for rdma_accept() */
	bool failed;    /* CONNECT_ERROR was reported: the end of the exchange is not */
	struct vb_cma_exchange exchange;
	struct ibv_ece ece, remote_ece;
	struct vb_cma_group *groups; /* joined: multicast_join.c */
	struct rdma_addrinfo *info;  /* of rdma_resolve_addrinfo(), until it is asked for */
	struct vb_cma_resolution *resolution; /* what is looked up: addrinfo_event.c */

	/* Queues that the library made for the id, and ends with its queue pair or its srq. */
	struct ibv_cq *made_send_cq, *made_recv_cq, *made_srq_cq;
	struct ibv_comp_channel *made_send_channel, *made_recv_channel, *made_srq_channel;
	/* rdma_create_ep(3): of the queue pairs of requests, and first private data. */
	bool ep_qp;
	struct ibv_qp_init_attr ep_attr;
	struct ibv_pd *ep_pd;
	void *ep_connect;
	size_t ep_connect_len;
};

static inline struct vb_cma_id *vb_cma_id_of(struct rdma_cm_id *id)
{
	return (struct vb_cma_id *)(void *)id;
}

const char *vb_cma_state_name(enum vb_cma_state state);

/* -EINVAL: NULL; -ENODEV: it is the parent process's. */
int vb_cma_id_check(const struct vb_cma_id *id, const char *call);
/* -EINVAL: the id is in another state. */
int vb_cma_id_refuse_state(const struct vb_cma_id *id, const char *call);

static inline bool vb_cma_id_is_datagram(const struct vb_cma_id *id)
{
	return id->pub.qp_type == IBV_QPT_UD;
}

/* An id with one reference to the channel; NULL makes it synchronous. */
int vb_cma_id_create(struct vb_cma_channel *channel, void *context, enum rdma_port_space ps,
		     enum ibv_qp_type type, struct vb_cma_id **id);

/* The id becomes synchronous, with a channel of its own. It has no events, and no lock is held. */
int vb_cma_id_make_sync(struct vb_cma_id *id);

/* Ends the id's part in the core: what the peer must learn is sent, and nothing is reported any more. */
void vb_cma_id_leave_core(struct vb_cma_id *id);

/* Frees an id that the program does not have, and that has no events: as it is, or after leaving the core. */
void vb_cma_id_free(struct vb_cma_id *id);
void vb_cma_id_drop(struct vb_cma_id *id);

#endif
