/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "support/words.h"

#include <string.h>

#include "support/check.h"

/* Not 0: memory that nobody has written holds no word. */
static uint64_t word_of(uint32_t message, size_t at)
{
	return ((uint64_t)message << 32 | 1) + at;
}

void words_fill(uint8_t *bytes, size_t length, uint32_t message)
{
	for (size_t at = 0; at + 8 <= length; at += 8) {
		uint64_t word = word_of(message, at);

		memcpy(bytes + at, &word, sizeof(word));
	}
	for (size_t at = length & ~(size_t)7; at < length; at++)
		bytes[at] = (uint8_t)message;
}

void words_check(const uint8_t *bytes, size_t length, uint32_t message)
{
	for (size_t at = 0; at + 8 <= length; at += 8) {
		uint64_t word;

		memcpy(&word, bytes + at, sizeof(word));
		CHECK_SAY(word == word_of(message, at),
			  "message %u of %zu bytes: word at %zu is %#llx", message, length, at,
			  (unsigned long long)word);
	}
	for (size_t at = length & ~(size_t)7; at < length; at++)
		CHECK_EQ(bytes[at], (uint8_t)message);
}
