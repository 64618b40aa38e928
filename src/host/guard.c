/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Guarded access as restartable sequences of x86-64.
 *
 * The kernel's rule that a sequence has no system call is judged by the instruction pointer at the
 * call's return, which is the first address behind the sequence here, since the call is its last
 * instruction. A call that the kernel begins again after a signal begins inside the sequence, hence
 * with the look.
 */
#include "host/guard.h"

#include <errno.h>

#if defined(__x86_64__) && defined(__LP64__)

/* Offsets in struct rseq of rseq(2), and the signature before an abort handler. */
#define AREA_CPU  4
#define AREA_CS   8
#define SIGNATURE "0x53053053"

/* Weak: an older C library has neither symbol. */
extern const ptrdiff_t __rseq_offset __attribute__((weak));
extern const unsigned int __rseq_size __attribute__((weak));

static char *area(void)
{
	char *thread;

	if (!&__rseq_size || !__rseq_size)
		return NULL;
	__asm__("movq %%fs:0, %0" : "=r"(thread));
	return thread + __rseq_offset;
}

/* The number of the processor is negative while the thread is not registered. */
static bool registered(const char *a)
{
	return a && *(const volatile int32_t *)(const volatile void *)(a + AREA_CPU) >= 0;
}

bool vb_guard_possible(void)
{
	return registered(area());
}

/*
 * Labels. 0: stores where the sequence lies. 1: looks; the access follows. 2: is behind the access.
 * 4: the kernel sends an interrupted thread here. 5: a word that has changed leads here. r11 and
 * `scratch` are changed; all other registers are as they were whenever the sequence begins again.
 */
#define BEGIN(scratch, half)                   \
	".pushsection __rseq_cs, \"aw\"\n\t"   \
	".balign 32\n"                         \
	"9:\n\t"                               \
	".long 0, 0\n\t"                       \
	".quad 1f, 2f - 1f, 4f\n\t"            \
	".popsection\n"                        \
	"0:\n\t"                               \
	"leaq 9b(%%rip), %%r11\n\t"            \
	"movq %%r11, 8(%[area])\n"             \
	"1:\n\t"                               \
	"movq 0(%[guard]), %%r11\n\t"          \
	"movl 32(%[guard]), %%" half "\n\t"    \
	"cmpl %%" half ", (%%r11)\n\t"         \
	"jne 5f\n\t"                           \
	"movq 8(%[guard]), %%r11\n\t"          \
	"movl 36(%[guard]), %%" half "\n\t"    \
	"cmpl %%" half ", (%%r11)\n\t"         \
	"jne 5f\n\t"                           \
	"movq 16(%[guard]), %%r11\n\t"         \
	"movq 24(%[guard]), %%" scratch "\n\t" \
	"cmpq %%" scratch ", (%%r11)\n\t"      \
	"jne 5f\n\t"

#define END(changed)                              \
	"\n2:\n\t"                                \
	".pushsection .text.unlikely, \"ax\"\n\t" \
	".byte 0x0f, 0xb9, 0x3d\n\t"              \
	".long " SIGNATURE "\n"                   \
	"4:\n\t"                                  \
	"jmp 0b\n"                                \
	"5:\n\t" changed "\n\t"                   \
	"jmp 2b\n\t"                              \
	".popsection\n"

#define COMMON [area] "r"(a), [guard] "r"(guard)
#define SPENT  "rcx", "r11", "cc", "memory"

_Static_assert(offsetof(struct vb_guard, first) == 0 && offsetof(struct vb_guard, second) == 8 &&
		       offsetof(struct vb_guard, third) == 16 &&
		       offsetof(struct vb_guard, third_is) == 24 &&
		       offsetof(struct vb_guard, first_is) == 32 &&
		       offsetof(struct vb_guard, second_is) == 36,
	       "as the assembler code has it");
_Static_assert(ESTALE == 116 && AREA_CS == 8, "as the assembler code has it");

ssize_t vb_guard_call(const struct vb_guard *guard, long number, const long argument[6])
{
	long first = argument[0], second = argument[1], third = argument[2];
	long fourth = argument[3], fifth = argument[4], sixth = argument[5];
	char *a = area();
	long result = number;

	if (!registered(a))
		return -EOPNOTSUPP;
	/*
	 * All values are loaded before: a call between here and the assembler code, such as the
	 * thread sanitizer's for each load, changes these registers.
	 */
	register long r10 __asm__("r10") = fourth;
	register long r8 __asm__("r8") = fifth;
	register long r9 __asm__("r9") = sixth;

	__asm__ volatile(BEGIN("rcx", "ecx") "syscall" END("movq $-116, %%rax")
			 : "+a"(result)
			 : "D"(first), "S"(second), "d"(third), "r"(r10), "r"(r8), "r"(r9), COMMON
			 : SPENT);
	return result;
}

