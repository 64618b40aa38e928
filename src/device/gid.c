/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* GID tables. */
#include "device/gid.h"

#include <errno.h>
#include <string.h>

#include "base/reason.h"
#include "device/netdev.h"

static bool same(const union ibv_gid *a, const union ibv_gid *b)
{
	return !memcmp(a, b, sizeof(*a));
}

static bool wanted(const union ibv_gid *gid, const union ibv_gid *want, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		if (same(gid, &want[i]))
			return true;
	}
	return false;
}

static bool drop_unwanted(struct vb_gid_table *t, const union ibv_gid *want, uint32_t count)
{
	bool changed = false;

	for (uint32_t i = 0; i < VB_GID_TABLE; i++) {
		if (!t->used[i] || wanted(&t->gid[i], want, count))
			continue;
		t->used[i] = false;
		changed = true;
	}
	return changed;
}

static uint32_t in_use(const struct vb_gid_table *t)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < VB_GID_TABLE; i++)
		n += t->used[i];
	return n;
}

static bool has(const struct vb_gid_table *t, const union ibv_gid *gid)
{
	for (uint32_t i = 0; i < VB_GID_TABLE; i++) {
		if (t->used[i] && same(&t->gid[i], gid))
			return true;
	}
	return false;
}

/* The index that held the address before, or the lowest free index of [from, VB_GID_TABLE). */
static uint32_t slot_for(const struct vb_gid_table *t, const union ibv_gid *gid, uint32_t from)
{
	for (uint32_t i = 0; i < VB_GID_TABLE; i++) {
		if (!t->used[i] && same(&t->gid[i], gid))
			return i;
	}
	while (from < VB_GID_TABLE && t->used[from])
		from++;
	return from;
}

static bool add(struct vb_gid_table *t, const union ibv_gid *gid, uint32_t from)
{
	uint32_t slot;

	if (has(t, gid))
		return false;
	slot = slot_for(t, gid, from);
	if (in_use(t) >= VB_GID_TABLE - 1 || slot == VB_GID_TABLE) {
		vb_note(VB_REASON_ARG_LIMIT, "gid table: no room for another address");
		return false;
	}
	t->gid[slot] = *gid;
	t->used[slot] = true;
	t->filled = true;
	return true;
}

bool vb_gid_is_loopback(const union ibv_gid *gid)
{
	return vb_gid_is_ipv4(gid) && gid->raw[12] == 127;
}

bool vb_gid_table_update(struct vb_gid_table *t, const union ibv_gid *want, uint32_t count)
{
	bool fresh = !t->filled;
	bool changed = drop_unwanted(t, want, count);
	bool have_ipv4 = false;

	for (uint32_t i = 0; i < count; i++) {
		if (!vb_gid_is_ipv4(&want[i]))
			continue;
		have_ipv4 = true;
		changed |= add(t, &want[i], 0);
	}
	for (uint32_t i = 0; i < count; i++) {
		if (!vb_gid_is_ipv4(&want[i]))
			changed |= add(t, &want[i], fresh && !have_ipv4 ? 0 : 1);
	}
	return changed;
}
