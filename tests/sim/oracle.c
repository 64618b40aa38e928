/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The oracle: requests executed once and in order on a copy of the memories, and compared. */
#include "oracle.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void fault(struct oracle *o, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void fault(struct oracle *o, const char *format, ...)
{
	va_list ap;

	if (o->fault[0])
		return;
	va_start(ap, format);
	vsnprintf(o->fault, sizeof(o->fault), format, ap);
	va_end(ap);
}

static unsigned int other(const struct oracle *o, unsigned int side)
{
	return o->sides - 1 - side;
}

void oracle_start(struct oracle *o, unsigned int sides, uint32_t size)
{
	o->sides = sides;
	o->size = size;
	for (unsigned int s = 0; s < sides; s++) {
		struct oracle_side *side = &o->side[s];
		const uint8_t *real = side->real;
		uint8_t *model = side->model;
		uint8_t *unknown = side->unknown;

		memset(side, 0, sizeof(*side));
		side->real = real;
		side->model = model;
		side->unknown = unknown;
		memcpy(model, real, size);
		memset(unknown, 0, size);
	}
	o->fault[0] = 0;
}

unsigned int oracle_plan(struct oracle *o, unsigned int side, const struct oracle_op *op)
{
	struct oracle_side *s = &o->side[side];

	s->op[s->ops] = *op;
	return s->ops++;
}

void oracle_posted(struct oracle *o, unsigned int side)
{
	struct oracle_side *s = &o->side[side];

	s->op[s->posted++].posted = true;
}

unsigned int oracle_recv_posted(struct oracle *o, unsigned int side,
				const struct oracle_piece *piece, unsigned int pieces)
{
	struct oracle_side *s = &o->side[side];
	struct oracle_recv *r = &s->recv[s->recvs];

	memset(r, 0, sizeof(*r));
	for (unsigned int i = 0; i < pieces; i++) {
		r->piece[i] = piece[i];
		r->length += piece[i].length;
	}
	r->pieces = pieces;
	r->posted = true;
	return s->recvs++;
}

static bool uses_recv(const struct oracle_op *op)
{
	return op->kind == ORACLE_SEND || (op->kind == ORACLE_WRITE && op->has_imm);
}

static bool is_atomic(const struct oracle_op *op)
{
	return op->kind == ORACLE_SWAP || op->kind == ORACLE_ADD;
}

/* The address of byte `offset` of a list of pieces. */
static uint32_t place(const struct oracle_piece *piece, unsigned int pieces, uint32_t offset)
{
	for (unsigned int i = 0; i < pieces; i++) {
		if (offset < piece[i].length)
			return piece[i].at + offset;
		offset -= piece[i].length;
	}
	return UINT32_MAX;
}

static bool covers(const struct oracle_op *op, uint32_t at)
{
	return at >= op->remote_at && at - op->remote_at < op->length;
}

/*
 * Whether one of the requests [from, posted), none of which was held back, can have put `value` at
 * `at` of the other side.
 */
static bool later_write(const struct oracle_side *s, unsigned int from, uint32_t at, uint8_t value,
			bool fences)
{
	for (unsigned int i = from; i < s->posted; i++) {
		const struct oracle_op *op = &s->op[i];

		if (fences && op->fence)
			return false;
		if (op->kind == ORACLE_WRITE && covers(op, at) &&
		    s->model[place(op->piece, op->pieces, at - op->remote_at)] == value)
			return true;
	}
	return false;
}

/* The data of a WRITE is in the other side's memory, or the data of a later WRITE is. */
static void check_written(struct oracle *o, unsigned int side, unsigned int index, const char *when)
{
	struct oracle_side *s = &o->side[side];
	struct oracle_side *p = &o->side[other(o, side)];
	const struct oracle_op *op = &s->op[index];

	for (uint32_t i = 0; i < op->length; i++) {
		uint32_t at = op->remote_at + i;
		uint8_t want = s->model[place(op->piece, op->pieces, i)];

		if (p->real[at] != want && !p->unknown[at] &&
		    !later_write(s, index + 1, at, p->real[at], false)) {
			fault(o, "side %u op %u WRITE: byte %u of %u is 0x%02x, not 0x%02x, %s",
			      side, index, i, op->length, p->real[at], want, when);
			return;
		}
	}
}

static void apply_write(struct oracle *o, unsigned int side, const struct oracle_op *op)
{
	struct oracle_side *s = &o->side[side];
	struct oracle_side *p = &o->side[other(o, side)];

	for (uint32_t i = 0; i < op->length; i++) {
		p->model[op->remote_at + i] = s->model[place(op->piece, op->pieces, i)];
		p->unknown[op->remote_at + i] = 0;
	}
}

