/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* VERBATIM_DEVICES: patterns against names. */
#include "device/visible.h"

#include <ctype.h>
#include <fnmatch.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define PATTERN_MOST 256u /* names are far shorter */

/* Copies the pattern at `at` without the blanks around it. Returns what follows the pattern. */
static const char *next_pattern(const char *at, char pattern[PATTERN_MOST])
{
	size_t length = strcspn(at, ",");
	const char *rest = at + length + (at[length] == ',');

	while (length && isspace((unsigned char)*at)) {
		at++;
		length--;
	}
	while (length && isspace((unsigned char)at[length - 1]))
		length--;
	if (length >= PATTERN_MOST)
		length = PATTERN_MOST - 1;
	memcpy(pattern, at, length);
	pattern[length] = '\0';
	return rest;
}

enum vb_wish vb_wish_of(const char *patterns, const char *name)
{
	enum vb_wish wish = VB_WISH_DEFAULT;
	bool chooses = false; /* a pattern names devices to be listed */
	char pattern[PATTERN_MOST];

	while (patterns && *patterns) {
		patterns = next_pattern(patterns, pattern);
		bool hides = pattern[0] == '!';

		if (!pattern[hides])
			continue;
		chooses |= !hides;
		if (!fnmatch(pattern + hides, name, 0))
			wish = hides ? VB_WISH_HIDE : VB_WISH_SHOW;
	}
	return wish == VB_WISH_DEFAULT && chooses ? VB_WISH_HIDE : wish;
}

const char *vb_wish_patterns(void)
{
	return secure_getenv("VERBATIM_DEVICES");
}
