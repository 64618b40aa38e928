/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A promise that must hold for every input: if it does not, say which and abort, which every fuzzer
 * takes for a finding.
 */
#ifndef TESTS_FUZZ_DEMAND_H
#define TESTS_FUZZ_DEMAND_H

#include <stdio.h>
#include <stdlib.h>

#define DEMAND(what)                                                                       \
	do {                                                                               \
		if (!(what)) {                                                             \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #what); \
			abort();                                                           \
		}                                                                          \
	} while (0)

#endif
