/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Racks: made, shown, taken, freed (rack.h). */
#include "host/rack.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/reason.h"
#include "host/descriptor.h"
#include "host/private.h"
#include "host/shared.h"

#define HALF_BYTES  sizeof(struct vb_ring_half)
/* Racks of a peer that no channel uses. It has gone wrong if there are more. */
#define UNUSED_MOST 64u

_Static_assert(HALF_BYTES % 4096 == 0, "halves of a rack begin with a memory page");

static void rack_free(struct vb_rack **list, struct vb_rack *rack)
{
	while (*list != rack)
		list = &(*list)->next;
	*list = rack->next;
	vb_shared_unmap(rack->half, rack->count * HALF_BYTES);
	free(rack);
}

static void shut(struct vb_rack **list, struct vb_rack *rack)
{
	rack->open = false;
	if (!rack->in_use)
		rack_free(list, rack);
}

static struct vb_rack *rack_add(struct vb_rack **list, const struct vb_connection *conn,
				uint32_t id, uint32_t count)
{
	struct vb_rack *rack = calloc(1, sizeof(*rack));

	if (!rack)
		return NULL;
	rack->id = id;
	rack->count = count;
	rack->conn = conn;
	rack->open = true;
	rack->next = *list;
	*list = rack;
	return rack;
}

/* Most processes have one channel with a peer; few have more than some. */
static uint32_t count_for(const struct vb_peer *peer)
{
	if (peer->num_channels < 3)
		return 1;
	if (peer->num_channels < 16)
		return 4;
	return peer->num_channels < 256 ? 16 : VB_RACK_MOST;
}

static int rack_make(struct vb_peer *peer, const struct vb_connection *conn, int *fd)
{
	uint32_t count = count_for(peer);
	void *map;
	int err = vb_shared_create("verbatim-ring", count * HALF_BYTES, &map, fd);

	/* Sizes of files or of the address space may be limited. */
	if (err && count > 1 && !vb_system_is_short(err)) {
		count = 1;
		err = vb_shared_create("verbatim-ring", HALF_BYTES, &map, fd);
	}
	if (err)
		return vb_refuse(-err, VB_REASON_SYSTEM, "memory for a ring: %s", strerror(-err));
	struct vb_rack *rack = rack_add(&peer->racks, conn, peer->next_rack++, count);

	if (!rack) {
		vb_shared_unmap(map, count * HALF_BYTES);
		vb_descriptor_close(*fd);
		*fd = -1;
		return -ENOMEM;
	}
	rack->half = map;
	return 0;
}

/* The next place that nobody was given. */
static uint32_t place_next(struct vb_rack *rack)
{
	uint32_t place = (uint32_t)__builtin_popcountll(rack->named);

	rack->named |= 1ull << place;
	rack->open = place + 1 < rack->count;
	return place;
}

/* One that has places left. */
static struct vb_rack *rack_open(const struct vb_peer *peer, const struct vb_connection *conn)
{
	struct vb_rack *rack = peer->racks;

	while (rack && (!rack->open || rack->held || rack->conn != conn))
		rack = rack->next;
	return rack;
}

void vb_rack_hold(struct vb_channel *ch, bool hold)
{
	if (ch->own_rack)
		ch->own_rack->held = hold;
}

int vb_rack_give(struct vb_channel *ch, const struct vb_connection *conn, struct vb_control *msg,
		 int *fd)
{
	struct vb_peer *peer = ch->peer;
	struct vb_rack *rack = rack_open(peer, conn);
	int err;

	*fd = -1;
	err = rack ? 0 : rack_make(peer, conn, fd);
	if (err)
		return err;
	rack = rack ? rack : peer->racks;
	msg->ring.rack = rack->id;
	msg->ring.place = place_next(rack);
	rack->in_use++;
	ch->own_rack = rack;
	ch->own_half = (struct vb_ring_half *)(uintptr_t)&rack->half[msg->ring.place];
	return 0;
}

static struct vb_rack *rack_find(const struct vb_peer *peer, uint32_t id)
{
	struct vb_rack *rack = peer->its_racks;

	while (rack && rack->id != id)
		rack = rack->next;
	return rack;
}

static uint32_t unused(const struct vb_peer *peer)
{
	uint32_t n = 0;

	for (const struct vb_rack *rack = peer->its_racks; rack; rack = rack->next)
		n += !rack->in_use;
	return n;
}

