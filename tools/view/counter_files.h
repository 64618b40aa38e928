/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The counter files of a port: which there are, and which of the library's counters each shows. */
#ifndef TOOLS_VIEW_COUNTER_FILES_H
#define TOOLS_VIEW_COUNTER_FILES_H

#include <stdint.h>

#include "base/port_counters.h"

struct counter_file {
	const char *folder; /* "counters" or "hw_counters" */
	const char *name;
	/* Members of struct vb_port_counters, as 1 + index; 0: none. The value is a - b. */
	uint16_t a, b;
	uint16_t unit; /* by which the number is divided: 4 for words */
};

extern const struct counter_file counter_files[];
extern const unsigned int counter_file_count;

/* The most characters of a number with its line end. */
enum { COUNTER_TEXT = 24 };

uint64_t counter_value(const struct counter_file *file, const struct vb_port_counters *sum);
/* Writes the number and a line end. Returns the length. No stdio, for any thread. */
unsigned int counter_text(char text[COUNTER_TEXT], uint64_t value);

#endif
