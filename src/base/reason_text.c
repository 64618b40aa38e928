/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What is known about each reason, and where it is found. Pure: `verbatim explain` uses it, too. */
#include <stddef.h>

#include "base/reason.h"

static const struct vb_reason_entry entries[] = {
	{VB_REASON_NONE, "NONE", "no reason recorded", "", ""},
#define VB_REASON_ENTRY(code, name, text, cause, cure) {VB_REASON_##name, #name, text, cause, cure},
	VB_REASONS(VB_REASON_ENTRY)
#undef VB_REASON_ENTRY
};

#define COUNT (sizeof(entries) / sizeof(entries[0]))

/* A row with an empty cause or cure does not compile. */
#define VB_REASON_COMPLETE(code, name, text, cause, cure)                                         \
	_Static_assert(sizeof(text) > 1 && sizeof(cause) > 1 && sizeof(cure) > 1, #name " lacks " \
											"a text");
VB_REASONS(VB_REASON_COMPLETE)
#undef VB_REASON_COMPLETE

const struct vb_reason_entry *vb_reason_entry(enum vb_reason reason)
{
	for (size_t i = 1; i < COUNT; i++) {
		if (entries[i].code == reason)
			return &entries[i];
	}
	return &entries[0];
}

const struct vb_reason_entry *vb_reason_all(unsigned int *count)
{
	*count = COUNT - 1;
	return &entries[1];
}

const char *vb_reason_name(enum vb_reason reason)
{
	return vb_reason_entry(reason)->name;
}

const char *vb_reason_text(enum vb_reason reason)
{
	return vb_reason_entry(reason)->text;
}
