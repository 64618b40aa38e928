/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What one side asks of the other in one test: both sides make the same plan from the same seed. */
#ifndef EXCHANGE_PLAN_H
#define EXCHANGE_PLAN_H

#include "exchange.h"

#define PLAN_OPS   100
#define PLAN_WORDS 8

struct op {
	enum ibv_wr_opcode opcode;
	uint32_t offset; /* the same in every area it touches */
	uint32_t length;
	uint32_t imm;
	unsigned int sges;
	unsigned int word; /* atomics */
	uint64_t compare_add;
	uint64_t swap;
	uint64_t result; /* what the word held before */
};

struct plan {
	uint32_t seed;
	uint32_t used; /* bytes of an area, guards included */
	unsigned int count;
	struct op ops[PLAN_OPS];
	uint64_t before[PLAN_WORDS];
	uint64_t after[PLAN_WORDS];
};

/* Every size that is likely to be wrong, the opcodes in turn. */
void plan_sizes(struct plan *plan, uint32_t seed, uint32_t mtu, const enum ibv_wr_opcode *opcodes,
		unsigned int opcode_count);
/* Opcodes in random order, short and long. */
void plan_mix(struct plan *plan, uint32_t seed, uint32_t mtu, const enum ibv_wr_opcode *opcodes,
	      unsigned int opcode_count);

bool op_takes_receive(const struct op *op);
bool op_has_imm(const struct op *op);
/* Splits [base + offset, + length) in op->sges pieces of unlike size; returns how many. */
int op_split(const struct op *op, uint8_t *area, uint32_t lkey, struct ibv_sge *sge);
uint32_t word_offset(unsigned int word);

/*
 * Before: fills what the requester sends (its own side) or what it reads (the other side), poisons
 * what gets written.
 */
void plan_prepare_requester(struct exchange *x, const struct plan *plan);
void plan_prepare_target(struct exchange *x, const struct plan *plan);
/* After: every byte, guards too. */
void plan_check_requester(struct exchange *x, const struct plan *plan, const char *name);
void plan_check_target(struct exchange *x, const struct plan *plan, const char *name);

/* transfer.c: does `out` as requester and `in` as target at the same time; either may be NULL. */
void transfer(struct exchange *x, struct end *e, const struct plan *out, const struct plan *in,
	      const char *name, unsigned int late_receives_ms);

#endif
