/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Inputs of the target `cm`, made of the captured exchanges. */
#ifndef TESTS_FUZZ_CM_SEEDS_H
#define TESTS_FUZZ_CM_SEEDS_H

#include "seeds.h"

void cm_seeds_each(seed_use_fn *use);

#endif