static void apply_read(struct oracle *o, unsigned int side, unsigned int index)
{
	struct oracle_side *s = &o->side[side];
	struct oracle_side *p = &o->side[other(o, side)];
	const struct oracle_op *op = &s->op[index];

	for (uint32_t i = 0; i < op->length; i++) {
		uint32_t from = op->remote_at + i;
		uint32_t to = place(op->piece, op->pieces, i);

		if (s->real[to] != p->model[from] && !p->unknown[from] &&
		    !later_write(s, index + 1, from, s->real[to], true)) {
			fault(o, "side %u op %u READ: byte %u of %u is 0x%02x, not 0x%02x", side,
			      index, i, op->length, s->real[to], p->model[from]);
			return;
		}
		s->model[to] = s->real[to];
	}
}

static void apply_atomic(struct oracle *o, unsigned int side, unsigned int index)
{
	struct oracle_side *s = &o->side[side];
	struct oracle_side *p = &o->side[other(o, side)];
	const struct oracle_op *op = &s->op[index];
	uint64_t old;
	uint64_t got = 0;
	uint64_t value;

	memcpy(&old, p->model + op->remote_at, 8);
	for (uint32_t i = 0; i < 8; i++) {
		uint32_t to = place(op->piece, op->pieces, i);

		((uint8_t *)&got)[i] = s->real[to];
		s->model[to] = s->real[to];
	}
	if (got != old) {
		fault(o, "side %u op %u ATOMIC: answer 0x%llx, not 0x%llx", side, index,
		      (unsigned long long)got, (unsigned long long)old);
		return;
	}
	value = op->kind == ORACLE_ADD ? old + op->compare : old == op->compare ? op->swap : old;
	memcpy(p->model + op->remote_at, &value, 8);
}

static void success(struct oracle *o, unsigned int side, unsigned int index)
{
	struct oracle_side *s = &o->side[side];
	struct oracle_op *op = &s->op[index];

	if (!o->reliable_service)
		return;
	if (uses_recv(op) && !op->received)
		fault(o, "side %u op %u: complete, but the other side has not received it", side,
		      index);
	if (op->kind == ORACLE_WRITE) {
		check_written(o, side, index, "though the WRITE is complete");
		apply_write(o, side, op);
	} else if (op->kind == ORACLE_READ) {
		apply_read(o, side, index);
	} else if (is_atomic(op)) {
		apply_atomic(o, side, index);
	} else if (op->kind == ORACLE_PUT) {
		/* Later atomics may have changed the word: their answers tell. */
		apply_write(o, side, op);
	}
}

static void forget(struct oracle_side *s, uint32_t at, uint32_t length)
{
	memset(s->unknown + at, 1, length);
}

/* A request that failed may have been executed in part. */
static void failure(struct oracle *o, unsigned int side, unsigned int index)
{
	struct oracle_side *s = &o->side[side];
	struct oracle_side *p = &o->side[other(o, side)];
	struct oracle_op *op = &s->op[index];

	op->failed = true;
	if ((op->kind == ORACLE_WRITE || op->kind == ORACLE_PUT || is_atomic(op)) &&
	    (uint64_t)op->remote_at + op->length <= o->size)
		forget(p, op->remote_at, op->length);
	if (op->kind == ORACLE_READ || is_atomic(op)) {
		for (unsigned int i = 0; i < op->pieces; i++)
			forget(s, op->piece[i].at, op->piece[i].length);
	}
}

void oracle_send_done(struct oracle *o, unsigned int side, uint64_t id, enum ibv_wc_status status)
{
	struct oracle_side *s = &o->side[side];
	struct oracle_op *op;
	uint32_t allowed;

	if (id != s->finished || id >= s->posted) {
		fault(o, "side %u: request %llu completes, %u of %u is next", side,
		      (unsigned long long)id, s->finished, s->posted);
		return;
	}
	op = &s->op[id];
	allowed = op->status | s->may;
	if (s->stopped)
		allowed |= 1u << IBV_WC_WR_FLUSH_ERR;
	if (s->send_error)
		allowed = 1u << IBV_WC_WR_FLUSH_ERR;
	if (!(allowed & 1u << status)) {
		fault(o, "side %u op %llu: status %d, allowed 0x%x", side, (unsigned long long)id,
		      status, allowed);
		return;
	}
	op->done = true;
	s->finished++;
	if (status == IBV_WC_SUCCESS) {
		success(o, side, (unsigned int)id);
	} else {
		s->send_error = true;
		op->refused = status == IBV_WC_REM_ACCESS_ERR || status == IBV_WC_REM_INV_REQ_ERR ||
			      status == IBV_WC_REM_OP_ERR;
		failure(o, side, (unsigned int)id);
	}
}

