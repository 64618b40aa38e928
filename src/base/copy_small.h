/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copying a few bytes whose number is not known when compiling, without a call. */
#ifndef VB_BASE_COPY_SMALL_H
#define VB_BASE_COPY_SMALL_H

#include <stdint.h>
#include <string.h>

#define VB_COPY_SMALL 32u /* bytes, at most */

/* Two copies of a fixed size, which overlap unless the length is twice that size. */
#define VB_COPY_ENDS(type)                                                \
	do {                                                              \
		type head, tail;                                          \
		memcpy(&head, src, sizeof(type));                         \
		memcpy(&tail, src + length - sizeof(type), sizeof(type)); \
		memcpy(dst, &head, sizeof(type));                         \
		memcpy(dst + length - sizeof(type), &tail, sizeof(type)); \
	} while (0)

struct vb_copy_16 {
	uint64_t word[2];
};

/* As memcpy(3), for at most VB_COPY_SMALL bytes. */
static inline void vb_copy_small(void *to, const void *from, uint32_t length)
{
	const uint8_t *src = from;
	uint8_t *dst = to;

	if (length >= 16) {
		VB_COPY_ENDS(struct vb_copy_16);
	} else if (length >= 8) {
		VB_COPY_ENDS(uint64_t);
	} else if (length >= 4) {
		VB_COPY_ENDS(uint32_t);
	} else if (length) {
		dst[0] = src[0];
		dst[length / 2] = src[length / 2];
		dst[length - 1] = src[length - 1];
	}
}

#undef VB_COPY_ENDS

#endif
