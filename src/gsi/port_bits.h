/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Which numbers of a range are taken: a bit for each, and for each word of these a bit that says
 * that all of it is taken. So the next free one is found in a number of steps that does not depend
 * on how many are taken.
 *
 * Changes are made under the table's lock, by a process that may be killed in between: the bit for
 * a whole word is stored last and removed first. Where it lacks, the search puts it right.
 */
#ifndef VB_GSI_PORT_BITS_H
#define VB_GSI_PORT_BITS_H

#include <stdbool.h>
#include <stdint.h>

#define VB_PORT_BITS_NONE           UINT32_MAX

/* The two parts of the bits for `numbers` numbers: members of the shared table. */
#define VB_PORT_BITS_WORDS(numbers) ((numbers) / 64)
#define VB_PORT_BITS_FULL(numbers)  ((numbers) / 4096)

struct vb_port_bits {
	uint64_t *word, *full;
};

void vb_port_bits_set(struct vb_port_bits bits, uint32_t number, bool taken);

/* The first free one of from .. to, both included. VB_PORT_BITS_NONE: all are taken. */
uint32_t vb_port_bits_free(struct vb_port_bits bits, uint32_t from, uint32_t to);

#endif