static bool matches(struct oracle *o, unsigned int side, const struct oracle_op *op,
		    const struct oracle_recv *r, const struct oracle_message *m)
{
	struct oracle_side *s = &o->side[side];
	struct oracle_side *p = &o->side[other(o, side)];
	uint32_t flags = op->has_imm ? IBV_WC_WITH_IMM : op->has_inv ? IBV_WC_WITH_INV : 0;

	if (o->header)
		flags |= IBV_WC_GRH;
	if (m->opcode != (op->kind == ORACLE_SEND ? IBV_WC_RECV : IBV_WC_RECV_RDMA_WITH_IMM))
		return false;
	if (m->length != op->length + o->header || m->flags != flags ||
	    m->solicited != op->solicited)
		return false;
	if ((op->has_imm || op->has_inv) && m->imm != op->imm)
		return false;
	if (op->kind != ORACLE_SEND)
		return true;
	for (uint32_t i = 0; i < op->length; i++) {
		if (p->real[place(r->piece, r->pieces, i + o->header)] !=
		    s->model[place(op->piece, op->pieces, i)])
			return false;
	}
	return true;
}

/* The message in a receive: the next one (RC), or the next one that arrived. */
static bool find_message(struct oracle *o, unsigned int sender, const struct oracle_recv *r,
			 const struct oracle_message *m)
{
	struct oracle_side *s = &o->side[sender];
	unsigned int i = o->may_repeat ? 0 : s->next_msg;

	for (; i < s->posted; i++) {
		struct oracle_op *op = &s->op[i];

		if (!uses_recv(op))
			continue;
		if (matches(o, sender, op, r, m)) {
			op->received = true;
			s->next_msg = i + 1;
			return true;
		}
		if (!o->may_drop)
			break;
	}
	return false;
}

static void received(struct oracle *o, unsigned int side, struct oracle_recv *r,
		     const struct oracle_message *m)
{
	struct oracle_side *p = &o->side[side];
	unsigned int sender = other(o, side);
	struct oracle_side *s = &o->side[sender];

	if (!find_message(o, sender, r, m)) {
		fault(o,
		      "side %u receive %llu: opcode %d length %u flags %x imm 0x%x solicited %d: not the message that was next "
		      "(op %u)",
		      side, (unsigned long long)m->id, m->opcode, m->length, m->flags, m->imm,
		      m->solicited, s->next_msg);
		return;
	}
	/* The data of requests before a message is visible when the message is. */
	for (unsigned int i = s->finished; o->reliable_service && i < s->next_msg; i++) {
		if (s->op[i].kind == ORACLE_WRITE && !s->op[i].done &&
		    s->op[i].status & 1u << IBV_WC_SUCCESS)
			check_written(o, sender, i, "though a later message was received");
	}
	/* A receive that a lost message used before holds more than this message. */
	for (unsigned int i = 0; o->may_drop && i < r->pieces; i++)
		forget(p, r->piece[i].at, r->piece[i].length);
	if (m->opcode != IBV_WC_RECV)
		return;
	for (uint32_t i = 0; i < m->length; i++) {
		uint32_t at = place(r->piece, r->pieces, i);

		p->model[at] = p->real[at];
	}
}

void oracle_recv_done(struct oracle *o, unsigned int side, const struct oracle_message *m)
{
	struct oracle_side *p = &o->side[side];
	struct oracle_side *s = &o->side[other(o, side)];
	struct oracle_recv *r;
	uint32_t allowed = (1u << IBV_WC_SUCCESS) | p->recv_may;

	if (m->id != p->recv_finished || m->id >= p->recvs) {
		fault(o, "side %u: receive %llu completes, %u of %u is next", side,
		      (unsigned long long)m->id, p->recv_finished, p->recvs);
		return;
	}
	r = &p->recv[m->id];
	for (unsigned int i = 0; i < s->posted; i++)
		allowed |= !s->op[i].done || s->op[i].failed ? s->op[i].recv_status : 0;
	if (p->stopped || p->send_error || p->events)
		allowed |= 1u << IBV_WC_WR_FLUSH_ERR;
	if (p->recv_error)
		allowed = 1u << IBV_WC_WR_FLUSH_ERR;
	if (!(allowed & 1u << m->status)) {
		fault(o, "side %u receive %llu: status %d, allowed 0x%x", side,
		      (unsigned long long)m->id, m->status, allowed);
		return;
	}
	p->recv_finished++;
	r->done = true;
	r->success = m->status == IBV_WC_SUCCESS;
	if (r->success) {
		received(o, side, r, m);
		return;
	}
	if (m->status != IBV_WC_WR_FLUSH_ERR)
		p->events++;
	p->recv_error = true;
	for (unsigned int i = 0; i < r->pieces; i++)
		forget(p, r->piece[i].at, r->piece[i].length);
}

