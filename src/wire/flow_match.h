/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What a flow steering rule matches (ibv_create_flow(3)): its specs are copied and checked once,
 * then compared with frames. Pure.
 */
#ifndef VB_WIRE_FLOW_MATCH_H
#define VB_WIRE_FLOW_MATCH_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "wire/frame.h"

#define VB_FLOW_SPECS    16u /* headers that one rule may name */
#define VB_FLOW_COUNTERS 4u  /* counters that one rule may count for */

struct vb_flow_rule {
	struct ibv_flow_spec spec[VB_FLOW_SPECS];
	uint32_t specs;
	uint32_t tag; /* valid with has_tag */
	bool has_tag;
	bool drop;
	struct ibv_counters *counters[VB_FLOW_COUNTERS];
	uint32_t num_counters;
};

/*
 * Reads the num_of_specs specs that follow *attr in memory. attr->size is not looked at: programs
 * do not count the specs in it (pyverbs), and drivers accept that. Returns 0; -EINVAL: a size, a
 * type or their combination is wrong; -EOPNOTSUPP: the spec is known but not offered. After an
 * error *wrong is a sentence.
 */
int vb_flow_rule_read(struct vb_flow_rule *rule, const struct ibv_flow_attr *attr,
		      const char **wrong);

bool vb_flow_rule_matches(const struct vb_flow_rule *rule, const struct vb_frame *frame);

#endif
