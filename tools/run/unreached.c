/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Programs that libraries cannot be put into. A static program and one written in Go do not call
 * the C library to open a file; one with more rights than its caller is loaded without LD_PRELOAD;
 * one of another kind of machine or C library cannot load this library at all.
 */
#include "run/unreached.h"

#include <stddef.h>

#define CURE "; cure: verbatim run --view=namespace"

/* Why the program does not load this library; NULL: it does. */
static const char *not_loaded(const struct program *program)
{
	if (program->elf.other_bits)
		return "is a program of 32 bits, for which there is no verbatim; cure: build it for 64 bits";
	if (program->elf.machine)
		return "is made for another processor; cure: a verbatim built for that processor";
	if (program_is_musl(program))
		return "is made for the C library musl, and this library for glibc; cure: a verbatim built with musl";
	if (program->elf.has_verbs)
		return "has a libibverbs of its own linked in, which nothing replaces; cure: link it with -libverbs, dynamically";
	return NULL;
}

/* Why the preloaded library does not show it the files. */
static const char *not_shown(const struct program *program)
{
	if (program->raised)
		return "gets more rights than you have (setuid, setgid or file capabilities) and so ignores LD_PRELOAD" CURE
		       ", where it gets none";
	if (!program->elf.loader[0])
		return "is a static program, in which no library is preloaded: it does not see the files of the devices" CURE;
	if (program->elf.go)
		return "is written in Go and reads files without the C library: it does not see those of the devices" CURE;
	return NULL;
}

void unreached_say(const struct run *run, const struct program *program)
{
	const char *why = NULL;

	if (program->known) {
		why = not_loaded(program);
		if (!why && run->view == RUN_VIEW_PRELOAD)
			why = not_shown(program);
	}
	if (why)
		run_say(run, "%s %s", program->path, why);
}