static int rack_map(struct vb_peer *peer, const struct vb_connection *conn, uint32_t id, int fd,
		    const char **defect)
{
	uint64_t bytes = 0;
	void *map;

	if (unused(peer) >= UNUSED_MOST) {
		*defect = "it shows rings and uses none";
		return -EBADMSG;
	}
	int err = vb_shared_check(fd, false, &bytes, defect);

	if (err)
		return err;
	if (!bytes || bytes % HALF_BYTES || bytes / HALF_BYTES > VB_RACK_MOST) {
		*defect = "its rings have the wrong size";
		return -EBADMSG;
	}
	err = vb_shared_map(fd, bytes, false, &map, defect);
	if (err)
		return err == -EBADMSG ? err : -EMFILE;
	struct vb_rack *rack = rack_add(&peer->its_racks, conn, id, (uint32_t)(bytes / HALF_BYTES));

	if (!rack) {
		vb_shared_unmap(map, bytes);
		return -EMFILE;
	}
	rack->half = map;
	return 0;
}

int vb_rack_see(struct vb_peer *peer, const struct vb_connection *conn,
		const struct vb_control *msg, const int *fds, int num_fds, const char **defect)
{
	const struct vb_rack *rack = rack_find(peer, msg->ring.rack);
	int err = 0;

	if (!rack && num_fds == 1) {
		err = rack_map(peer, conn, msg->ring.rack, fds[0], defect);
		rack = rack_find(peer, msg->ring.rack);
	} else if (!rack) {
		*defect = "no ring was sent";
		err = peer->racks_lost ? -EMFILE : -EBADMSG;
	}
	if (!err && (msg->ring.place >= rack->count || rack->named >> msg->ring.place & 1)) {
		*defect = "it named a place that is no ring's";
		err = -EBADMSG;
	}
	peer->racks_lost |= err == -EMFILE;
	return err;
}

static struct vb_rack *place_name(struct vb_peer *peer, const struct vb_control *msg)
{
	struct vb_rack *rack = rack_find(peer, msg->ring.rack);

	if (!rack || msg->ring.place >= rack->count)
		return NULL;
	rack->named |= 1ull << msg->ring.place;
	if ((uint32_t)__builtin_popcountll(rack->named) == rack->count)
		rack->open = false;
	return rack;
}

int vb_rack_take(struct vb_channel *ch, const struct vb_control *msg, const char **defect)
{
	struct vb_rack *rack = place_name(ch->peer, msg);

	*defect = "no ring was sent";
	if (!rack)
		return -EBADMSG;
	rack->in_use++;
	ch->peer_rack = rack;
	ch->peer_half = &rack->half[msg->ring.place];
	return 0;
}

void vb_rack_pass_over(struct vb_peer *peer, const struct vb_control *msg)
{
	struct vb_rack *rack = place_name(peer, msg);

	if (rack && !rack->open && !rack->in_use)
		rack_free(&peer->its_racks, rack);
}

static void leave(struct vb_rack **list, struct vb_rack *rack)
{
	if (rack && !--rack->in_use && (!rack->open || rack->held))
		rack_free(list, rack);
}

void vb_rack_leave(struct vb_channel *ch)
{
	leave(&ch->peer->racks, ch->own_rack);
	leave(&ch->peer->its_racks, ch->peer_rack);
	ch->own_rack = ch->peer_rack = NULL;
}

void vb_racks_shut(struct vb_peer *peer)
{
	struct vb_rack *next;

	for (struct vb_rack *rack = peer->racks; rack; rack = next) {
		next = rack->next;
		if (rack->open)
			shut(&peer->racks, rack);
	}
}

static void end_on(struct vb_rack **list, const struct vb_connection *conn)
{
	struct vb_rack *next;

	for (struct vb_rack *rack = *list; rack; rack = next) {
		next = rack->next;
		if (rack->open && rack->conn == conn)
			shut(list, rack);
	}
}

void vb_racks_end(struct vb_peer *peer, const struct vb_connection *conn)
{
	end_on(&peer->racks, conn);
	end_on(&peer->its_racks, conn);
}

void vb_racks_free(struct vb_peer *peer)
{
	while (peer->racks)
		rack_free(&peer->racks, peer->racks);
	while (peer->its_racks)
		rack_free(&peer->its_racks, peer->its_racks);
}
