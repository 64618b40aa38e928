/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The captured exchanges of the connection manager as inputs, seen from each end. */
#include "cm_seeds.h"

#include <stdio.h>
#include <string.h>

#include "captured_mads.h"
#include "cm_input.h"
#include "input.h"
#include "wire/cm_message.h"

struct exchange {
	uint8_t data[INPUT_MOST];
	size_t size;
};

static void record(struct exchange *x, unsigned int control, unsigned int call, const uint8_t *mad)
{
	size_t length = mad ? VB_MAD_BYTES : 0;
	uint8_t *p = x->data + x->size;

	if (INPUT_RECORD + length > sizeof(x->data) - x->size)
		return;
	p[0] = (uint8_t)control;
	p[1] = (uint8_t)(call << 4);
	p[2] = (uint8_t)length;
	p[3] = (uint8_t)(length >> 8);
	if (length)
		memcpy(p + INPUT_RECORD, mad, length);
	x->size += INPUT_RECORD + length;
}

/* The call after which this message left. */
static unsigned int call_of(uint16_t attribute)
{
	switch (attribute) {
	case VB_CM_REQ:
		return CM_CALL_CONNECT;
	case VB_CM_REP:
		return CM_CALL_ACCEPT;
	case VB_CM_RTU:
		return CM_CALL_ESTABLISH;
	case VB_CM_REJ:
		return CM_CALL_REJECT;
	case VB_CM_SIDR_REQ:
		return CM_CALL_RESOLVE;
	case VB_CM_SIDR_REP:
		return CM_CALL_REPLY;
	default:
		return CM_CALL_DISCONNECT;
	}
}

/* Both ends send in turn in every captured exchange but for RTU and DREQ of one side. */
static bool from_active(uint16_t attribute, unsigned int place)
{
	return attribute == VB_CM_REQ || attribute == VB_CM_SIDR_REQ || attribute == VB_CM_RTU ||
	       (attribute == VB_CM_DREQ && place % 2) || (attribute == VB_CM_DREP && place % 2);
}

static size_t name_length(const struct captured_mad *mad)
{
	return strcspn(mad->name, " ");
}

static void one_end(unsigned int first, bool active, bool twice, seed_use_fn *use)
{
	static struct exchange x;
	size_t length = name_length(&captured_mads[first]);
	char name[100];

	x.size = 0;
	for (unsigned int i = first; i < captured_mads_count; i++) {
		uint8_t mad[VB_MAD_BYTES];
		uint16_t attribute;

		if (name_length(&captured_mads[i]) != length ||
		    strncmp(captured_mads[i].name, captured_mads[first].name, length) != 0)
			break;
		captured_mad_bytes(&captured_mads[i], mad);
		attribute = vb_cm_message_attribute(mad);
		if (from_active(attribute, i - first) == active)
			record(&x, CM_DO_CALL, call_of(attribute), NULL);
		else if (attribute == VB_CM_REQ || attribute == VB_CM_SIDR_REQ)
			record(&x, CM_DO_NUMBERS, 0, mad);
		else
			record(&x, CM_DO_IDS | CM_DO_NUMBERS | (twice ? CM_DO_AGAIN : 0), 0, mad);
	}
	record(&x, CM_DO_TIME, 9, NULL);
	record(&x, CM_DO_CALL, CM_CALL_RELEASE, NULL);
	snprintf(name, sizeof(name), "%.*s-%c%s", (int)length, captured_mads[first].name,
		 active ? 'a' : 'p', twice ? "-twice" : "");
	use(name, x.data, x.size);
}

void cm_seeds_each(seed_use_fn *use)
{
	for (unsigned int i = 0; i < captured_mads_count; i++) {
		size_t length = name_length(&captured_mads[i]);

		if (strcmp(captured_mads[i].name + length, " 1") != 0)
			continue;
		for (unsigned int variant = 0; variant < 4; variant++)
			one_end(i, variant & 1, variant & 2, use);
	}
}
