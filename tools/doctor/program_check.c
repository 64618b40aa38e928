/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A program: whether this library reaches it, and which libibverbs and librdmacm it loads without
 * help.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "doctor/checks.h"
#include "doctor/libraries.h"
#include "doctor/finding.h"
#include "library_dir.h"
#include "run/program.h"

#define NAMESPACE "verbatim run --view=namespace"

/* True: nothing more can be said about its libraries. */
static bool judge_file(const struct program *p)
{
	if (!p->known)
		finding_note(NULL, "program %s: it is no ELF program that can be read", p->path);
	else if (p->elf.machine)
		finding_problem("a verbatim that is built for that processor",
				"program %s: it is made for another processor", p->path);
	else if (p->elf.other_bits)
		finding_problem("build it for 64 bits", "program %s: it is a program of 32 bits",
				p->path);
	else if (program_is_musl(p))
		finding_problem("a verbatim that is built with musl",
				"program %s: it is made for the C library musl", p->path);
	else if (p->elf.has_verbs)
		finding_problem(
			"link it with -libverbs, dynamically",
			"program %s: a libibverbs is linked into it, which nothing replaces",
			p->path);
	else if (!p->elf.loader[0])
		finding_note(NAMESPACE ", if it is to see the files in /sys and /dev",
			     "program %s: it is static: no library can be put into it", p->path);
	else
		return false;
	return true;
}

static void judge_rights(const struct program *p)
{
	if (p->raised)
		finding_problem(
			"use a copy without these rights, or " NAMESPACE ", where it gets none",
			"program %s: it gets more rights than you have (setuid, setgid, file capabilities), so LD_PRELOAD, "
			"LD_LIBRARY_PATH and VERBATIM_* are ignored",
			p->path);
	if (p->elf.go)
		finding_note(
			NAMESPACE ", if it is to see the files in /sys and /dev",
			"program %s: it is written in Go, and reads files without the C library",
			p->path);
}

/*
 * The librdmacm of others asks a kernel driver for connections and not this library, so our devices
 * cannot be connected by it.
 */
static void judge_cm(const struct program *p, const char *loads)
{
	char dir[PATH_MAX], own[PATH_MAX], found[PATH_MAX];
	size_t length;

	if (library_dir(dir, sizeof(dir)) || !realpath(dir, own) || !realpath(loads, found))
		return;
	length = strlen(own);
	if (!strncmp(found, own, length) && found[length] == '/')
		finding_ok("program %s: its connections (librdmacm) are made by %s", p->path,
			   loads);
	else
		finding_note(
			"start it by `verbatim run`",
			"program %s: without `verbatim run` its connections are made by %s, which needs a driver in the kernel",
			p->path, loads);
}

static void judge_libraries(const struct program *p)
{
	struct libraries found;

	if (libraries_of(p, &found)) {
		finding_note(NULL, "program %s: its libraries cannot be listed", p->path);
		return;
	}
	if (found.missing[0])
		finding_problem("install the package that has it",
				"program %s: the library %s is not found", p->path, found.missing);
	if (found.sanitizer)
		finding_note(
			"start it by `verbatim run`, which sets ASAN_OPTIONS=verify_asan_link_order=0; ibv_* calls are then checked, too",
			"program %s: it is built with the address sanitizer, which wants to be the first library",
			p->path);
	if (!found.verbs[0])
		finding_note(
			NULL,
			"program %s: it is not linked with libibverbs; it may load it later (dlopen), as UCX and Open MPI do: "
			"`verbatim run` serves that, too",
			p->path);
	else
		finding_ok("program %s: without `verbatim run` it loads %s", p->path, found.verbs);
	if (found.cm[0])
		judge_cm(p, found.cm);
}

void check_program(const char *name)
{
	struct program program;
	int err = program_find(&program, name);

	if (err) {
		finding_problem("look at the spelling, at PATH, and at the file's mode",
				"program %s: %s", name, strerror(-err));
		return;
	}
	if (judge_file(&program))
		return;
	judge_rights(&program);
	judge_libraries(&program);
}
