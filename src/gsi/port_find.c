/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The table of ports: who listens. */
#include <errno.h>

#include "gsi/port_entry.h"

/* Look-ups begin again so often when the table changes under them. */
#define RESTARTS  8
#define NS_PER_MS 1000000u

static uint64_t left_word(uint16_t port, uint64_t now)
{
	return now / NS_PER_MS << 16 | port;
}

void vb_port_left(struct vb_port_table *t, uint16_t port, uint64_t now)
{
	__atomic_store_n(&t->left[t->next_left++ % VB_PORT_LEFTS], left_word(port, now),
			 __ATOMIC_RELAXED);
}

static bool left_lately(const struct vb_port_table *t, uint16_t port, uint64_t now)
{
	uint64_t soonest = left_word(0, now > VB_PORT_LEFT_NS ? now - VB_PORT_LEFT_NS : 0);

	for (uint32_t i = 0; i < VB_PORT_LEFTS; i++) {
		uint64_t word = __atomic_load_n(&t->left[i], __ATOMIC_RELAXED);

		if (word && (uint16_t)word == port && word >= soonest)
			return true;
	}
	return false;
}

bool vb_port_expected(const struct vb_port_table *t, const struct vb_port_wanted *wanted,
		      uint64_t now)
{
	int space = vb_port_space_index(wanted->space);
	uint32_t at = space < 0 ? 0 : vb_port_load(&t->head[space][wanted->port]);
	struct vb_port_body body;

	if (left_lately(t, wanted->port, now))
		return true;
	for (uint32_t i = 0; at && at <= VB_PORT_BINDINGS && i < VB_PORT_BINDINGS; i++) {
		if (vb_port_body_read(&t->entry[at - 1], &body, &at) && body.port == wanted->port &&
		    !body.remote_port)
			return true;
	}
	return false;
}

void vb_port_mend(struct vb_port_table *t, uint16_t space, uint16_t port)
{
	int index = vb_port_space_index(space);
	uint32_t at = index < 0 ? 0 : t->head[index][port];

	for (uint32_t i = 0; at && at <= VB_PORT_BINDINGS && i < VB_PORT_BINDINGS; i++) {
		struct vb_port_entry *e = &t->entry[at - 1];

		if (e->version & 1)
			vb_port_store(&e->version, e->version + 1);
		at = e->next;
	}
}

/* How well a listener fits a request; one that fits its port alone will refuse it. */
static int fit_of(const struct vb_port_body *body, const struct vb_port_wanted *wanted)
{
	struct vb_port_binding listener;

	if (!(body->flags & VB_PORT_LISTENING))
		return -1;
	if (!wanted->ip)
		return 0;
	vb_port_binding_of(body, &listener);
	return vb_port_fit(&listener, wanted->address, wanted->scope);
}

/* One walk. -EAGAIN: an entry changed or left the chain meanwhile. */
static int chain_find(const struct vb_port_table *t, const uint32_t *head,
		      const struct vb_port_wanted *wanted, struct vb_port_body *best)
{
	int most = -1;
	uint32_t at = vb_port_load(head);

	for (uint32_t i = 0; at; i++) {
		const struct vb_port_entry *e;
		struct vb_port_body body;
		int fit;

		if (at > VB_PORT_BINDINGS || i == VB_PORT_BINDINGS)
			return -EAGAIN;
		e = &t->entry[at - 1];
		if (!vb_port_body_read(e, &body, &at) || body.space != wanted->space ||
		    body.port != wanted->port)
			return -EAGAIN;
		fit = fit_of(&body, wanted);
		if (fit > most) {
			most = fit;
			*best = body;
		}
	}
	return most < 0 ? -ENOENT : 0;
}

int vb_port_find(const struct vb_port_table *t, const struct vb_port_wanted *wanted,
		 uint32_t *number, uint32_t *seat)
{
	int space = vb_port_space_index(wanted->space);
	struct vb_port_body body;
	int err = -EAGAIN;

	if (space < 0)
		return -ENOENT;
	for (int i = 0; i < RESTARTS && err == -EAGAIN; i++)
		err = chain_find(t, &t->head[space][wanted->port], wanted, &body);
	if (err)
		return err;
	*number = body.number & ((1u << 24) - 1);
	*seat = body.seat < VB_COMMONS_SEATS ? body.seat : VB_PORT_NOBODY;
	return 0;
}
