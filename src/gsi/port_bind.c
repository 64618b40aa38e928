/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The table of ports: bindings are made, changed and removed, and may exclude each other. */
#include <errno.h>
#include <string.h>

#include "gsi/port_entry.h"

typedef int (*verdict)(const struct vb_port_binding *asked, const struct vb_port_binding *there);

/*
 * Under the lock: the first binding of the port that is in the way. `but`: an entry that is not
 * looked at. 0: none is.
 */
static int chain_judge(const struct vb_port_table *t, const struct vb_port_body *want,
		       verdict judge, uint32_t but, uint32_t *seat)
{
	uint32_t at = t->head[vb_port_space_index(want->space)][want->port];
	struct vb_port_binding asked, there;

	vb_port_binding_of(want, &asked);
	for (uint32_t i = 0; at && at <= VB_PORT_BINDINGS && i < VB_PORT_BINDINGS; i++) {
		struct vb_port_body have;
		int err;

		vb_port_body_get(&t->entry[at - 1], &have);
		vb_port_binding_of(&have, &there);
		err = at == but ? 0 : judge(&asked, &there);
		if (err) {
			*seat = have.seat;
			return err;
		}
		at = t->entry[at - 1].next;
	}
	return 0;
}

/* As chain_judge(). Bindings of processes that have ended are removed. */
static int port_judge(struct vb_port_table *t, const struct vb_port_asker *who,
		      const struct vb_port_body *want, verdict judge, uint32_t but)
{
	uint32_t seat;
	int err = chain_judge(t, want, judge, but, &seat);

	/* Each seat once: who writes nonsense into the table does not keep others here. */
	for (uint32_t i = 0; err && i < VB_COMMONS_SEATS; i++) {
		if (seat >= VB_COMMONS_SEATS || seat == who->seat ||
		    !who->has_ended(who->arg, seat))
			break;
		vb_port_seat_clear(t, seat, who->now);
		err = chain_judge(t, want, judge, but, &seat);
	}
	return err;
}

static uint32_t ports_of(const struct vb_port_asker *who)
{
	return (uint32_t)who->port_to - who->port_from + 1u;
}

/* Under the lock: the first port from a random one on that nobody has. VB_PORT_BITS_NONE. */
static uint32_t port_free(struct vb_port_table *t, const struct vb_port_asker *who, int space)
{
	struct vb_port_bits bits = vb_port_busy(t, space);
	uint32_t first = who->port_from + who->random % ports_of(who);

	/* A port whose bit is wrong costs one turn, here and now. */
	for (uint32_t i = 0; i < VB_PORT_NUMBERS; i++) {
		uint32_t port = vb_port_bits_free(bits, first, who->port_to);

		if (port == VB_PORT_BITS_NONE && first > who->port_from)
			port = vb_port_bits_free(bits, who->port_from, first - 1);
		if (port == VB_PORT_BITS_NONE || !t->head[space][port])
			return port;
		vb_port_bits_set(bits, port, true);
	}
	return VB_PORT_BITS_NONE;
}

/* Under the lock: a free port, or else one that can be shared. */
static int port_choose(struct vb_port_table *t, const struct vb_port_asker *who,
		       struct vb_port_body *want)
{
	uint32_t port = port_free(t, who, vb_port_space_index(want->space));
	uint32_t count = ports_of(who), seat;

	if (port != VB_PORT_BITS_NONE) {
		want->port = (uint16_t)port;
		return 0;
	}
	for (uint32_t i = 0; i < count; i++) {
		want->port = (uint16_t)(who->port_from + (who->random + i) % count);
		if (!chain_judge(t, want, vb_port_share_verdict, 0, &seat))
			return 0;
	}
	return -EADDRNOTAVAIL;
}

static bool seats_reap(struct vb_port_table *t, const struct vb_port_asker *who)
{
	bool any = false;

	for (uint32_t seat = 0; seat < VB_COMMONS_SEATS; seat++) {
		if (!t->seat[seat].taken || seat == who->seat || !who->has_ended(who->arg, seat))
			continue;
		vb_port_seat_clear(t, seat, who->now);
		any = true;
	}
	return any;
}

/* Under the lock. VB_PORT_BITS_NONE: all are in use. */
static uint32_t entry_find(struct vb_port_table *t)
{
	uint32_t first = t->next_entry % VB_PORT_BINDINGS;
	uint32_t index = vb_port_bits_free(vb_port_used(t), first, VB_PORT_BINDINGS - 1);

	if (index == VB_PORT_BITS_NONE && first)
		index = vb_port_bits_free(vb_port_used(t), 0, first - 1);
	return index;
}

static void describe(struct vb_port_body *body, const struct vb_gsi_binding *b)
{
	memcpy(body->remote, b->remote, sizeof(body->remote));
	body->remote_port = b->remote_port;
	body->flags = (uint8_t)((body->flags & VB_PORT_LISTENING) | (b->reuse ? VB_PORT_REUSE : 0) |
				(b->afonly ? VB_PORT_AFONLY : 0));
}

int vb_port_bind(struct vb_port_table *t, const struct vb_port_asker *who, struct vb_gsi_binding *b,
		 uint64_t *handle)
{
	struct vb_port_body body = {
		.seat = who->seat,
		.number = who->number,
		.scope = b->scope,
		.space = b->space,
		.port = b->port,
	};
	uint32_t index;
	int err;

	if (vb_port_space_index(b->space) < 0)
		return -EINVAL;
	memcpy(body.address, b->address, sizeof(body.address));
	describe(&body, b);
	err = b->port ? port_judge(t, who, &body, vb_port_bind_verdict, 0)
		      : port_choose(t, who, &body);
	if (err && !b->port && seats_reap(t, who))
		err = port_choose(t, who, &body);
	if (err)
		return err;
	index = entry_find(t);
	if (index == VB_PORT_BITS_NONE && seats_reap(t, who))
		index = entry_find(t);
	if (index == VB_PORT_BITS_NONE)
		return -ENOMEM;
	body.serial = ++t->serial;
	vb_port_body_write(&t->entry[index], &body);
	vb_port_entry_use(t, index, &body);
	t->next_entry = index;
	b->port = body.port;
	*handle = (uint64_t)body.serial << 32 | (index + 1);
	return 0;
}

int vb_port_listen(struct vb_port_table *t, const struct vb_port_asker *who, uint64_t handle)
{
	struct vb_port_body body;
	struct vb_port_entry *e = vb_port_entry_of(t, who->seat, handle, &body);
	int err;

	if (!e)
		return -ENOENT;
	err = port_judge(t, who, &body, vb_port_listen_verdict, (uint32_t)handle);
	if (err)
		return err;
	body.flags |= VB_PORT_LISTENING;
	vb_port_body_write(e, &body);
	return 0;
}

int vb_port_change(struct vb_port_table *t, const struct vb_port_asker *who, uint64_t handle,
		   const struct vb_gsi_binding *b)
{
	struct vb_port_body body;
	struct vb_port_entry *e = vb_port_entry_of(t, who->seat, handle, &body);

	if (!e)
		return -ENOENT;
	describe(&body, b);
	vb_port_body_write(e, &body);
	return 0;
}

void vb_port_unbind(struct vb_port_table *t, const struct vb_port_asker *who, uint64_t handle)
{
	struct vb_port_body body;
	struct vb_port_entry *e = vb_port_entry_of(t, who->seat, handle, &body);

	if (!e)
		return;
	vb_port_entry_free(t, (uint32_t)(e - t->entry), &body);
	if (body.flags & VB_PORT_LISTENING)
		vb_port_left(t, body.port, who->now);
}
