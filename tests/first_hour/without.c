/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * `without CALL ACTION PROGRAM ARG...`: executes a program that may not make one system call, as
 * under a seccomp filter of a container. ACTION: eperm or kill.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static const struct {
	const char *name;
	unsigned int number;
} calls[] = {
	{"memfd_create", SYS_memfd_create},
	{"pidfd_open", SYS_pidfd_open},
	{"process_vm_readv", SYS_process_vm_readv},
	{"unshare", SYS_unshare},
};

static int filter(unsigned int number, unsigned int action)
{
	struct sock_filter program[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, action),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog all = {sizeof(program) / sizeof(program[0]), program};

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &all);
}

int main(int argc, char **argv)
{
	for (size_t i = 0; argc > 3 && i < sizeof(calls) / sizeof(calls[0]); i++) {
		if (strcmp(calls[i].name, argv[1]) != 0)
			continue;
		if (filter(calls[i].number, strcmp(argv[2], "kill") ? SECCOMP_RET_ERRNO | EPERM
								    : SECCOMP_RET_KILL_PROCESS))
			return 77;
		execv(argv[3], argv + 3);
	}
	fprintf(stderr, "usage: without CALL eperm|kill PROGRAM ARG...\n");
	return 2;
}