void oracle_stopped(struct oracle *o, unsigned int side, bool app)
{
	struct oracle_side *p = &o->side[side];
	struct oracle_side *s = &o->side[other(o, side)];
	bool excuse = p->send_error || p->recv_error || app || p->events;

	if (p->stopped)
		return;
	if (!excuse)
		fault(o,
		      "side %u: its queue pair stopped without a failed request, receive or event",
		      side);
	p->stopped = true;
	/*
	 * A queue pair that is stopped answers no request. But the request that made it stop is
	 * answered, if no packet is lost.
	 */
	if (o->reliable_service && (o->lossy || app || p->send_error))
		s->may |= 1u << IBV_WC_RETRY_EXC_ERR;
}

void oracle_event(struct oracle *o, unsigned int side, int event)
{
	struct oracle_side *s = &o->side[other(o, side)];

	if (event == IBV_EVENT_COMM_EST)
		return;
	/* A request that was flushed may still be executed. */
	for (unsigned int i = 0; i < s->posted; i++) {
		if (s->op[i].event == event && (!s->op[i].done || s->op[i].failed)) {
			o->side[side].events++;
			return;
		}
	}
	fault(o, "side %u: event %d that nothing explains", side, event);
}

void oracle_gone(struct oracle *o, unsigned int side)
{
	struct oracle_side *s = &o->side[other(o, side)];

	s->may |= 1u << IBV_WC_RETRY_EXC_ERR;
}

static void finish_side(struct oracle *o, unsigned int side, bool gone, bool other_gone)
{
	struct oracle_side *s = &o->side[side];
	struct oracle_side *p = &o->side[other(o, side)];

	if (gone)
		return;
	if (s->posted != s->ops || s->finished != s->ops)
		fault(o, "side %u: %u of %u requests posted, %u complete at the deadline", side,
		      s->posted, s->ops, s->finished);
	for (unsigned int i = 0; i < s->ops; i++) {
		const struct oracle_op *op = &s->op[i];

		if (op->refused && !p->events && !other_gone)
			fault(o, "side %u op %u failed at the other side, which was not told", side,
			      i);
		if (uses_recv(op) && !op->failed && !op->received && !o->may_drop && !other_gone)
			fault(o, "side %u op %u was never received", side, i);
	}
}

/* Unreliable WRITEs: each byte is the former one, or that of a WRITE over it. */
static bool some_write(const struct oracle *o, unsigned int side, uint32_t at)
{
	const struct oracle_side *s = &o->side[other(o, side)];

	return later_write(s, 0, at, o->side[side].real[at], false);
}

static void compare_memory(struct oracle *o, unsigned int side)
{
	struct oracle_side *s = &o->side[side];

	if (!memcmp(s->real, s->model, o->size))
		return;
	for (uint32_t i = 0; i < o->size; i++) {
		if (s->real[i] == s->model[i] || s->unknown[i])
			continue;
		if (!o->reliable_service && some_write(o, side, i))
			continue;
		fault(o, "side %u: at the end byte 0x%x is 0x%02x, not 0x%02x", side, i, s->real[i],
		      s->model[i]);
		return;
	}
}

void oracle_finish(struct oracle *o, bool side_gone[2])
{
	for (unsigned int s = 0; s < o->sides; s++)
		finish_side(o, s, side_gone[s], side_gone[other(o, s)]);
	/* Requests that are not finished (the process died) leave their targets open. */
	for (unsigned int s = 0; s < o->sides; s++) {
		for (unsigned int i = o->side[s].finished; i < o->side[s].ops; i++)
			failure(o, s, i);
	}
	for (unsigned int s = 0; s < o->sides; s++) {
		const struct oracle_side *sender = &o->side[other(o, s)];
		/*
		 * A receive holds a part of a message that was lost, or whose sender stopped in the
		 * middle.
		 */
		bool open = o->may_drop || side_gone[s] || side_gone[other(o, s)] ||
			    sender->send_error;

		for (unsigned int i = o->side[s].recv_finished; open && i < o->side[s].recvs; i++) {
			const struct oracle_recv *r = &o->side[s].recv[i];

			for (unsigned int k = 0; k < r->pieces; k++)
				forget(&o->side[s], r->piece[k].at, r->piece[k].length);
		}
		if (!side_gone[s])
			compare_memory(o, s);
	}
}
