/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The links that there are. A destination takes the first one that reaches it. */
#include "engine/link.h"

#include "local/link.h"
#include "remote/udp.h"

const struct vb_link *const vb_links[] = {
	&vb_udp_link,  /* to other hosts */
	&vb_loop_link, /* within the process: shm turns to it */
	&vb_shm_link,  /* to all others */
	NULL,
};
