/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* One side of the doctor's transfer. */
#ifndef TOOLS_DOCTOR_TRANSFER_H
#define TOOLS_DOCTOR_TRANSFER_H

#include <stdbool.h>

enum { TRANSFER_WHY = 320 };

struct transfer_plan {
	bool udp;  /* as between hosts, although both sides are on this one (VERBATIM_LINK) */
	char *why; /* what failed: TRANSFER_WHY bytes that the parent sees, too */
};

/* The active side posts the operations. 0, or -1 with `why`. */
int transfer_side(const struct transfer_plan *plan, int sock, bool active);

#endif
