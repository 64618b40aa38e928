/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The list of links. A destination takes the first link that reaches it. */
#include "engine/link.h"

#include "local/link.h"
#include "remote/udp.h"
#ifdef VB_TEST_LINK
#include "link/pipe.h" /* tests/link */
#endif

const struct vb_link *const vb_links[] = {
#ifdef VB_TEST_LINK
	&vb_pipe_link,
#endif
	&vb_udp_link,  /* to other hosts */
	&vb_loop_link, /* within the process: chosen by shm */
	&vb_shm_link,  /* to all other destinations */
	NULL,
};
