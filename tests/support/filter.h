/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* System calls that this process, and what it starts, cannot make from now on: seccomp(2). */
#ifndef TESTS_SUPPORT_FILTER_H
#define TESTS_SUPPORT_FILTER_H

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>

#define FILTER_CALLS 16u

/*
 * `action`: SECCOMP_RET_ERRNO | errno, or SECCOMP_RET_KILL_PROCESS. At most FILTER_CALLS numbers.
 * Holds for the calling thread and those that it starts. False: seccomp(2) is not to be had.
 */
static inline bool filter_calls(const uint32_t *numbers, uint32_t count, uint32_t action)
{
	struct sock_filter code[FILTER_CALLS + 3] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	};
	struct sock_fprog program = {(unsigned short)(count + 3), code};

	if (count > FILTER_CALLS)
		return false;
	for (uint32_t i = 0; i < count; i++)
		code[i + 1] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, numbers[i],
							   (uint8_t)(count - i), 0);
	code[count + 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	code[count + 2] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, action);
	return !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
	       !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

/* One call, refused with this errno. */
static inline bool filter_refuse(uint32_t number, uint32_t err)
{
	return filter_calls(&number, 1, SECCOMP_RET_ERRNO | err);
}

#endif
