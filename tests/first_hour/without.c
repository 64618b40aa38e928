/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * `without CALL ACTION PROGRAM ARG...`: executes a program that may not make one system call, as
 * under a seccomp filter of a container. ACTION: eperm or kill.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "support/filter.h"

static const struct {
	const char *name;
	uint32_t number;
} calls[] = {
	{"memfd_create", SYS_memfd_create},
	{"pidfd_open", SYS_pidfd_open},
	{"process_vm_readv", SYS_process_vm_readv},
	{"unshare", SYS_unshare},
};

int main(int argc, char **argv)
{
	for (size_t i = 0; argc > 3 && i < sizeof(calls) / sizeof(calls[0]); i++) {
		if (strcmp(calls[i].name, argv[1]) != 0)
			continue;
		if (!filter_calls(&calls[i].number, 1,
				  strcmp(argv[2], "kill") ? SECCOMP_RET_ERRNO | EPERM
							  : SECCOMP_RET_KILL_PROCESS))
			return 77;
		execv(argv[3], argv + 3);
	}
	fprintf(stderr, "usage: without CALL eperm|kill PROGRAM ARG...\n");
	return 2;
}
