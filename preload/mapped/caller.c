/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Where the code of libibverbs lies. `verbatim run` preloads it, so it is there from the beginning. */
#include "caller.h"

#include <link.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>

static struct {
	uintptr_t start, bytes;
} library;

static int look(struct dl_phdr_info *info, size_t size, void *unused)
{
	const char *name = strrchr(info->dlpi_name, '/');
	uintptr_t end = 0;

	(void)size, (void)unused;
	if (strncmp(name ? name + 1 : info->dlpi_name, "libibverbs.so", 13) != 0)
		return 0;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];

		if (p->p_type == PT_LOAD && p->p_vaddr + p->p_memsz > end)
			end = p->p_vaddr + p->p_memsz;
	}
	library.start = info->dlpi_addr;
	library.bytes = end;
	return 1;
}

static void find(void)
{
	(void)dl_iterate_phdr(look, NULL);
}

bool caller_is_library(const void *address)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, find);
	return (uintptr_t)address - library.start < library.bytes;
}
