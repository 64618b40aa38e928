/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A ring of packets of various lengths. */
#include "remote/inbox.h"

#include <string.h>
#include <sys/mman.h>

#include "base/sys.h"

#define RING_BYTES (1u << 20) /* a power of two */

struct vb_udp_inbox {
	/* They count for ever; the place is the count modulo the size. */
	_Alignas(64) _Atomic uint64_t head;
	_Alignas(64) _Atomic uint64_t tail;
	_Alignas(64) uint8_t data[RING_BYTES];
};

struct packet {
	struct vb_run run;
	bool skip; /* nothing more fits behind: go on at the start of the ring */
	uint8_t payload[];
};

struct vb_udp_inbox *vb_udp_inbox_create(void)
{
	/* Pages become present as they are filled. */
	void *box = vb_sys_pages(sizeof(struct vb_udp_inbox));

	return box == MAP_FAILED ? NULL : box;
}

void vb_udp_inbox_destroy(struct vb_udp_inbox *box)
{
	if (box)
		munmap(box, sizeof(*box));
}

static uint32_t packet_bytes(uint32_t length)
{
	return (uint32_t)(sizeof(struct packet) + length + 15) & ~15u;
}

static struct packet *packet_at(struct vb_udp_inbox *box, uint64_t count)
{
	return (struct packet *)(void *)(box->data + (count & (RING_BYTES - 1)));
}

static uint32_t rest_at(uint64_t count)
{
	return RING_BYTES - (uint32_t)(count & (RING_BYTES - 1));
}

uint32_t vb_udp_inbox_room(struct vb_udp_inbox *box)
{
	uint64_t head = atomic_load_explicit(&box->head, memory_order_relaxed);

	return RING_BYTES -
	       (uint32_t)(head - atomic_load_explicit(&box->tail, memory_order_acquire));
}

bool vb_udp_inbox_push(struct vb_udp_inbox *box, const struct vb_run *run, const uint8_t *payload)
{
	uint64_t head = atomic_load_explicit(&box->head, memory_order_relaxed);
	uint64_t tail = atomic_load_explicit(&box->tail, memory_order_acquire);
	uint32_t bytes = packet_bytes(run->length);
	uint32_t waste = rest_at(head) < bytes ? rest_at(head) : 0;

	if (head + waste + bytes - tail > RING_BYTES)
		return false;
	if (waste >= sizeof(struct packet))
		packet_at(box, head)->skip = true;
	head += waste;
	struct packet *p = packet_at(box, head);

	p->run = *run;
	p->skip = false;
	memcpy(p->payload, payload, run->length);
	atomic_store_explicit(&box->head, head + bytes, memory_order_release);
	return true;
}

const struct vb_run *vb_udp_inbox_peek(struct vb_udp_inbox *box, const uint8_t **payload)
{
	uint64_t tail = atomic_load_explicit(&box->tail, memory_order_relaxed);

	if (tail == atomic_load_explicit(&box->head, memory_order_acquire))
		return NULL;
	if (rest_at(tail) < sizeof(struct packet) || packet_at(box, tail)->skip) {
		tail += rest_at(tail);
		atomic_store_explicit(&box->tail, tail, memory_order_release);
	}
	*payload = packet_at(box, tail)->payload;
	return &packet_at(box, tail)->run;
}

void vb_udp_inbox_pop(struct vb_udp_inbox *box)
{
	uint64_t tail = atomic_load_explicit(&box->tail, memory_order_relaxed);

	atomic_store_explicit(&box->tail, tail + packet_bytes(packet_at(box, tail)->run.length),
			      memory_order_release);
}
