/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Rates of ports. */
#include "view/rate.h"

#include <stddef.h>
#include <stdio.h>

/* Of one lane, in 100 Mb/s. */
static const struct speed {
	uint8_t code;
	uint16_t rate;
	const char *name;
} speeds[] = {
	{1, 25, ""},       {2, 50, " DDR"},   {4, 100, " QDR"},  {8, 100, " FDR10"},
	{16, 140, " FDR"}, {32, 250, " EDR"}, {64, 500, " HDR"}, {128, 1000, " NDR"},
};

static unsigned int lanes(uint8_t width)
{
	switch (width) {
	case 2:
		return 4;
	case 4:
		return 8;
	case 8:
		return 12;
	case 16:
		return 2;
	default:
		return 1;
	}
}

const char *rate_text(uint8_t width, uint8_t speed, char text[RATE_TEXT])
{
	const struct speed *s = &speeds[0];
	unsigned int rate;

	for (size_t i = 0; i < sizeof(speeds) / sizeof(speeds[0]); i++) {
		if (speeds[i].code == speed)
			s = &speeds[i];
	}
	rate = s->rate * lanes(width);
	snprintf(text, RATE_TEXT, rate % 10 ? "%u.%u Gb/sec (%uX%s)" : "%u%.0u Gb/sec (%uX%s)",
		 rate / 10, rate % 10, lanes(width), s->name);
	return text;
}
