/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Sets of members of an XRC domain, by seat (host/commons.h). Those in the shared table change
 * under its lock.
 */
#ifndef VB_XRC_SEATS_H
#define VB_XRC_SEATS_H

#include <stdbool.h>
#include <stdint.h>

#include "host/commons_seat.h"

#define VB_XRC_SEAT_WORDS (VB_COMMONS_SEATS / 64)

struct vb_xrc_seats {
	uint64_t word[VB_XRC_SEAT_WORDS];
};

static inline void vb_seats_add(struct vb_xrc_seats *s, uint32_t seat)
{
	s->word[seat / 64] |= 1ull << seat % 64;
}

static inline void vb_seats_remove(struct vb_xrc_seats *s, uint32_t seat)
{
	s->word[seat / 64] &= ~(1ull << seat % 64);
}

static inline void vb_seats_merge(struct vb_xrc_seats *s, const struct vb_xrc_seats *more)
{
	for (uint32_t i = 0; i < VB_XRC_SEAT_WORDS; i++)
		s->word[i] |= __atomic_load_n(&more->word[i], __ATOMIC_RELAXED);
}

/* The first member from `seat` on. VB_COMMONS_SEATS: there is none. */
static inline uint32_t vb_seats_next(const struct vb_xrc_seats *s, uint32_t seat)
{
	for (uint32_t i = seat / 64; i < VB_XRC_SEAT_WORDS; i++) {
		uint64_t word = __atomic_load_n(&s->word[i], __ATOMIC_RELAXED);

		if (i == seat / 64)
			word &= ~0ull << seat % 64;
		if (word)
			return i * 64 + (uint32_t)__builtin_ctzll(word);
	}
	return VB_COMMONS_SEATS;
}

static inline bool vb_seats_none(const struct vb_xrc_seats *s)
{
	return vb_seats_next(s, 0) == VB_COMMONS_SEATS;
}

#define VB_SEATS_EACH(seat, set)                                               \
	for (uint32_t seat = vb_seats_next(set, 0); (seat) < VB_COMMONS_SEATS; \
	     (seat) = vb_seats_next(set, (seat) + 1))

#endif
