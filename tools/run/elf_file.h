/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What can be read from a program file without running it. */
#ifndef TOOLS_RUN_ELF_FILE_H
#define TOOLS_RUN_ELF_FILE_H

#include <limits.h>
#include <stdbool.h>

struct elf_file {
	bool other_bits;       /* not of this program's word size */
	int machine;           /* EM_*, if it is not this program's; otherwise 0 */
	char loader[PATH_MAX]; /* the program that loads its libraries; empty: it is static */
	bool go;               /* compiled by Go, whose run-time makes system calls itself */
	bool has_verbs;        /* defines ibv_open_device: a libibverbs is part of it */
};

/* 0, -ENOEXEC if the file is no ELF program that this function understands, or another errno. */
int elf_file_read(struct elf_file *elf, int fd);

#endif
