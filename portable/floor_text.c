/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * glibc 2.38: what C23 wants of strtol() and scanf(), 0b101 among it. The functions under their old
 * names do without.
 * Such functions are linked into the portable build where something calls them, and are not exported.
 */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#define OLD(result, name, ...)            \
	result floor_##name(__VA_ARGS__); \
	__asm__(".symver floor_" #name ", " #name "@GLIBC_2.2.5")

OLD(long, strtol, const char *, char **, int);
OLD(long long, strtoll, const char *, char **, int);
OLD(unsigned long, strtoul, const char *, char **, int);
OLD(unsigned long long, strtoull, const char *, char **, int);
int floor_vsscanf(const char *, const char *, va_list);
__asm__(".symver floor_vsscanf, __isoc99_vsscanf@GLIBC_2.7");
int floor_vfscanf(FILE *, const char *, va_list);
__asm__(".symver floor_vfscanf, __isoc99_vfscanf@GLIBC_2.7");

#define C23(result, name)                                               \
	result __isoc23_##name(const char *text, char **end, int base); \
	result __isoc23_##name(const char *text, char **end, int base)  \
	{                                                               \
		return floor_##name(text, end, base);                   \
	}

C23(long, strtol)
C23(long long, strtoll)
C23(unsigned long, strtoul)
C23(unsigned long long, strtoull)

int __isoc23_sscanf(const char *text, const char *format, ...);
int __isoc23_sscanf(const char *text, const char *format, ...)
{
	va_list ap;
	int n;

	va_start(ap, format);
	n = floor_vsscanf(text, format, ap);
	va_end(ap);
	return n;
}

int __isoc23_fscanf(FILE *file, const char *format, ...);
int __isoc23_fscanf(FILE *file, const char *format, ...)
{
	va_list ap;
	int n;

	va_start(ap, format);
	n = floor_vfscanf(file, format, ap);
	va_end(ap);
	return n;
}
