/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How a function of the C library is replaced: the definition that programs bind to instead, the
 * pointer to the one that would have been called, and the registration by which the constructor
 * finds that one.
 *
 * The replacements have C names of their own, and get the library's names as assembler names. So
 * no header's redirection (64-bit offsets), fortification or attribute (nonnull, by which a
 * compiler drops the test for a null pointer) applies to them.
 *
 * What a replacement may do: these functions are called in signal handlers, in children of
 * vfork(2), and before any constructor ran. No allocation, no stdio, no lock; errno is that of the
 * function that was replaced; and no room on the stack for a call outside of the view.
 */
#ifndef PRELOAD_HOOK_H
#define PRELOAD_HOOK_H

#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "view.h"

typedef void (*hook_fn)(void);

struct hook {
	const char *name;
	const char *version; /* NULL: the default one */
	hook_fn *real;
};

/*
 * The function that is replaced. It is called through here until the constructor has found it, as
 * other preloaded libraries and the run-times of sanitizers do.
 */
hook_fn hook_real(const struct hook *hook);

/*
 * Finds every function that is replaced. May run in several threads at once. False where this
 * thread is doing so already: what it looks for, it finds later.
 */
bool hook_find_all(void);

#define HOOK_EXPORT  __attribute__((visibility("default")))
#define HOOK_OUTLINE __attribute__((noinline, cold))

/* Declares the replacement of `name`, which programs know as `symbol`. */
#define HOOK_OF(type, name, symbol, of_version, params)                                   \
	HOOK_EXPORT type hook_##name params __asm__(symbol);                              \
	static __typeof__(hook_##name) *real_##name;                                      \
	static const struct hook entry_##name                                             \
		__attribute__((used, section("view_hooks"), aligned(sizeof(void *)))) = { \
			real_symbol_##name, of_version, (hook_fn *)(void *)&real_##name}

#define HOOK(type, name, params)                        \
	static const char real_symbol_##name[] = #name; \
	HOOK_OF(type, name, #name, NULL, params)

/*
 * A function of which the C library has two versions. A program that was linked long ago goes on
 * to get the old one. `old` and `now` are the C names; architectures younger than the second
 * version have that one only.
 */
#if defined(__x86_64__)
#define HOOK_VERSIONED(type, c_name, name, of_version, mark, params) \
	static const char real_symbol_##c_name[] = #name;            \
	HOOK_OF(type, c_name, "hook_" #c_name, of_version, params);  \
	__asm__(".symver hook_" #c_name "," #name mark of_version)
#define HOOK_OLD(type, c_name, name, of_version, params) \
	HOOK_VERSIONED(type, c_name, name, of_version, "@", params)
#define HOOK_NOW(type, c_name, name, of_version, params) \
	HOOK_VERSIONED(type, c_name, name, of_version, "@@", params)
#define HOOK_HAS_OLD 1
#else
#define HOOK_NOW(type, c_name, name, of_version, params)  \
	static const char real_symbol_##c_name[] = #name; \
	HOOK_OF(type, c_name, #name, NULL, params)
#define HOOK_HAS_OLD 0
#endif

#define REAL(name)                                                     \
	(real_##name ? __atomic_load_n(&real_##name, __ATOMIC_RELAXED) \
		     : (__typeof__(hook_##name) *)hook_real(&entry_##name))

/*
 * The families. `path` is the parameter's name in each; `args` are the parameters as they are
 * handed on. A call with a path inside of the view takes a second function, which has room for the
 * other path.
 */
#define HOOK_BODY(type, name, find, dir, params, args) \
	HOOK_OUTLINE static type inside_##name params  \
	{                                              \
		char room[PATH_MAX];                   \
                                                       \
		path = find(dir, path, room);          \
		return REAL(name) args;                \
	}                                              \
	type hook_##name params                        \
	{                                              \
		if (view_passes(path))                 \
			return REAL(name) args;        \
		return inside_##name args;             \
	}                                              \
	_Static_assert(1, "")

/* A path that is relative to the working directory. */
#define HOOK_PATH(type, name, params, args) \
	HOOK(type, name, params);           \
	HOOK_BODY(type, name, view_path, AT_FDCWD, params, args)

/* A path that is relative to the directory `dirfd`. */
#define HOOK_AT(type, name, params, args) \
	HOOK(type, name, params);         \
	HOOK_BODY(type, name, view_path, dirfd, params, args)

#endif
