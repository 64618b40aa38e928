/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Inputs made of the captures: every packet for the decoder; for the queue pair and the connection
 * manager every conversation, seen from each end.
 */
#ifndef TESTS_FUZZ_SEEDS_H
#define TESTS_FUZZ_SEEDS_H

#include <stddef.h>
#include <stdint.h>

enum seed_kind { SEED_DECODE, SEED_RESPONDER, SEED_CM };

typedef void seed_use_fn(const char *name, const uint8_t *data, size_t size);

/* The kind that a target of this name takes. */
enum seed_kind seed_kind_of(const char *target);

/*
 * Calls use() for each input of that kind made of the captures in `folder`; -1 if there are none.
 */
int seeds_each(const char *folder, enum seed_kind kind, seed_use_fn *use);

#endif
