/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The rate of a port as sysfs shows it: "40 Gb/sec (4X QDR)". */
#ifndef TOOLS_VIEW_RATE_H
#define TOOLS_VIEW_RATE_H

#include <stdint.h>

enum { RATE_TEXT = 48 };

/* `width` and `speed` are those of struct ibv_port_attr. Returns `text`. */
const char *rate_text(uint8_t width, uint8_t speed, char text[RATE_TEXT]);

#endif
