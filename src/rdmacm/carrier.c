/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The core between the carrier and the calls. */
#include "rdmacm/manager.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/lock.h"
#include "base/random.h"
#include "gsi/gsi.h"
#include "rdmacm/devices.h"
#include "rdmacm/face.h"
#include "rdmacm/removal.h"
#include "rdmacm/report.h"

static pthread_mutex_t open_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t core_lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool opened;
static struct vb_cm core;

static void send_mad(struct vb_cm *cm, const struct vb_cm_path *path,
		     const uint8_t mad[VB_MAD_BYTES])
{
	struct vb_gsi_mad out = {
		.flow_label = path->flow_label,
		.traffic_class = path->traffic_class,
		.hop_limit = path->hop_limit,
	};

	(void)cm;
	memcpy(out.sgid, path->sgid, sizeof(out.sgid));
	memcpy(out.dgid, path->dgid, sizeof(out.dgid));
	memcpy(out.data, mad, sizeof(out.data));
	(void)vb_gsi_send(&out); /* as lost as a datagram can be: it is sent again */
}

static struct vb_cm_conn *conn_alloc(struct vb_cm *cm)
{
	(void)cm;
	return malloc(sizeof(struct vb_cm_conn));
}

static void conn_free(struct vb_cm *cm, struct vb_cm_conn *conn)
{
	(void)cm;
	free(conn);
}

/* Of peers on this host the carrier tells itself when they end. */
static void publish(struct vb_cm *cm, struct vb_cm_conn *conn)
{
	struct vb_gsi_connection c = {
		.comm_id = conn->local_id,
		.remote_id = conn->remote_id,
		.remote_qpn = conn->remote_qpn,
	};

	(void)cm;
	if (vb_gsi_is_near(conn->path.dgid))
		return;
	memcpy(c.sgid, conn->path.sgid, sizeof(c.sgid));
	memcpy(c.dgid, conn->path.dgid, sizeof(c.dgid));
	conn->place = vb_gsi_publish(&c);
}

static void withdraw(struct vb_cm *cm, struct vb_cm_conn *conn)
{
	(void)cm;
	vb_gsi_withdraw(conn->place);
}

static uint32_t random_number(struct vb_cm *cm)
{
	(void)cm;
	return vb_random32();
}

static void drop(struct vb_cm *cm, enum vb_reason reason, const struct vb_cm_path *path,
		 const uint8_t *mad)
{
	char own[INET6_ADDRSTRLEN] = "?", peer[INET6_ADDRSTRLEN] = "?";

	(void)cm;
	(void)mad;
	if (path) {
		inet_ntop(AF_INET6, path->sgid, own, sizeof(own));
		inet_ntop(AF_INET6, path->dgid, peer, sizeof(peer));
	}
	vb_note(reason, "connection manager: own address %s, peer %s", own, peer);
}

static const struct vb_cm_env env = {
	.send = send_mad,
	.event = vb_cma_report,
	.conn_alloc = conn_alloc,
	.conn_free = conn_free,
	.publish = publish,
	.withdraw = withdraw,
	.random = random_number,
	.drop = drop,
};

static void receive(void *arg, const struct vb_gsi_mad *mad)
{
	struct vb_cm_path path = {
		.ifindex = mad->ifindex,
		.flow_label = mad->flow_label,
		.traffic_class = mad->traffic_class,
		.hop_limit = mad->hop_limit,
		.near = !mad->wire,
	};

	(void)arg;
	if (!atomic_load_explicit(&opened, memory_order_acquire))
		return;
	memcpy(path.sgid, mad->dgid, sizeof(path.sgid));
	memcpy(path.dgid, mad->sgid, sizeof(path.dgid));
	path.guid = vb_cma_device_guid(mad->ifindex);
	vb_mutex_take(&core_lock, VB_ORDER_CM_CORE);
	vb_cm_receive(&core, &path, mad->data, sizeof(mad->data), vb_clock_ns());
	vb_mutex_release(&core_lock);
}

static uint64_t serve(void *arg)
{
	uint64_t next;

	(void)arg;
	if (!atomic_load_explicit(&opened, memory_order_acquire))
		return 0;
	if (vb_cma_removal_is_due())
		vb_cma_removal();
	vb_mutex_take(&core_lock, VB_ORDER_CM_CORE);
	next = vb_cm_expire(&core, vb_clock_ns());
	vb_mutex_release(&core_lock);
	return next;
}

static void changed(void *arg)
{
	(void)arg;
	if (atomic_load_explicit(&opened, memory_order_acquire))
		vb_cma_removal();
}

static void ended(void *arg, uint32_t comm_id_base)
{
	(void)arg;
	if (!atomic_load_explicit(&opened, memory_order_acquire))
		return;
	vb_mutex_take(&core_lock, VB_ORDER_CM_CORE);
	vb_cm_peer_ended(&core, comm_id_base, VB_GSI_COMM_ID_BITS, vb_gsi_is_near, vb_clock_ns());
	vb_mutex_release(&core_lock);
	vb_gsi_kick();
}

/* Thousandths of stock's times, for those who cannot wait for a minute and a half. */
static unsigned int scale(void)
{
	const char *value = getenv("VERBATIM_CM_TIMES");

	return value ? (unsigned int)strtoul(value, NULL, 10) : 0;
}

static int open_carrier(void)
{
	static const struct vb_gsi_events events = {
		.mad = receive, .serve = serve, .changed = changed, .ended = ended};
	struct vb_gsi_identity identity;
	int err = vb_gsi_open(&events, &identity);

	if (err)
		return err;
	vb_cm_init(&core, &env,
		   &(struct vb_cm_setup){
			   .id_base = identity.comm_id_base,
			   .id_bits = VB_GSI_COMM_ID_BITS,
			   .scale = scale(),
		   });
	atomic_store_explicit(&opened, true, memory_order_release);
	return 0;
}

int vb_cma_manager_open(void)
{
	int err = 0;

	if (atomic_load_explicit(&opened, memory_order_acquire))
		return 0;
	vb_mutex_take(&open_lock, VB_ORDER_CM_OPEN);
	if (!atomic_load(&opened))
		err = open_carrier();
	vb_mutex_release(&open_lock);
	return err;
}

bool vb_cma_manager_is_open(void)
{
	return atomic_load_explicit(&opened, memory_order_acquire);
}

struct vb_cm *vb_cma_manager_take(void)
{
	vb_mutex_take(&core_lock, VB_ORDER_CM_CORE);
	return &core;
}

/* Most calls make no deadline that is earlier than the one that the progress thread waits for. */
void vb_cma_manager_release(void)
{
	const uint64_t deadline = vb_cm_deadline(&core);

	vb_mutex_release(&core_lock);
	vb_gsi_expect(deadline);
}

int vb_cma_manager_reach(const uint8_t gid[16])
{
	static const uint8_t all[16];

	return vb_gsi_reach(gid ? gid : all);
}

void vb_cma_manager_forget(void)
{
	pthread_mutex_init(&open_lock, NULL);
	pthread_mutex_init(&core_lock, NULL);
	atomic_store(&opened, false);
}
