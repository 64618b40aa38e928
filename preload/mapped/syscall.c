/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * syscall(2) of those calls that mmap.c replaces. UCX watches a program's memory by code that it puts over the first
 * instructions of mmap(2) and the like, and then makes the calls by their numbers: without this file, no memory of
 * a program on UCX would be a block.
 *
 * Of every other number it is syscall(2) as the C library has it: no frame of its own, so that whatever a caller can
 * do by it stays possible. Elsewhere than on x86-64 the C library's own is used.
 */
#if defined(__x86_64__)
#include <errno.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "mmap.h"

#define EXPORT __attribute__((visibility("default")))
#define HIDDEN __attribute__((visibility("hidden")))

_Static_assert(SYS_mmap == 9 && SYS_mprotect == 10 && SYS_munmap == 11 && SYS_mremap == 25 &&
		       SYS_madvise == 28,
	       "the numbers below");

EXPORT long syscall(long number, ...);
HIDDEN long mapped_syscall(long number, long a, long b, long c, long d, long e, long f);
HIDDEN long mapped_syscall_failed(long result);

/* Called as syscall() was: the seventh argument is where the caller has put it. */
__asm__(".text\n"
	".globl syscall\n"
	".type syscall, @function\n"
	"syscall:\n"
	"	.cfi_startproc\n"
	"	endbr64\n"
	"	leaq -9(%rdi), %rax\n"
	"	cmpq $2, %rax\n" /* mmap, mprotect, munmap */
	"	jbe mapped_syscall\n"
	"	cmpq $25, %rdi\n"
	"	je mapped_syscall\n"
	"	cmpq $28, %rdi\n"
	"	je mapped_syscall\n"
	"	movq %rdi, %rax\n"
	"	movq %rsi, %rdi\n"
	"	movq %rdx, %rsi\n"
	"	movq %rcx, %rdx\n"
	"	movq %r8, %r10\n"
	"	movq %r9, %r8\n"
	"	movq 8(%rsp), %r9\n"
	"	syscall\n"
	"	cmpq $-4095, %rax\n"
	"	jae 1f\n"
	"	ret\n"
	"1:	movq %rax, %rdi\n"
	"	jmp mapped_syscall_failed\n"
	"	.cfi_endproc\n"
	".size syscall, .-syscall\n");

long mapped_syscall_failed(long result)
{
	errno = (int)-result;
	return -1;
}

long mapped_syscall(long number, long a, long b, long c, long d, long e, long f)
{
	void *addr = (void *)a;
	size_t bytes = (size_t)b;

	switch (number) {
	case SYS_mmap:
		return (long)mmap_any(addr, bytes, (int)c, (int)d, (int)e, f,
				      __builtin_return_address(0));
	case SYS_munmap:
		return munmap_any(addr, bytes);
	case SYS_mremap:
		return (long)mremap_any(addr, bytes, (size_t)c, (int)d, (void *)e);
	case SYS_mprotect:
		return mprotect_any(addr, bytes, (int)c);
	default: /* SYS_madvise */
		return madvise_any(addr, bytes, (int)c);
	}
}
#endif
