/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Entries of the table of ports: what they say, and the chains of their ports. */
#include "gsi/port_entry.h"

#include <stddef.h>
#include <string.h>

/* Members of other builds share the table: another layout has another name (gsi/members.c). */
_Static_assert(sizeof(struct vb_port_body) == 56 && sizeof(struct vb_port_entry) == 64 &&
		       offsetof(struct vb_port_table, entry) == 1133648 &&
		       offsetof(struct vb_port_table, published) == 3230800 &&
		       sizeof(struct vb_published) == 1574912,
	       "another layout of the shared table has another VB_PORT_NAME");

static const uint16_t spaces[VB_PORT_SPACES] = {0x0106, 0x0111, 0x013f, 0x0002};

int vb_port_space_index(uint16_t space)
{
	for (uint32_t i = 0; i < VB_PORT_SPACES; i++) {
		if (spaces[i] == space)
			return (int)i;
	}
	return -1;
}

bool vb_port_body_read(const struct vb_port_entry *e, struct vb_port_body *body, uint32_t *next)
{
	uint64_t words[VB_PORT_WORDS];
	uint32_t version = vb_port_load(&e->version);

	for (uint32_t i = 0; i < VB_PORT_WORDS; i++)
		words[i] = __atomic_load_n(&e->body[i], __ATOMIC_RELAXED);
	*next = vb_port_load(&e->next);
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	memcpy(body, words, sizeof(*body));
	return !(version & 1) && version == __atomic_load_n(&e->version, __ATOMIC_RELAXED);
}

void vb_port_body_write(struct vb_port_entry *e, const struct vb_port_body *body)
{
	uint64_t words[VB_PORT_WORDS];

	memcpy(words, body, sizeof(words));
	vb_port_store(&e->version, vb_port_load(&e->version) | 1);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	for (uint32_t i = 0; i < VB_PORT_WORDS; i++)
		__atomic_store_n(&e->body[i], words[i], __ATOMIC_RELAXED);
	vb_port_store(&e->version, vb_port_load(&e->version) + 1);
}

void vb_port_body_get(const struct vb_port_entry *e, struct vb_port_body *body)
{
	uint32_t next;

	(void)vb_port_body_read(e, body, &next);
}

static bool is_used(const struct vb_port_table *t, uint32_t index)
{
	return __atomic_load_n(&t->used[index / 64], __ATOMIC_RELAXED) >> index % 64 & 1;
}

struct vb_port_entry *vb_port_entry_of(struct vb_port_table *t, uint32_t seat, uint64_t handle,
				       struct vb_port_body *body)
{
	uint32_t index = (uint32_t)handle - 1;

	if (index >= VB_PORT_BINDINGS || !is_used(t, index))
		return NULL;
	vb_port_body_get(&t->entry[index], body);
	return body->seat == seat && body->serial == handle >> 32 ? &t->entry[index] : NULL;
}

void vb_port_binding_of(const struct vb_port_body *body, struct vb_port_binding *b)
{
	memcpy(b->address, body->address, sizeof(b->address));
	b->scope = body->scope;
	memcpy(b->remote, body->remote, sizeof(b->remote));
	b->remote_port = body->remote_port;
	b->reuse = body->flags & VB_PORT_REUSE;
	b->afonly = body->flags & VB_PORT_AFONLY;
}

static void chain_add(struct vb_port_table *t, uint32_t index, const struct vb_port_body *body)
{
	uint32_t *head = &t->head[vb_port_space_index(body->space)][body->port];

	vb_port_store(&t->entry[index].next, *head);
	vb_port_store(head, index + 1);
}

/* As the chain of the port says: also after a process was killed in between. */
static void port_mark(struct vb_port_table *t, int space, uint16_t port)
{
	vb_port_bits_set(vb_port_busy(t, space), port, vb_port_load(&t->head[space][port]) != 0);
}

static void chain_remove(struct vb_port_table *t, uint32_t index, const struct vb_port_body *body)
{
	int space = vb_port_space_index(body->space);
	uint32_t *at = space < 0 ? NULL : &t->head[space][body->port];

	for (uint32_t i = 0; at && *at && *at <= VB_PORT_BINDINGS && i < VB_PORT_BINDINGS; i++) {
		if (*at == index + 1) {
			vb_port_store(at, t->entry[index].next);
			return;
		}
		at = &t->entry[*at - 1].next;
	}
}

void vb_port_entry_use(struct vb_port_table *t, uint32_t index, const struct vb_port_body *body)
{
	vb_port_bits_set(vb_port_used(t), index, true);
	vb_port_bits_set(vb_port_busy(t, vb_port_space_index(body->space)), body->port, true);
	chain_add(t, index, body);
}

void vb_port_entry_free(struct vb_port_table *t, uint32_t index, const struct vb_port_body *body)
{
	int space = vb_port_space_index(body->space);

	chain_remove(t, index, body);
	if (space >= 0)
		port_mark(t, space, body->port);
	vb_port_bits_set(vb_port_used(t), index, false);
}
