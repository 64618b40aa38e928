/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The start of programs. Before glibc 2.34 a program's start files brought the function that runs its
 * constructors; those of later releases leave that to the C library, whose older function then runs none.
 * This brings one again: both generations of the C library call what they are given.
 */
#include <stddef.h>

typedef int main_function(int argc, char **argv, char **environment);
typedef void constructor(int argc, char **argv, char **environment);

int floor_start(main_function *program, int argc, char **argv, constructor *initialise,
		void (*finish)(void), void (*loader_finish)(void), void *stack_end);
__asm__(".symver floor_start, __libc_start_main@GLIBC_2.2.5");

int __libc_start_main(main_function *program, int argc, char **argv, constructor *initialise,
		      void (*finish)(void), void (*loader_finish)(void), void *stack_end);

/* From crti.o, and from the linker. */
void _init(void);
extern constructor *const __init_array_start[] __attribute__((visibility("hidden")));
extern constructor *const __init_array_end[] __attribute__((visibility("hidden")));

static void run_constructors(int argc, char **argv, char **environment)
{
	_init();
	for (constructor *const *one = __init_array_start; one != __init_array_end; one++)
		(*one)(argc, argv, environment);
}

/* The loader itself runs destructors. */
int __libc_start_main(main_function *program, int argc, char **argv, constructor *initialise,
		      void (*finish)(void), void (*loader_finish)(void), void *stack_end)
{
	(void)initialise;
	(void)finish;
	return floor_start(program, argc, argv, run_constructors, NULL, loader_finish, stack_end);
}
