/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Connections by the numbers that messages name.
 *
 * The peer's numbers are keyed by its GID beside the GUID that IBA 12.9.8.3 names: two devices with
 * one GUID do not disturb each other then, and nobody reaches a connection from another address.
 * Chains of numbers that peers choose are hashed with a secret.
 */
#include <string.h>

#include "cm/core.h"

#define CONN(link, member) \
	((struct vb_cm_conn *)(void *)((char *)(link)-offsetof(struct vb_cm_conn, member)))

uint64_t vb_cm_hash(const struct vb_cm *cm, const void *data, size_t length)
{
	return vb_siphash(cm->key, data, length);
}

static struct vb_cm_link **peer_chain(struct vb_cm *cm, struct vb_cm_link **table, uint32_t number,
				      uint64_t guid, const uint8_t gid[16])
{
	uint8_t key[28];

	memcpy(key, gid, 16);
	memcpy(key + 16, &guid, sizeof(guid));
	memcpy(key + 24, &number, sizeof(number));
	return &table[vb_cm_hash(cm, key, sizeof(key)) % VB_CM_BUCKETS];
}

static bool is_sidr(const struct vb_cm_conn *conn)
{
	return conn->service == VB_CM_UD;
}

static bool same_peer(const struct vb_cm_conn *conn, uint64_t guid, const uint8_t gid[16])
{
	return conn->remote_guid == guid && !memcmp(conn->path.dgid, gid, 16);
}

struct vb_cm_conn *vb_cm_by_local(struct vb_cm *cm, uint32_t local_id)
{
	struct vb_cm_link *link = cm->by_local[local_id % VB_CM_BUCKETS];

	for (; link; link = link->next) {
		if (CONN(link, by_local)->local_id == local_id)
			return CONN(link, by_local);
	}
	return NULL;
}

struct vb_cm_conn *vb_cm_by_remote(struct vb_cm *cm, bool sidr, uint32_t remote_id, uint64_t guid,
				   const uint8_t gid[16])
{
	struct vb_cm_link *link = *peer_chain(cm, cm->by_remote, remote_id, guid, gid);

	for (; link; link = link->next) {
		struct vb_cm_conn *conn = CONN(link, by_remote);

		if (conn->remote_id == remote_id && is_sidr(conn) == sidr &&
		    same_peer(conn, guid, gid))
			return conn;
	}
	return NULL;
}

struct vb_cm_conn *vb_cm_by_qpn(struct vb_cm *cm, uint32_t qpn, uint64_t guid,
				const uint8_t gid[16])
{
	struct vb_cm_link *link = *peer_chain(cm, cm->by_qpn, qpn, guid, gid);

	for (; link; link = link->next) {
		struct vb_cm_conn *conn = CONN(link, by_qpn);

		if (conn->remote_qpn == qpn && same_peer(conn, guid, gid))
			return conn;
	}
	return NULL;
}

void vb_cm_index_remote(struct vb_cm *cm, struct vb_cm_conn *conn)
{
	vb_cm_link_add(peer_chain(cm, cm->by_remote, conn->remote_id, conn->remote_guid,
				  conn->path.dgid),
		       &conn->by_remote);
}

void vb_cm_index_qpn(struct vb_cm *cm, struct vb_cm_conn *conn)
{
	vb_cm_link_add(peer_chain(cm, cm->by_qpn, conn->remote_qpn, conn->remote_guid,
				  conn->path.dgid),
		       &conn->by_qpn);
}
