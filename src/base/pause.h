/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* One turn of a loop that waits for another processor. */
#ifndef VB_BASE_PAUSE_H
#define VB_BASE_PAUSE_H

static inline void vb_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

#endif
