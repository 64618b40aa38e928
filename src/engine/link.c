/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Calls for all links, or for those of an engine. */
#include "engine/link.h"

#include "base/reason.h"
#include "engine/engine.h"

void vb_engine_join_link(struct vb_engine *e, const struct vb_link *link)
{
	for (uint32_t i = 0; i < e->num_links; i++) {
		if (e->link[i] == link)
			return;
	}
	if (e->num_links < VB_ENGINE_LINKS)
		e->link[e->num_links++] = link;
}

void vb_engine_join_links(struct vb_engine *e)
{
	for (uint32_t i = 0; vb_links[i]; i++) {
		if (vb_links[i]->always)
			vb_engine_join_link(e, vb_links[i]);
	}
}

void vb_links_passed(struct vb_engine *e, const struct vb_run *run, const uint8_t *payload)
{
	for (uint32_t i = 0; vb_links[i]; i++) {
		if (vb_links[i]->passed) {
			vb_links[i]->passed(e, run, payload);
			return;
		}
	}
}
