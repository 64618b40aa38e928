/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The functions that are replaced: how a replacement is declared, how the next library's function of
 * that name is found, and who is not served.
 *
 * A replacement's C name begins with hook_ and its assembler name is the library's, so that no
 * header's redirection, fortification or attribute applies to it.
 */
#ifndef PRELOAD_RSOCKET_REAL_H
#define PRELOAD_RSOCKET_REAL_H

#include <stdbool.h>
#include <stddef.h>

typedef void (*real_fn)(void);

/* The function that would have been called without this library; found once. */
real_fn real_find(const char *name, real_fn *kept);

#define EXPORT __attribute__((visibility("default")))

#define HOOK(type, name, params)                       \
	EXPORT type hook_##name params __asm__(#name); \
	static real_fn kept_##name;                    \
	typedef type(*type_##name) params;             \
	type hook_##name params

#define REAL(name)          ((type_##name)real_find(#name, &kept_##name))

/* The same function, called from another file. */
#define REAL_OF(name, type) ((type)real_find(#name, &(real_fn){NULL}))

/*
 * While a thread is inside of the library of sockets, what it opens is its own. The same holds for
 * threads of that library and of the verbs: they are known by where their code lies.
 */
extern __thread int real_inside __attribute__((tls_model("initial-exec")));

#define INSIDE(expression)                                \
	__extension__({                                   \
		real_inside++;                            \
		__typeof__(expression) in = (expression); \
		real_inside--;                            \
		in;                                       \
	})

/* Whether a call from this address is the program's, and not of the libraries below. */
bool real_is_program(const void *caller);
#define IS_PROGRAM() (!real_inside && real_is_program(__builtin_return_address(0)))

#endif
