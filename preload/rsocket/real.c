/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Finding functions, and the code of the libraries whose calls are passed through. */
#include "real.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdint.h>
#include <string.h>

#include <rdma/rsocket.h>

__thread int real_inside __attribute__((tls_model("initial-exec")));

static long absent(void)
{
	errno = ENOSYS;
	return -1;
}

real_fn real_find(const char *name, real_fn *kept)
{
	real_fn function = __atomic_load_n(kept, __ATOMIC_RELAXED);
	void *found;

	if (function)
		return function;
	found = dlsym(RTLD_NEXT, name);
	memcpy(&function, &found, sizeof(function));
	if (!function)
		return (real_fn)absent;
	__atomic_store_n(kept, function, __ATOMIC_RELAXED);
	return function;
}

enum { RANGES = 2 };

/* Where librdmacm and libibverbs lie. */
static struct {
	uintptr_t start, end;
} ranges[RANGES];

static int note_range(struct dl_phdr_info *info, size_t size, void *arg)
{
	const uintptr_t *inside = arg;
	uintptr_t start = UINTPTR_MAX, end = 0;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		uintptr_t from = info->dlpi_addr + p->p_vaddr;

		if (p->p_type != PT_LOAD)
			continue;
		if (from < start)
			start = from;
		if (from + p->p_memsz > end)
			end = from + p->p_memsz;
	}
	for (int r = 0; r < RANGES; r++) {
		if (inside[r] < start || inside[r] >= end)
			continue;
		ranges[r].start = start;
		ranges[r].end = end;
	}
	return 0;
}

__attribute__((constructor)) static void find_ranges(void)
{
	uintptr_t inside[RANGES] = {(uintptr_t)rsocket, (uintptr_t)ibv_open_device};

	dl_iterate_phdr(note_range, inside);
}

bool real_is_program(const void *caller)
{
	for (int r = 0; r < RANGES; r++) {
		if ((uintptr_t)caller >= ranges[r].start && (uintptr_t)caller < ranges[r].end)
			return false;
	}
	return true;
}
