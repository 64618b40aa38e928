/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Memory whose contents say where they belong: each word of 8 bytes is its number in the memory plus
 * the message's, which is in the upper half, as is each byte behind the last whole word.
 */
#ifndef TESTS_SUPPORT_WORDS_H
#define TESTS_SUPPORT_WORDS_H

#include <stddef.h>
#include <stdint.h>

void words_fill(uint8_t *bytes, size_t length, uint32_t message);
/* Ends the test where the memory is not as words_fill() leaves it. */
void words_check(const uint8_t *bytes, size_t length, uint32_t message);

#endif