int vb_guard_store(const struct vb_guard *guard, uint64_t *word, uint64_t value)
{
	char *a = area();
	int result = 0;

	if (!registered(a))
		return -EOPNOTSUPP;
	__asm__ volatile(BEGIN("rcx", "ecx") "movq %[value], (%[word])" END("movl $-116, %[result]")
			 : [result] "+r"(result)
			 : [value] "r"(value), [word] "r"(word), COMMON
			 : SPENT);
	return result;
}

int vb_guard_add(const struct vb_guard *guard, uint64_t *word, uint64_t *value)
{
	char *a = area();
	int result = 0;

	if (!registered(a))
		return -EOPNOTSUPP;
	__asm__ volatile(BEGIN("rcx",
			       "ecx") "lock xaddq %[value], (%[word])" END("movl $-116, %[result]")
			 : [result] "+&r"(result), [value] "+&r"(*value)
			 : [word] "r"(word), COMMON
			 : SPENT);
	return result;
}

int vb_guard_swap(const struct vb_guard *guard, uint64_t *word, uint64_t *compare, uint64_t swap)
{
	char *a = area();
	int result = 0;

	if (!registered(a))
		return -EOPNOTSUPP;
	__asm__ volatile(
		BEGIN("rcx", "ecx") "lock cmpxchgq %[swap], (%[word])" END("movl $-116, %[result]")
		: [result] "+&r"(result), "+&a"(*compare)
		: [word] "r"(word), [swap] "r"(swap), COMMON
		: SPENT);
	return result;
}

/*
 * An interrupted copy goes on where it was: a string instruction keeps its place in three
 * registers, the loop over words in one, which counts up to 0. It may be 0 already, if the thread
 * was interrupted before the last jump.
 */
static int move_string(char *a, const struct vb_guard *guard, char *to, const char *from,
		       size_t bytes)
{
	int result = 0;

	__asm__ volatile(BEGIN("rax", "eax") "rep movsb" END("movl $-116, %[result]")
			 : [result] "+&r"(result), "+&D"(to), "+&S"(from), "+&c"(bytes)
			 : COMMON
			 : "rax", "r11", "cc", "memory");
	return result;
}

static int move_words(char *a, const struct vb_guard *guard, char *to, const char *from,
		      size_t bytes)
{
	long left = -(long)bytes;
	int result = 0;

	__asm__ volatile(BEGIN("rax", "eax") "testq %[left], %[left]\n\t"
					     "jz 2f\n"
					     "6:\n\t"
					     "movq (%[from], %[left]), %%rax\n\t"
					     "movq %%rax, (%[to], %[left])\n\t"
					     "addq $8, %[left]\n\t"
					     "jnz 6b" END("movl $-116, %[result]")
			 : [result] "+&r"(result), [left] "+&r"(left)
			 : [to] "r"(to + bytes), [from] "r"(from + bytes), COMMON
			 : "rax", "r11", "cc", "memory");
	return result;
}

/* Below this length a string instruction takes longer to begin than a loop over words takes. */
#define STRING_WORTH 512u

int vb_guard_move(const struct vb_guard *guard, void *to, const void *from, size_t bytes)
{
	size_t words = bytes < STRING_WORTH ? bytes & ~(size_t)7 : 0;
	char *a = area();
	int err = 0;

	if (!registered(a))
		return -EOPNOTSUPP;
	if (words)
		err = move_words(a, guard, to, from, words);
	if (!err && bytes > words)
		err = move_string(a, guard, (char *)to + words, (const char *)from + words,
				  bytes - words);
	return err;
}

#else

bool vb_guard_possible(void)
{
	return false;
}

ssize_t vb_guard_call(const struct vb_guard *guard, long number, const long argument[6])
{
	(void)guard, (void)number, (void)argument;
	return -EOPNOTSUPP;
}

int vb_guard_move(const struct vb_guard *guard, void *to, const void *from, size_t bytes)
{
	(void)guard, (void)to, (void)from, (void)bytes;
	return -EOPNOTSUPP;
}

int vb_guard_store(const struct vb_guard *guard, uint64_t *word, uint64_t value)
{
	(void)guard, (void)word, (void)value;
	return -EOPNOTSUPP;
}

int vb_guard_add(const struct vb_guard *guard, uint64_t *word, uint64_t *value)
{
	(void)guard, (void)word, (void)value;
	return -EOPNOTSUPP;
}

int vb_guard_swap(const struct vb_guard *guard, uint64_t *word, uint64_t *compare, uint64_t swap)
{
	(void)guard, (void)word, (void)compare, (void)swap;
	return -EOPNOTSUPP;
}

#endif
