/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Promise: memory of libverbatim-mapped.so, which is preloaded into this program, behaves as the
 * private memory that the manual pages of malloc(3), mmap(2), munmap(2), mremap(2), madvise(2),
 * mprotect(2), mlock(2) and fork(2) describe; and it is the library's, so that the test is about
 * it. Where the library cannot keep that, the memory is ordinary.
 */
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "host/mapped.h"

extern char **environ;

enum { PAGE = 4096, BLOCK = 64 * PAGE };

#define CHECK(what)                                                                           \
	do {                                                                                  \
		if (!(what)) {                                                                \
			printf("# %s:%d: %s (errno %d)\n", __FILE__, __LINE__, #what, errno); \
			failures++;                                                           \
		}                                                                             \
	} while (0)

static int failures;
static struct vb_mapped mapped;

static bool is_mapped(const void *addr, size_t bytes)
{
	return mapped.holds && mapped.holds(addr, bytes);
}

static bool all_zero(const char *at, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++) {
		if (at[i])
			return false;
	}
	return true;
}

static char *map(size_t bytes, int prot)
{
	char *at = mmap(NULL, bytes, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return at == MAP_FAILED ? NULL : at;
}

static sigjmp_buf faulted;

static void on_fault(int signal)
{
	siglongjmp(faulted, signal);
}

/* The signal that touching the address gives; 0: none. */
static int touch(volatile char *at, bool write)
{
	int signal = sigsetjmp(faulted, 1);

	if (signal)
		return signal;
	if (write)
		*at = 1;
	else
		(void)*at;
	return 0;
}

/* Pages of the mapping that are in memory, as the file has them. */
static long resident_kib(void)
{
	long pages = 0, shared = 0;
	FILE *f = fopen("/proc/self/statm", "r");

	if (f) {
		if (fscanf(f, "%*d %ld %ld", &pages, &shared) != 2)
			pages = 0;
		fclose(f);
	}
	return pages * (PAGE / 1024);
}

static void family(void)
{
	char *a = malloc(BLOCK), *b = calloc(BLOCK, 3), *c = memalign(PAGE, 100), *d = NULL;
	void *e = aligned_alloc(2 << 20, 2 << 20), *f = valloc(1), *g = malloc(100), *none = NULL;

	CHECK(a && b && c && e && f && g);
	CHECK(posix_memalign((void **)&d, 1 << 16, 17) == 0);
	CHECK(is_mapped(a, BLOCK) && is_mapped(b, 3 * BLOCK) && is_mapped(c, 100) &&
	      is_mapped(d, 17));
	CHECK(is_mapped(e, 2 << 20) && (uintptr_t)e % (2 << 20) == 0 &&
	      (uintptr_t)d % (1 << 16) == 0);
	CHECK(is_mapped(f, 1) && (uintptr_t)f % PAGE == 0);
	CHECK(!is_mapped(g, 100));
	CHECK(malloc_usable_size(a) >= BLOCK && malloc_usable_size(g) >= 100);
	CHECK(all_zero(b, 3 * BLOCK));
	memset(b, 5, 3 * BLOCK);
	free(b);
	for (int i = 0; i < 100; i++) {
		b = calloc(1, 3 * BLOCK);
		CHECK(all_zero(b, 3 * BLOCK));
		memset(b, 5, 3 * BLOCK);
		free(b);
	}
	free(a), free(c), free(d), free(e), free(f), free(g), free(NULL);
	errno = 0;
	CHECK(posix_memalign(&none, 3, 1) == EINVAL && posix_memalign(&none, 4, 1) == EINVAL);
	CHECK(!none);
	CHECK(errno == 0);
}

static bool is_refused(void *block)
{
	free(block);
	return !block;
}

static void absurd_sizes(void)
{
	volatile size_t huge = SIZE_MAX / 2, product = SIZE_MAX / 4;

	errno = 0;
	CHECK(is_refused(malloc(huge)) && errno == ENOMEM);
	errno = 0;
	CHECK(is_refused(calloc(product, 8)) && errno == ENOMEM);
	errno = 0;
	CHECK(is_refused(reallocarray(NULL, product, 8)) && errno == ENOMEM);
	errno = 0;
	/* Far more than the machine has: refused at once, as private memory is, not when it is touched. */
	CHECK(is_refused(malloc((size_t)1 << 46)) && errno == ENOMEM);
	CHECK(mmap(NULL, 0, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED &&
	      errno == EINVAL);
}

static void reallocation(void)
{
	char *p = malloc(1000), *q;

	memset(p, 7, 1000);
	p = realloc(p, BLOCK);
	CHECK(is_mapped(p, BLOCK) && p[0] == 7 && p[999] == 7);
	memset(p, 8, BLOCK);
	q = malloc(BLOCK); /* in the way of growing */
	p = realloc(p, 5 * BLOCK);
	CHECK(is_mapped(p, 5 * BLOCK) && p[0] == 8 && p[BLOCK - 1] == 8);
	CHECK(all_zero(p + BLOCK, PAGE));
	p[5 * BLOCK - 1] = 9;
	p = realloc(p, 20 * BLOCK);
	CHECK(p[5 * BLOCK - 1] == 9 && is_mapped(p, 20 * BLOCK));
	p = realloc(p, 2 * BLOCK);
	CHECK(p[BLOCK - 1] == 8 && !is_mapped(p + 2 * BLOCK, PAGE));
	p = realloc(p, 10);
	CHECK(p[0] == 8 && p[9] == 8 && !is_mapped(p, 10));
	free(p);
	free(q);
	p = realloc(NULL, BLOCK);
	CHECK(p && is_mapped(p, BLOCK));
	CHECK(!reallocarray(p, 0, 1));
}

static void unmapped_parts(void)
{
	char *p = map(16 * PAGE, PROT_READ | PROT_WRITE);

	CHECK(p && is_mapped(p, 16 * PAGE) && all_zero(p, 16 * PAGE));
	memset(p, 1, 16 * PAGE);
	CHECK(munmap(p + 4 * PAGE, 3 * PAGE) == 0);
	CHECK(touch(p + 4 * PAGE, false) == SIGSEGV && touch(p + 7 * PAGE - 1, false) == SIGSEGV);
	CHECK(p[4 * PAGE - 1] == 1 && p[7 * PAGE] == 1);
	CHECK(madvise(p, 16 * PAGE, MADV_DONTNEED) == -1 && errno == ENOMEM);
	CHECK(madvise(p, 16 * PAGE, MADV_DONTFORK) == -1 && errno == ENOMEM);
	CHECK(mprotect(p, 16 * PAGE, PROT_READ | PROT_WRITE) == -1 && errno == ENOMEM);
	CHECK(touch(p + 5 * PAGE, true) == SIGSEGV);
	CHECK(munmap(p, 16 * PAGE) == 0 && touch(p, false) == SIGSEGV);
	CHECK(munmap(p, 16 * PAGE) == 0); /* nothing is there: no error, as munmap(2) says */
	CHECK(munmap(p + 1, PAGE) == -1 && errno == EINVAL);
}

static void forgotten(void)
{
	char *p = map(16 * PAGE, PROT_READ | PROT_WRITE);
	long before;

	memset(p, 1, 16 * PAGE);
	CHECK(madvise(p + PAGE, 2 * PAGE, MADV_DONTNEED) == 0);
	CHECK(p[PAGE - 1] == 1 && all_zero(p + PAGE, 2 * PAGE) && p[3 * PAGE] == 1);
	memset(p, 2, 16 * PAGE);
	CHECK(madvise(p, 16 * PAGE, MADV_FREE) == 0);
	memset(p, 3, PAGE);
	CHECK(p[0] == 3 && (p[5 * PAGE] == 0 || p[5 * PAGE] == 2));
	CHECK(madvise(p, PAGE, MADV_REMOVE) == -1 && errno == EINVAL);
	munmap(p, 16 * PAGE);
	/* The memory goes back to the system. */
	before = resident_kib();
	p = map(64 << 20, PROT_READ | PROT_WRITE);
	memset(p, 1, 64 << 20);
	CHECK(resident_kib() - before > 60 << 10);
	CHECK(madvise(p, 64 << 20, MADV_DONTNEED) == 0);
	CHECK(resident_kib() - before < 8 << 10);
	munmap(p, 64 << 20);
}

static void remapped(void)
{
	char *p = map(8 * PAGE, PROT_READ | PROT_WRITE),
	     *in_the_way = map(PAGE, PROT_READ | PROT_WRITE);
	char *q;

	memset(p, 4, 8 * PAGE);
	q = mremap(p, 8 * PAGE, 4 * PAGE, 0);
	CHECK(q == p && touch(p + 4 * PAGE, false) == SIGSEGV && p[4 * PAGE - 1] == 4);
	q = mremap(p, 4 * PAGE, 4096 * PAGE, MREMAP_MAYMOVE);
	CHECK(q != MAP_FAILED && q[0] == 4 && q[4 * PAGE - 1] == 4 &&
	      all_zero(q + 4 * PAGE, 4092 * PAGE));
	CHECK(is_mapped(q, 4096 * PAGE));
	CHECK(q == p || touch(p, false) == SIGSEGV);
	p = q;
	q = map(8 * PAGE, PROT_READ | PROT_WRITE);
	memset(q, 9, 8 * PAGE);
	CHECK(mremap(p, 2 * PAGE, 2 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, q + PAGE) == q + PAGE);
	CHECK(q[0] == 9 && q[PAGE] == 4 && q[3 * PAGE - 1] == 4 && q[3 * PAGE] == 9);
	CHECK(touch(p, false) == SIGSEGV && p[2 * PAGE] == 4);
	CHECK(mremap(p + 1, PAGE, PAGE, 0) == MAP_FAILED && errno == EINVAL);
	CHECK(mremap(q, 8 * PAGE, 0, 0) == MAP_FAILED && errno == EINVAL);
	munmap(p, 4096 * PAGE);
	munmap(q, 8 * PAGE);
	munmap(in_the_way, PAGE);
}

static void protected_pages(void)
{
	char *p = map(4 * PAGE, PROT_READ | PROT_WRITE), *q = map(2 * PAGE, PROT_READ);

	p[PAGE] = 6;
	CHECK(mprotect(p + PAGE, PAGE, PROT_READ) == 0);
	CHECK(touch(p + PAGE, true) == SIGSEGV && touch(p + PAGE, false) == 0 && p[PAGE] == 6);
	CHECK(mprotect(p + PAGE, PAGE, PROT_NONE) == 0 && touch(p + PAGE, false) == SIGSEGV);
	CHECK(mprotect(p + PAGE, PAGE, PROT_READ | PROT_WRITE) == 0 && p[PAGE] == 6);
	CHECK(is_mapped(q, 2 * PAGE) && touch(q, true) == SIGSEGV && q[0] == 0);
	CHECK(mlock(p, 4 * PAGE) == 0 && munlock(p, 4 * PAGE) == 0);
	munmap(p, 4 * PAGE);
	munmap(q, 2 * PAGE);
}

/* What the program maps over a block is what it asked for; private memory stays a block. */
static void mapped_over(void)
{
	char *p = map(8 * PAGE, PROT_READ | PROT_WRITE);
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
	FILE *f = tmpfile();

	CHECK(f && ftruncate(fileno(f), PAGE) == 0 && pwrite(fileno(f), "file", 4, 0) == 4);
	memset(p, 1, 8 * PAGE);
	CHECK(mmap(p + PAGE, PAGE, PROT_READ | PROT_WRITE, flags, -1, 0) == p + PAGE);
	CHECK(all_zero(p + PAGE, PAGE) && p[2 * PAGE] == 1 && is_mapped(p, 8 * PAGE));
	CHECK(mmap(p, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) ==
		      MAP_FAILED &&
	      errno == EEXIST);
	CHECK(mmap(p + 3 * PAGE, PAGE, PROT_READ, MAP_SHARED | MAP_FIXED, fileno(f), 0) ==
	      p + 3 * PAGE);
	CHECK(memcmp(p + 3 * PAGE, "file", 5) == 0 && p[4 * PAGE] == 1);
	CHECK(!is_mapped(p, 8 * PAGE) && is_mapped(p, 3 * PAGE) &&
	      is_mapped(p + 4 * PAGE, 4 * PAGE));
	CHECK(munmap(p, 8 * PAGE) == 0 && touch(p + 3 * PAGE, false) == SIGSEGV);
	fclose(f);
	/* The place serves again. */
	for (int i = 0; i < 50; i++) {
		p = map(8 * PAGE, PROT_READ | PROT_WRITE);
		CHECK(p && all_zero(p, 8 * PAGE));
		munmap(p, 8 * PAGE);
	}
}

static void not_for_blocks(void)
{
	char *p = mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *q = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *r = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	char *s = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK,
		       -1, 0);

	CHECK(p != MAP_FAILED && q != MAP_FAILED && r != MAP_FAILED && s != MAP_FAILED);
	CHECK(!is_mapped(p, PAGE) && !is_mapped(q, PAGE) && !is_mapped(r, PAGE) &&
	      !is_mapped(s, PAGE));
	munmap(p, PAGE), munmap(q, PAGE), munmap(r, PAGE), munmap(s, PAGE);
}

static void wiped(void)
{
	char *p = map(2 * PAGE, PROT_READ | PROT_WRITE);
	int status = -1;
	pid_t pid = -1;

	memset(p, 5, 2 * PAGE);
	CHECK(madvise(p, PAGE, MADV_WIPEONFORK) == 0);
	CHECK(p[0] == 5 && !is_mapped(p, PAGE) && is_mapped(p + PAGE, PAGE));
	pid = fork();
	if (!pid)
		_exit(all_zero(p, PAGE) && p[PAGE] == 5 ? 0 : 1);
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	munmap(p, 2 * PAGE);
}

static int child_sees(char *p, char *q, char *hidden)
{
	char *fresh;

	if (p[0] != 1 || p[BLOCK - 1] != 2 || !all_zero(p + PAGE, PAGE) || q[0] != 3)
		return 2;
	if (touch(hidden, false) != SIGSEGV || mprotect(hidden, PAGE, PROT_READ) || hidden[0] != 8)
		return 3;
	memset(p, 9, BLOCK);
	q = realloc(q, 10 * BLOCK);
	if (!q || q[0] != 3)
		return 4;
	fresh = malloc(BLOCK);
	if (!fresh || is_mapped(fresh, BLOCK) || is_mapped(p, BLOCK))
		return 5;
	memset(fresh, 1, BLOCK);
	if (madvise(p, PAGE, MADV_DONTNEED) || p[0])
		return 6;
	free(fresh), free(q), free(p);
	return munmap(hidden, PAGE) ? 7 : 0;
}

static void forked(void)
{
	char *p = malloc(BLOCK), *q = malloc(BLOCK), *hidden = map(PAGE, PROT_READ | PROT_WRITE);
	int status = -1, go[2] = {-1, -1};
	pid_t pid = -1;
	char c;

	p[0] = 1, p[BLOCK - 1] = 2, q[0] = 3, hidden[0] = 8;
	CHECK(mprotect(hidden, PAGE, PROT_NONE) == 0 && pipe(go) == 0);
	pid = fork();
	if (!pid) {
		if (read(go[0], &c, 1) != 1)
			_exit(1);
		_exit(child_sees(p, q, hidden));
	}
	/* What the parent writes after the fork is not the child's. */
	p[0] = 100, q[0] = 100, p[PAGE] = 100;
	CHECK(write(go[1], "g", 1) == 1);
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	printf("# the child ended with status %#x\n", status);
	CHECK(p[0] == 100 && p[BLOCK - 1] == 2 && q[0] == 100);
	CHECK(mprotect(hidden, PAGE, PROT_READ) == 0 && hidden[0] == 8);
	free(p), free(q), munmap(hidden, PAGE), close(go[0]), close(go[1]);
}

static void kept_from_children(void)
{
	char *p = map(8 * PAGE, PROT_READ | PROT_WRITE);
	int status = -1;
	pid_t pid = -1;

	memset(p, 6, 8 * PAGE);
	CHECK(madvise(p + PAGE, 4 * PAGE, MADV_DONTFORK) == 0);
	CHECK(madvise(p + 2 * PAGE, PAGE, MADV_DOFORK) == 0);
	pid = fork();
	if (!pid)
		_exit(p[0] == 6 && p[2 * PAGE] == 6 && p[5 * PAGE] == 6 &&
				      touch(p + PAGE, false) == SIGSEGV &&
				      touch(p + 4 * PAGE, false) == SIGSEGV
			      ? 0
			      : 1);
	CHECK(waitpid(pid, &status, 0) == pid && status == 0 && p[PAGE] == 6);
	munmap(p, 8 * PAGE);
}

static void forked_twice(void)
{
	char *p = malloc(BLOCK);
	int status = -1;
	pid_t pid = -1;

	p[5] = 1;
	pid = fork();
	if (!pid) {
		p[5] = 2;
		pid = fork();
		if (!pid) {
			bool right = p[5] == 2;

			p[5] = 3;
			_exit(right ? 0 : 1);
		}
		_exit(waitpid(pid, &status, 0) == pid && status == 0 && p[5] == 2 ? 0 : 2);
	}
	CHECK(waitpid(pid, &status, 0) == pid && status == 0 && p[5] == 1);
	free(p);
}

static void spawned(void)
{
	char *argv[] = {(char *)"sh", (char *)"-c", (char *)"exit 7", NULL};
	char *p = malloc(BLOCK);
	int status = -1;
	pid_t pid = -1;

	p[0] = 4;
	CHECK(posix_spawn(&pid, "/bin/sh", NULL, NULL, argv, environ) == 0);
	CHECK(waitpid(pid, &status, 0) == pid && WEXITSTATUS(status) == 7);
	CHECK(WEXITSTATUS(system("exit 3")) == 3 && p[0] == 4);
	free(p);
}

/* Strict limits count private memory, so they leave the memory ordinary: seen in a new process. */
static void limited(int resource)
{
	char *argv[] = {(char *)"semantics", (char *)"--ordinary", NULL};
	int status = -1;
	pid_t pid = fork();

	if (!pid) {
		struct rlimit limit = {(rlim_t)4 << 30, (rlim_t)4 << 30};

		if (!setrlimit(resource, &limit))
			execv("/proc/self/exe", argv);
		_exit(99);
	}
	CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* Calls by their numbers: those of memory are as by name, and all others are the kernel's. */
static void by_number(void)
{
	char *at = (char *)syscall(SYS_mmap, NULL, (size_t)BLOCK, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0l);
	int pipes[2];
	struct timespec none = {0, 0};
	fd_set set;

	CHECK(at != MAP_FAILED && is_mapped(at, BLOCK));
	memset(at, 1, BLOCK);
	CHECK(!syscall(SYS_mprotect, at, (size_t)BLOCK, PROT_READ));
	CHECK(!syscall(SYS_mprotect, at, (size_t)BLOCK, PROT_READ | PROT_WRITE));
	CHECK(!syscall(SYS_madvise, at, (size_t)BLOCK, MADV_DONTNEED));
	CHECK(all_zero(at, BLOCK) && is_mapped(at, BLOCK));
	at = (char *)syscall(SYS_mremap, at, (size_t)BLOCK, (size_t)BLOCK * 2, MREMAP_MAYMOVE);
	CHECK(at != MAP_FAILED && is_mapped(at, BLOCK * 2) && all_zero(at, BLOCK * 2));
	CHECK(!syscall(SYS_munmap, at, (size_t)BLOCK * 2));
	CHECK(!is_mapped(at, BLOCK));
	CHECK(syscall(SYS_mmap, NULL, 0ul, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0l) == -1 &&
	      errno == EINVAL);

	CHECK(syscall(SYS_getpid) == getpid());
	CHECK(syscall(SYS_close, -1) == -1 && errno == EBADF);
	CHECK(!pipe(pipes) && write(pipes[1], "x", 1) == 1);
	FD_ZERO(&set);
	FD_SET(pipes[0], &set);
	/* Six arguments, the last of which must be none. */
	CHECK(syscall(SYS_pselect6, pipes[0] + 1, &set, NULL, NULL, &none, NULL) == 1);
	CHECK(syscall(SYS_pselect6, pipes[0] + 1, &set, NULL, NULL, &none, (void *)1) == -1 &&
	      errno == EFAULT);
	CHECK(!close(pipes[0]) && !close(pipes[1]));
}

static void limits(void)
{
	limited(RLIMIT_AS);
	limited(RLIMIT_DATA);
	limited(RLIMIT_FSIZE);
}

static void *busy(void *argument)
{
	unsigned int seed = (unsigned int)(uintptr_t)argument;
	long wrong = 0;
	char *held[16] = {NULL};
	size_t size[16] = {0};

	for (int i = 0; i < 4000; i++) {
		unsigned int k = (unsigned int)rand_r(&seed) % 16;

		if (held[k]) {
			wrong += held[k][0] != (char)k || held[k][size[k] - 1] != (char)(k + 1);
			free(held[k]);
		}
		size[k] = 60000 + (size_t)rand_r(&seed) % 200000;
		held[k] = malloc(size[k]);
		held[k][0] = (char)k;
		held[k][size[k] - 1] = (char)(k + 1);
		if (i % 7 == 0) {
			char *p = map(3 * PAGE, PROT_READ | PROT_WRITE);

			wrong += !all_zero(p, 3 * PAGE);
			memset(p, 1, 3 * PAGE);
			munmap(p + PAGE, PAGE);
			munmap(p, 3 * PAGE);
		}
	}
	for (int k = 0; k < 16; k++)
		free(held[k]);
	return (void *)wrong;
}

static void threads(void)
{
	pthread_t thread[4];
	void *wrong;

	for (uintptr_t i = 0; i < 4; i++)
		CHECK(pthread_create(&thread[i], NULL, busy, (void *)(i + 1)) == 0);
	for (int i = 0; i < 10; i++) {
		pid_t pid = fork();

		if (!pid)
			_exit(0);
		CHECK(waitpid(pid, NULL, 0) == pid);
	}
	for (int i = 0; i < 4; i++) {
		CHECK(pthread_join(thread[i], &wrong) == 0);
		CHECK(!wrong);
	}
}

static int ordinary(void)
{
	char *p = malloc(BLOCK);
	bool kept = verbatim_mapped_range && !verbatim_mapped_range(&mapped);

	memset(p, 1, BLOCK);
	free(p);
	return kept ? 0 : 1;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} cases[] = {
		{"malloc and its family", family},
		{"sizes that nobody has", absurd_sizes},
		{"realloc", reallocation},
		{"parts are unmapped", unmapped_parts},
		{"what is forgotten is zero, and given back", forgotten},
		{"mremap", remapped},
		{"protection and mlock", protected_pages},
		{"mapped over", mapped_over},
		{"what is no block", not_for_blocks},
		{"wiped on fork", wiped},
		{"a child has copies", forked},
		{"what is kept from children", kept_from_children},
		{"a child of a child", forked_twice},
		{"spawned programs", spawned},
		{"calls by number", by_number},
		{"limits leave memory ordinary", limits},
		{"threads, and forks beside them", threads},
	};
	int bad = 0;

	if (argc > 1 && !strcmp(argv[1], "--ordinary"))
		return ordinary();
	setvbuf(stdout, NULL, _IOLBF, 0);
	signal(SIGSEGV, on_fault);
	signal(SIGBUS, on_fault);
	if (!verbatim_mapped_range || !verbatim_mapped_range(&mapped)) {
		puts("1..0 # SKIP the library is not preloaded, or a limit leaves memory ordinary");
		return 0;
	}
	printf("1..%zu\n", sizeof(cases) / sizeof(cases[0]));
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		failures = 0;
		cases[i].run();
		printf("%sok %zu - %s\n", failures ? "not " : "", i + 1, cases[i].name);
		bad += failures;
	}
	return bad ? 1 : 0;
}
