/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The table of ports: entries, chains, seats, look-ups. */
#include "gsi/port_table.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "cm/port_rule.h"
#include "host/page.h"

/* Look-ups begin again so often when the table changes under them. */
#define RESTARTS  8
#define NS_PER_MS 1000000u

/* Members of other builds share the table: another layout has another name (gsi/members.c). */
_Static_assert(sizeof(struct vb_port_body) == 56 && sizeof(struct vb_port_entry) == 64 &&
		       offsetof(struct vb_port_table, entry) == 1100304,
	       "another layout of the shared table has another VB_PORT_NAME");

static const uint16_t spaces[VB_PORT_SPACES] = {0x0106, 0x0111, 0x013f, 0x0002};

/* The index of the port space. -1: there is no such space. */
static int space_index(uint16_t space)
{
	for (uint32_t i = 0; i < VB_PORT_SPACES; i++) {
		if (spaces[i] == space)
			return (int)i;
	}
	return -1;
}

static uint32_t load(const uint32_t *word)
{
	return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

static void store(uint32_t *word, uint32_t value)
{
	__atomic_store_n(word, value, __ATOMIC_RELEASE);
}

/*
 * A copy of what the entry says, and its link as it was then: an entry that is used anew has
 * another version before it has another link. False: it is being changed.
 */
static bool body_read(const struct vb_port_entry *e, struct vb_port_body *body, uint32_t *next)
{
	uint64_t words[VB_PORT_WORDS];
	uint32_t version = load(&e->version);

	for (uint32_t i = 0; i < VB_PORT_WORDS; i++)
		words[i] = __atomic_load_n(&e->body[i], __ATOMIC_RELAXED);
	*next = load(&e->next);
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	memcpy(body, words, sizeof(*body));
	return !(version & 1) && version == __atomic_load_n(&e->version, __ATOMIC_RELAXED);
}

/* Under the lock. A process that was killed in here leaves an odd version; the next one repairs. */
static void body_write(struct vb_port_entry *e, const struct vb_port_body *body)
{
	uint64_t words[VB_PORT_WORDS];

	memcpy(words, body, sizeof(words));
	store(&e->version, load(&e->version) | 1);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	for (uint32_t i = 0; i < VB_PORT_WORDS; i++)
		__atomic_store_n(&e->body[i], words[i], __ATOMIC_RELAXED);
	store(&e->version, load(&e->version) + 1);
}

/* Under the lock, which the last writer may have left by dying: what was written whole counts. */
static void body_get(const struct vb_port_entry *e, struct vb_port_body *body)
{
	uint32_t next;

	(void)body_read(e, body, &next);
}

static bool is_used(const struct vb_port_table *t, uint32_t index)
{
	return __atomic_load_n(&t->used[index / 64], __ATOMIC_RELAXED) >> index % 64 & 1;
}

static void mark(struct vb_port_table *t, uint32_t index, bool used)
{
	uint64_t bit = 1ull << index % 64, word = t->used[index / 64];

	__atomic_store_n(&t->used[index / 64], used ? word | bit : word & ~bit, __ATOMIC_RELEASE);
}

/* Under the lock. NULL: it is not the seat's, or not any more. */
static struct vb_port_entry *entry_of(struct vb_port_table *t, uint32_t seat, uint64_t handle,
				      struct vb_port_body *body)
{
	uint32_t index = (uint32_t)handle - 1;

	if (index >= VB_PORT_BINDINGS || !is_used(t, index))
		return NULL;
	body_get(&t->entry[index], body);
	return body->seat == seat && body->serial == handle >> 32 ? &t->entry[index] : NULL;
}

typedef int (*verdict)(const struct vb_port_binding *asked, const struct vb_port_binding *there);

static void binding_of(const struct vb_port_body *body, struct vb_port_binding *b)
{
	memcpy(b->address, body->address, sizeof(b->address));
	b->scope = body->scope;
	memcpy(b->remote, body->remote, sizeof(b->remote));
	b->remote_port = body->remote_port;
	b->reuse = body->flags & VB_PORT_REUSE;
	b->afonly = body->flags & VB_PORT_AFONLY;
}

/*
 * Under the lock: the first binding of the port that is in the way. `but`: an entry that is not
 * looked at. 0: none is.
 */
static int chain_judge(const struct vb_port_table *t, const struct vb_port_body *want,
		       verdict judge, uint32_t but, uint32_t *seat)
{
	uint32_t at = t->head[space_index(want->space)][want->port];
	struct vb_port_binding asked, there;

	binding_of(want, &asked);
	for (uint32_t i = 0; at && at <= VB_PORT_BINDINGS && i < VB_PORT_BINDINGS; i++) {
		struct vb_port_body have;
		int err;

		body_get(&t->entry[at - 1], &have);
		binding_of(&have, &there);
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

/* Under the lock: a free port, or else one that can be shared. */
static int port_choose(struct vb_port_table *t, const struct vb_port_asker *who,
		       struct vb_port_body *want)
{
	const uint32_t *head = t->head[space_index(want->space)];
	uint32_t count = (uint32_t)who->port_to - who->port_from + 1u;
	uint32_t seat;

	for (uint32_t i = 0; i < count; i++) {
		want->port = (uint16_t)(who->port_from + (who->random + i) % count);
		if (!head[want->port])
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

/* Under the lock. VB_PORT_NOBODY: all are in use. */
static uint32_t entry_find(const struct vb_port_table *t)
{
	uint32_t words = VB_PORT_BINDINGS / 64, first = t->next_entry / 64;

	for (uint32_t i = 0; i < words; i++) {
		uint32_t word = (first + i) % words;
		uint64_t left = ~t->used[word];

		if (left)
			return word * 64 + (uint32_t)__builtin_ctzll(left);
	}
	return VB_PORT_NOBODY;
}

static void chain_add(struct vb_port_table *t, uint32_t index, const struct vb_port_body *body)
{
	uint32_t *head = &t->head[space_index(body->space)][body->port];

	store(&t->entry[index].next, *head);
	store(head, index + 1);
}

static void chain_remove(struct vb_port_table *t, uint32_t index, const struct vb_port_body *body)
{
	int space = space_index(body->space);
	uint32_t *at = space < 0 ? NULL : &t->head[space][body->port];

	for (uint32_t i = 0; at && *at && *at <= VB_PORT_BINDINGS && i < VB_PORT_BINDINGS; i++) {
		if (*at == index + 1) {
			store(at, t->entry[index].next);
			return;
		}
		at = &t->entry[*at - 1].next;
	}
}

static void entry_free(struct vb_port_table *t, uint32_t index, const struct vb_port_body *body)
{
	chain_remove(t, index, body);
	mark(t, index, false);
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

	if (space_index(b->space) < 0)
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
	if (index == VB_PORT_NOBODY && seats_reap(t, who))
		index = entry_find(t);
	if (index == VB_PORT_NOBODY)
		return -ENOMEM;
	body.serial = ++t->serial;
	body_write(&t->entry[index], &body);
	mark(t, index, true);
	chain_add(t, index, &body);
	t->next_entry = index;
	b->port = body.port;
	*handle = (uint64_t)body.serial << 32 | (index + 1);
	return 0;
}

int vb_port_listen(struct vb_port_table *t, const struct vb_port_asker *who, uint64_t handle)
{
	struct vb_port_body body;
	struct vb_port_entry *e = entry_of(t, who->seat, handle, &body);
	int err;

	if (!e)
		return -ENOENT;
	err = port_judge(t, who, &body, vb_port_listen_verdict, (uint32_t)handle);
	if (err)
		return err;
	body.flags |= VB_PORT_LISTENING;
	body_write(e, &body);
	return 0;
}

int vb_port_change(struct vb_port_table *t, const struct vb_port_asker *who, uint64_t handle,
		   const struct vb_gsi_binding *b)
{
	struct vb_port_body body;
	struct vb_port_entry *e = entry_of(t, who->seat, handle, &body);

	if (!e)
		return -ENOENT;
	describe(&body, b);
	body_write(e, &body);
	return 0;
}

static uint64_t left_word(uint16_t port, uint64_t now)
{
	return now / NS_PER_MS << 16 | port;
}

void vb_port_unbind(struct vb_port_table *t, const struct vb_port_asker *who, uint64_t handle)
{
	struct vb_port_body body;
	struct vb_port_entry *e = entry_of(t, who->seat, handle, &body);

	if (!e)
		return;
	entry_free(t, (uint32_t)(e - t->entry), &body);
	if (body.flags & VB_PORT_LISTENING)
		__atomic_store_n(&t->left[t->next_left++ % VB_PORT_LEFTS],
				 left_word(body.port, who->now), __ATOMIC_RELAXED);
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
	int space = space_index(wanted->space);
	uint32_t at = space < 0 ? 0 : load(&t->head[space][wanted->port]);
	struct vb_port_body body;

	if (left_lately(t, wanted->port, now))
		return true;
	for (uint32_t i = 0; at && at <= VB_PORT_BINDINGS && i < VB_PORT_BINDINGS; i++) {
		if (body_read(&t->entry[at - 1], &body, &at) && body.port == wanted->port &&
		    !body.remote_port)
			return true;
	}
	return false;
}

static void block_rest(struct vb_port_table *t, uint32_t block, uint64_t now)
{
	struct vb_port_rest *rest = &t->rest[t->next_rest++ % VB_PORT_RESTS];

	__atomic_store_n(&rest->block, block, __ATOMIC_RELAXED);
	__atomic_store_n(&rest->since, now, __ATOMIC_RELAXED);
}

void vb_port_seat_clear(struct vb_port_table *t, uint32_t seat, uint64_t now)
{
	struct vb_port_seat *s = &t->seat[seat];
	uint32_t block = s->number >> VB_QPN_BLOCK_BITS;

	for (uint32_t word = 0; word < VB_PORT_BINDINGS / 64; word++) {
		for (uint64_t bits = t->used[word]; bits; bits &= bits - 1) {
			uint32_t index = word * 64 + (uint32_t)__builtin_ctzll(bits);
			struct vb_port_body body;

			body_get(&t->entry[index], &body);
			if (body.seat == seat)
				entry_free(t, index, &body);
		}
	}
	if (s->number && block < VB_PORT_BLOCKS) {
		block_rest(t, block, now);
		__atomic_store_n(&t->seat_of[block], 0, __ATOMIC_RELAXED);
	}
	store(&s->number, 0);
	store(&s->taken, 0);
}

void vb_port_seat_take(struct vb_port_table *t, uint32_t seat, uint32_t number, uint64_t now)
{
	struct vb_port_seat *s = &t->seat[seat];
	uint32_t block = number >> VB_QPN_BLOCK_BITS;

	vb_port_seat_clear(t, seat, now);
	store(&s->taken, 1);
	store(&s->number, number);
	if (number && block < VB_PORT_BLOCKS)
		__atomic_store_n(&t->seat_of[block], (uint16_t)(seat + 1), __ATOMIC_RELEASE);
}

bool vb_port_block_rests(const struct vb_port_table *t, uint32_t block, uint64_t now)
{
	if (vb_port_seat_of(t, block) != VB_PORT_NOBODY)
		return true;
	for (uint32_t i = 0; i < VB_PORT_RESTS; i++) {
		const struct vb_port_rest *rest = &t->rest[i];

		if (rest->since && rest->block == block && now - rest->since < VB_PORT_REST_NS)
			return true;
	}
	return false;
}

void vb_port_mend(struct vb_port_table *t, uint16_t space, uint16_t port)
{
	int index = space_index(space);
	uint32_t at = index < 0 ? 0 : t->head[index][port];

	for (uint32_t i = 0; at && at <= VB_PORT_BINDINGS && i < VB_PORT_BINDINGS; i++) {
		struct vb_port_entry *e = &t->entry[at - 1];

		if (e->version & 1)
			store(&e->version, e->version + 1);
		at = e->next;
	}
}

uint32_t vb_port_member(const struct vb_port_table *t, uint32_t seat)
{
	return load(&t->seat[seat].number) & ((1u << 24) - 1);
}

uint32_t vb_port_seat_of(const struct vb_port_table *t, uint32_t block)
{
	uint32_t seat;

	if (block >= VB_PORT_BLOCKS)
		return VB_PORT_NOBODY;
	seat = __atomic_load_n(&t->seat_of[block], __ATOMIC_ACQUIRE);
	if (!seat || seat > VB_COMMONS_SEATS ||
	    vb_port_member(t, seat - 1) >> VB_QPN_BLOCK_BITS != block)
		return VB_PORT_NOBODY;
	return seat - 1;
}

/* How well a listener fits a request; one that fits its port alone will refuse it. */
static int fit_of(const struct vb_port_body *body, const struct vb_port_wanted *wanted)
{
	struct vb_port_binding listener;

	if (!(body->flags & VB_PORT_LISTENING))
		return -1;
	if (!wanted->ip)
		return 0;
	binding_of(body, &listener);
	return vb_port_fit(&listener, wanted->address, wanted->scope);
}

/* One walk. -EAGAIN: an entry changed or left the chain meanwhile. */
static int chain_find(const struct vb_port_table *t, const uint32_t *head,
		      const struct vb_port_wanted *wanted, struct vb_port_body *best)
{
	int most = -1;
	uint32_t at = load(head);

	for (uint32_t i = 0; at; i++) {
		const struct vb_port_entry *e = &t->entry[at - 1];
		struct vb_port_body body;
		int fit;

		if (at > VB_PORT_BINDINGS || i == VB_PORT_BINDINGS)
			return -EAGAIN;
		if (!body_read(e, &body, &at) || body.space != wanted->space ||
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
	int space = space_index(wanted->space);
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
