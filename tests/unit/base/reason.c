/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Every reason has a code of its own, a name, a meaning, a cause and a cure that can be read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/reason.h"

/* A sentence: a full stop behind, no space doubled or at an end. */
static void check_sentence(const char *name, const char *text)
{
	size_t length = strlen(text);

	if (length < 15 || length > 300 || text[length - 1] != '.' || strstr(text, "  "))
		fail_msg("%s: \"%s\" is no readable sentence", name, text);
}

/* A phrase that stands behind a colon in a message. */
static void check_phrase(const char *name, const char *text)
{
	size_t length = strlen(text);

	if (length < 8 || length > 90 || text[length - 1] == '.' || text[0] == ' ')
		fail_msg("%s: \"%s\" is no readable phrase", name, text);
}

static void texts_can_be_read(void **state)
{
	unsigned int count;
	const struct vb_reason_entry *all = vb_reason_all(&count);

	(void)state;
	assert_true(count > 100);
	for (unsigned int i = 0; i < count; i++) {
		check_phrase(all[i].name, all[i].text);
		check_sentence(all[i].name, all[i].cause);
		check_sentence(all[i].name, all[i].cure);
		assert_string_not_equal(all[i].cause, all[i].cure);
	}
}

static void codes_are_unique_and_ordered(void **state)
{
	unsigned int count;
	const struct vb_reason_entry *all = vb_reason_all(&count);

	(void)state;
	for (unsigned int i = 0; i < count; i++) {
		if (i)
			assert_true(all[i - 1].code < all[i].code);
		assert_in_range(all[i].code >> 8, 1, 9);
		assert_ptr_equal(vb_reason_entry(all[i].code), &all[i]);
		assert_string_equal(vb_reason_name(all[i].code), all[i].name);
		assert_string_equal(vb_reason_text(all[i].code), all[i].text);
		for (unsigned int j = 0; j < i; j++)
			assert_string_not_equal(all[i].name, all[j].name);
	}
}

static void unknown_codes_are_none(void **state)
{
	static const uint32_t unknown[] = {0, 1, 0x100, 0x1ff, 0x800, 0xffffffff};

	(void)state;
	for (unsigned int i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++)
		assert_string_equal(vb_reason_name((enum vb_reason)unknown[i]), "NONE");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(texts_can_be_read),
		cmocka_unit_test(codes_are_unique_and_ordered),
		cmocka_unit_test(unknown_codes_are_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
