/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The end of the process: whoever is connected hears of it at once, and not by retries that run out. */
#include "rdmacm/manager.h"

__attribute__((destructor)) static void leave(void)
{
	if (!vb_cma_manager_is_open())
		return;
	vb_cm_last_words(vb_cma_manager_take());
	vb_cma_manager_release();
}
