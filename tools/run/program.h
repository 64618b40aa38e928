/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The program that is to run: its file, and what a preloaded library can do in it. */
#ifndef TOOLS_RUN_PROGRAM_H
#define TOOLS_RUN_PROGRAM_H

#include <limits.h>
#include <stdbool.h>

#include "run/elf_file.h"

struct program {
	/* The file that the kernel loads: of a script the interpreter's. */
	char path[PATH_MAX];
	bool script; /* the file that was named is a script of that interpreter */
	bool known;  /* it is an ELF file, and these were read */
	struct elf_file elf;
	bool raised; /* it gets more rights than its caller: the loader ignores LD_PRELOAD */
};

/* Finds the file as execvp(3) does. 0, -ENOENT, -EACCES or another error of opening it. */
int program_find(struct program *program, const char *name);

/* Whether libraries of this machine's C library can be loaded into it. */
bool program_takes_libraries(const struct program *program);

/* Its loader is musl's, which fails on a library that was made for glibc. */
bool program_is_musl(const struct program *program);

#endif
