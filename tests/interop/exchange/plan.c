/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Plans: which requests, where their bytes lie, and whether they arrived. */
#include <string.h>

#include "plan.h"

enum { POISON = 0xa5, GUARD = 64, HEAD = 4096, WORD_STRIDE = 64 };

uint32_t word_offset(unsigned int word)
{
	return WORD_STRIDE * (word + 1);
}

static bool is_atomic(const struct op *op)
{
	return op->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || op->opcode == IBV_WR_ATOMIC_CMP_AND_SWP;
}

bool op_has_imm(const struct op *op)
{
	return op->opcode == IBV_WR_SEND_WITH_IMM || op->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

bool op_takes_receive(const struct op *op)
{
	return op->opcode == IBV_WR_SEND || op_has_imm(op);
}

static void begin(struct plan *plan, uint32_t seed)
{
	memset(plan, 0, sizeof(*plan));
	plan->seed = seed;
	plan->used = HEAD;
	for (unsigned int i = 0; i < PLAN_WORDS; i++) {
		pattern_fill((uint8_t *)&plan->before[i], 8, seed, 1000 + i);
		plan->after[i] = plan->before[i];
	}
}

static void do_atomic(struct plan *plan, struct op *op, uint32_t *random)
{
	uint64_t *word;

	op->length = 8;
	op->sges = 1;
	op->word = random_next(random) % PLAN_WORDS;
	word = &plan->after[op->word];
	op->result = *word;
	op->swap = (uint64_t)random_next(random) << 32 | random_next(random);
	if (op->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		op->compare_add = op->swap;
		*word += op->compare_add;
		return;
	}
	/* Every third one compares with something else and must leave the word alone. */
	op->compare_add = random_next(random) % 3 ? *word : ~*word;
	if (op->compare_add == *word)
		*word = op->swap;
}

static void add(struct plan *plan, enum ibv_wr_opcode opcode, uint32_t length, uint32_t *random)
{
	struct op *op = &plan->ops[plan->count];

	if (plan->count == PLAN_OPS)
		return;
	*op = (struct op){.opcode = opcode,
			  .length = length,
			  .imm = plan->seed ^ plan->count * 0x01010101u,
			  .sges = 1 + plan->count % 4};
	if (is_atomic(op))
		do_atomic(plan, op, random);
	/* Starts at every alignment; what an atomic brings is aligned. */
	op->offset = plan->used + (is_atomic(op) ? 0 : plan->count % 8);
	if (op->offset + op->length + 2 * GUARD > AREA_BYTES)
		return;
	plan->used = (op->offset + op->length + 7) / 8 * 8 + GUARD;
	plan->count++;
}

void plan_sizes(struct plan *plan, uint32_t seed, uint32_t mtu, const enum ibv_wr_opcode *opcodes,
		unsigned int opcode_count)
{
	const uint32_t sizes[] = {
		0,           1,           2,        3,         4,           5,
		7,           8,           9,        31,        64,          65,
		255,         mtu - 1,     mtu,      mtu + 1,   2 * mtu - 3, 2 * mtu,
		2 * mtu + 2, 5 * mtu + 7, 16 * mtu, 65536 - 1, 65536,       65536 + 1,
		262144 + 3,  1048576,     1};
	uint32_t random = seed;

	begin(plan, seed);
	/* Every size with every opcode, the largest ones with one of them. */
	for (unsigned int i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		for (unsigned int k = 0; k < opcode_count; k++)
			if (sizes[i] < 65536 || k == i % opcode_count)
				add(plan, opcodes[k], sizes[i], &random);
}

void plan_mix(struct plan *plan, uint32_t seed, uint32_t mtu, const enum ibv_wr_opcode *opcodes,
	      unsigned int opcode_count)
{
	uint32_t random = seed;

	begin(plan, seed);
	while (plan->count < 80) {
		enum ibv_wr_opcode opcode = opcodes[random_next(&random) % opcode_count];
		uint32_t most = random_next(&random) % 3 ? 100 : 6 * mtu;

		add(plan, opcode, random_next(&random) % most, &random);
	}
}

int op_split(const struct op *op, uint8_t *area, uint32_t lkey, struct ibv_sge *sge)
{
	uint32_t from = op->offset, left = op->length;
	int n = 0;

	if (!left)
		return 0;
	for (unsigned int i = op->sges; i > 1 && left > 1; i--) {
		uint32_t piece = left / (i + 1) + 1;

		sge[n++] = (struct ibv_sge){(uintptr_t)area + from, piece, lkey};
		from += piece;
		left -= piece;
	}
	if (left)
		sge[n++] = (struct ibv_sge){(uintptr_t)area + from, left, lkey};
	return n;
}

static void fill(const struct plan *plan, uint8_t *area, bool reads)
{
	for (unsigned int i = 0; i < plan->count; i++) {
		const struct op *op = &plan->ops[i];

		if (!is_atomic(op) && (op->opcode == IBV_WR_RDMA_READ) == reads)
			pattern_fill(area + op->offset, op->length, plan->seed, i);
	}
}

void plan_prepare_requester(struct exchange *x, const struct plan *plan)
{
	memset(area_of(x, AREA_RESULT), POISON, plan->used);
	fill(plan, area_of(x, AREA_SOURCE), false);
}

void plan_prepare_target(struct exchange *x, const struct plan *plan)
{
	uint8_t *sink = area_of(x, AREA_SINK);

	memset(sink, POISON, plan->used);
	for (unsigned int i = 0; i < PLAN_WORDS; i++)
		memcpy(sink + word_offset(i), &plan->before[i], 8);
	fill(plan, area_of(x, AREA_STORE), true);
}

static void check_guard(const uint8_t *area, uint32_t from, uint32_t to, const char *name)
{
	for (uint32_t i = from; i < to; i++)
		if (area[i] != POISON)
			fail("%s: byte %u was written (0x%02x), nothing had to be", name, i,
			     area[i]);
}

static void check_slice(const uint8_t *area, const struct plan *plan, unsigned int i,
			const char *name)
{
	const struct op *op = &plan->ops[i];
	uint32_t good = pattern_check(area + op->offset, op->length, plan->seed, i);

	if (good != op->length)
		fail("%s: request %u (opcode %d, %u bytes): byte %u is 0x%02x", name, i, op->opcode,
		     op->length, good, area[op->offset + good]);
}

void plan_check_requester(struct exchange *x, const struct plan *plan, const char *name)
{
	const uint8_t *area = area_of(x, AREA_RESULT);
	uint32_t end = 0;

	for (unsigned int i = 0; i < plan->count; i++) {
		const struct op *op = &plan->ops[i];

		if (is_atomic(op)) {
			if (memcmp(area + op->offset, &op->result, 8))
				fail("%s: request %u (atomic, opcode %d) brought the wrong value",
				     name, i, op->opcode);
		} else if (op->opcode == IBV_WR_RDMA_READ) {
			check_slice(area, plan, i, name);
		} else {
			continue;
		}
		check_guard(area, end, op->offset, name);
		end = op->offset + op->length;
	}
	check_guard(area, end, plan->used, name);
}

static void check_words(const uint8_t *area, const struct plan *plan, const char *name)
{
	uint32_t end = 0;

	for (unsigned int i = 0; i < PLAN_WORDS; i++) {
		if (memcmp(area + word_offset(i), &plan->after[i], 8))
			fail("%s: word %u is wrong after the atomics", name, i);
		check_guard(area, end, word_offset(i), name);
		end = word_offset(i) + 8;
	}
	check_guard(area, end, HEAD, name);
}

void plan_check_target(struct exchange *x, const struct plan *plan, const char *name)
{
	const uint8_t *area = area_of(x, AREA_SINK);
	uint32_t end = HEAD;

	check_words(area, plan, name);
	for (unsigned int i = 0; i < plan->count; i++) {
		const struct op *op = &plan->ops[i];

		if (is_atomic(op) || op->opcode == IBV_WR_RDMA_READ)
			continue;
		check_slice(area, plan, i, name);
		check_guard(area, end, op->offset, name);
		end = op->offset + op->length;
	}
	check_guard(area, end, plan->used, name);
}
