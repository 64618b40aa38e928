/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The list of links for programs of rooms below the one that knows all links: there is none. */
#include <stddef.h>

#include "engine/link.h"

const struct vb_link *const vb_links[] = {NULL};
