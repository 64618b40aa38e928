/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What a seed stands for: the network, the attributes, the requests, the fault. */
#include <stdio.h>
#include <string.h>

#include "world.h"

static const char *const fault_names[SIM_FAULT_COUNT] = {
	"none",
	"wrong rkey",
	"outside the region",
	"no remote right",
	"no right of the queue pair",
	"misaligned",
	"receive too small",
	"receive with bad lkey",
	"bad lkey",
	"refused when posted",
	"no receive",
	"program stops the queue pair",
	"peer dies",
	"invalidates a wrong key",
	"memory gone",
	"deregistered",
	"too many reads",
	"PSNs do not fit",
};

const char *sim_fault_name(enum sim_fault fault)
{
	return fault_names[fault];
}

static const uint32_t mtus[] = {256, 512, 1024, 2048, 4096};

static void choose_network(struct world *w, struct sim_config *c)
{
	static const unsigned int rooms[] = {1, 2, 3, 8, 64, 512};

	c->reliable = sim_chance(w, 400);
	c->delay_ns = 500 + sim_below(w, 20000);
	c->jitter_ns = sim_below(w, (unsigned int)c->delay_ns);
	c->room = rooms[sim_below(w, 6)];
	if (c->reliable)
		return;
	c->room = 16 + sim_below(w, 500);
	c->heavy = sim_chance(w, 150);
	c->loss = c->heavy ? 50 + sim_below(w, 100) : sim_below(w, 10);
	c->corrupt = c->heavy ? sim_below(w, 30) : sim_below(w, 5);
	c->twice = sim_below(w, 60);
	c->late = sim_chance(w, 500) ? sim_below(w, 120) : 0;
}

static void choose_attributes(struct world *w, struct sim_config *c)
{
	c->mtu = mtus[sim_below(w, 5)];
	c->run_packets = 1 + sim_below(w, 16);
	c->window = c->reliable && sim_chance(w, 700)
			    ? 0
			    : 2 + sim_below(w, sim_chance(w, 500) ? 8 : 200);
	c->read_packets = sim_chance(w, 500) ? 0 : 1 + sim_below(w, 8);
	c->read_window = sim_chance(w, 500) ? 0 : 1 + sim_below(w, 200);
	c->max_rd_atomic = (uint8_t)(1 + sim_below(w, sim_chance(w, 500) ? 2 : 20));
	c->max_dest_rd_atomic = (uint8_t)(c->max_rd_atomic + sim_below(w, 3));
	c->timeout = (uint8_t)(8 + sim_below(w, 5));
	c->retry_cnt = c->reliable ? (uint8_t)(1 + sim_below(w, 7)) : 7;
	c->rnr_retry = 7;
	c->min_rnr_timer = (uint8_t)(1 + sim_below(w, 12));
	for (int i = 0; i < 2; i++) {
		c->psn[i] = sim_chance(w, 600) ? (0x1000000 - sim_below(w, 200)) & VB_QPN_MASK
					       : sim_below(w, 0x1000000);
		c->ready_ns[i] = 1 + sim_below(w, 1000);
	}
	if (c->self)
		c->psn[1] = c->psn[0];
	/* Later than one time-out, sooner than all of them together. */
	if (sim_chance(w, 200))
		c->ready_ns[sim_below(w, 2)] = (4096ull << c->timeout) *
					       (1 + (c->reliable ? sim_below(w, c->retry_cnt) : 0));
}

static void choose_fault(struct world *w, struct sim_config *c)
{
	static const enum sim_fault unreliable[] = {SIM_FAULT_LKEY, SIM_FAULT_PRESET,
						    SIM_FAULT_APP_ERROR};

	if (sim_chance(w, 550))
		return;
	c->fault = c->service == VB_SERVICE_RC
			   ? (enum sim_fault)(1 + sim_below(w, SIM_FAULT_COUNT - 1))
			   : unreliable[sim_below(w, 3)];
	c->fault_side = sim_below(w, w->sides);
	c->fault_op = sim_below(w, 12);
	c->fault_ns = 1000 + sim_below(w, 400000);
	if (c->fault == SIM_FAULT_PEER_DEAD && (!c->reliable || c->self))
		c->fault = SIM_FAULT_APP_ERROR;
	if (c->fault == SIM_FAULT_NO_RECV) {
		c->rnr_retry = (uint8_t)sim_below(w, 4);
		c->late_recv = false;
		c->ready_ns[0] = c->ready_ns[1] = 1;
	}
	if (c->fault == SIM_FAULT_RD_EXCEED)
		c->max_dest_rd_atomic = c->max_rd_atomic / 2;
	if (c->fault == SIM_FAULT_PSN && c->self)
		c->fault = SIM_FAULT_NONE;
	/*
	 * A PSN ahead may be so by one. A side that is behind by a few reaches the expected PSN in
	 * time, which cannot be noticed.
	 */
	if (c->fault == SIM_FAULT_PSN)
		c->psn_off = sim_chance(w, 500)
				     ? 0x10000 + sim_below(w, 1u << 22)
				     : 0u - 1 - sim_below(w, sim_chance(w, 500) ? 20 : 1u << 22);
	if (c->fault == SIM_FAULT_QP_ACCESS || c->fault == SIM_FAULT_RD_EXCEED ||
	    c->fault == SIM_FAULT_PSN)
		c->direct = false;
}

void plan_choose(struct world *w, uint64_t seed)
{
	struct sim_config *c = &w->config;
	unsigned int kind;

	memset(c, 0, sizeof(*c));
	w->random = seed * 0x2545f4914f6cdd1dull + 1;
	c->seed = seed;
	kind = sim_below(w, 100);
	c->service = kind < 76 ? VB_SERVICE_RC : kind < 88 ? VB_SERVICE_UC : VB_SERVICE_UD;
	c->self = c->service == VB_SERVICE_RC && sim_chance(w, 80);
	w->sides = c->self ? 1 : 2;
	choose_network(w, c);
	choose_attributes(w, c);
	c->direct = c->reliable && c->service == VB_SERVICE_RC && sim_chance(w, 500);
	/* Direct access leaves little that an acknowledgement could ride on. */
	c->acks_ride = c->reliable && c->service == VB_SERVICE_RC && !c->direct && seed % 2;
	c->xrc = c->service == VB_SERVICE_RC && !c->direct && seed % 4 == 0;
	c->late_recv = sim_chance(w, 400);
	/* Retries that suffice for each message, but not for all of them together. */
	if (c->late_recv && sim_chance(w, 400)) {
		c->min_rnr_timer = 13;
		c->rnr_retry = 4;
	}
	c->sqd = c->service == VB_SERVICE_RC && sim_chance(w, 200);
	choose_fault(w, c);
}

static uint32_t choose_length(struct world *w, uint32_t most)
{
	uint32_t mtu = w->config.mtu;
	uint32_t length;

	switch (sim_below(w, 6)) {
	case 0:
		length = sim_below(w, 17);
		break;
	case 1:
		length = sim_below(w, mtu + 1);
		break;
	case 2: /* around a multiple of the MTU */
		length = mtu * sim_below(w, 6) + sim_below(w, 3);
		length -= length ? 1 : 0;
		break;
	case 3:
		length = sim_below(w, 10 * mtu);
		break;
	default:
		length = sim_below(w, 300);
		break;
	}
	return length < most ? length : most;
}

static enum oracle_kind choose_kind(struct world *w)
{
	static const enum oracle_kind all[] = {
		ORACLE_SEND,  ORACLE_SEND, ORACLE_SEND,  ORACLE_WRITE, ORACLE_WRITE,
		ORACLE_WRITE, ORACLE_READ, ORACLE_READ,  ORACLE_SWAP,  ORACLE_ADD,
		ORACLE_LOCAL, ORACLE_PUT,  ORACLE_FLUSH,
	};

	switch (w->config.service) {
	case VB_SERVICE_RC:
		return all[sim_below(w, 13)];
	case VB_SERVICE_UC:
		return all[sim_below(w, 6)];
	default:
		return ORACLE_SEND;
	}
}

/*
 * Scatter/gather lists: sources anywhere in the source area; each destination in a place of its
 * own.
 */
static void place_pieces(struct sim_side *s, struct oracle_op *op, bool lands)
{
	struct world *w = s->world;
	uint32_t rest = op->length;

	op->pieces = rest ? 1 + sim_below(w, ORACLE_PIECES) : sim_below(w, 2);
	for (unsigned int i = 0; i < op->pieces; i++) {
		uint32_t part = i + 1 == op->pieces ? rest : sim_below(w, rest + 1);

		op->piece[i].length = part;
		if (lands) {
			op->piece[i].at = SIM_LANDING_AT + s->landing_used;
			s->landing_used += part + sim_below(w, 9);
		} else {
			op->piece[i].at = SIM_SOURCE_AT + sim_below(w, SIM_SOURCE_BYTES - part);
		}
		rest -= part;
	}
}

static uint32_t choose_target(struct world *w, uint32_t length)
{
	uint32_t span = SIM_TARGET_BYTES - length + 1;

	/* Mostly in one corner, so that requests overlap. */
	return SIM_TARGET_AT + sim_below(w, sim_chance(w, 700) && span > 2000 ? 2000 : span);
}

static enum ibv_wr_opcode opcode_of(const struct oracle_op *op)
{
	switch (op->kind) {
	case ORACLE_SEND:
		return op->has_imm   ? IBV_WR_SEND_WITH_IMM
		       : op->has_inv ? IBV_WR_SEND_WITH_INV
				     : IBV_WR_SEND;
	case ORACLE_WRITE:
		return op->has_imm ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE;
	case ORACLE_READ:
		return IBV_WR_RDMA_READ;
	case ORACLE_SWAP:
		return IBV_WR_ATOMIC_CMP_AND_SWP;
	case ORACLE_ADD:
		return IBV_WR_ATOMIC_FETCH_AND_ADD;
	case ORACLE_PUT:
		return IBV_WR_ATOMIC_WRITE;
	case ORACLE_FLUSH:
		return IBV_WR_FLUSH;
	default:
		return IBV_WR_LOCAL_INV;
	}
}

static bool is_remote(const struct oracle_op *op)
{
	return op->kind == ORACLE_WRITE || op->kind == ORACLE_READ || op->kind == ORACLE_SWAP ||
	       op->kind == ORACLE_ADD || op->kind == ORACLE_PUT;
}

/* Whether the request needs the other side's memory. */
static bool touches(const struct oracle_op *op)
{
	return (is_remote(op) && op->length) || op->kind == ORACLE_FLUSH;
}

/* One aligned word, at an aligned address. */
static bool is_word(const struct oracle_op *op)
{
	return op->kind == ORACLE_SWAP || op->kind == ORACLE_ADD || op->kind == ORACLE_PUT;
}

static uint32_t only(enum ibv_wc_status status)
{
	return 1u << status;
}

/* The kind of request that the fault needs. */
static enum oracle_kind fault_kind(struct world *w, enum oracle_kind kind)
{
	static const enum oracle_kind remote[] = {ORACLE_WRITE, ORACLE_READ, ORACLE_SWAP,
						  ORACLE_ADD, ORACLE_PUT};

	switch (w->config.fault) {
	case SIM_FAULT_RKEY:
	case SIM_FAULT_RANGE:
	case SIM_FAULT_RIGHTS:
	case SIM_FAULT_QP_ACCESS:
		return remote[sim_below(w, 5)];
	case SIM_FAULT_ALIGN:
		return sim_chance(w, 500) ? ORACLE_ADD : ORACLE_PUT;
	case SIM_FAULT_RECV_SMALL:
	case SIM_FAULT_RECV_LKEY:
	case SIM_FAULT_NO_RECV:
	case SIM_FAULT_INVALIDATE:
		return ORACLE_SEND;
	case SIM_FAULT_LKEY:
		return w->config.service == VB_SERVICE_RC ? remote[sim_below(w, 5)] : ORACLE_SEND;
	default:
		return kind;
	}
}

#define NOWHERE 0xfffffff0u

/* What the fault does to its request, and the result that must follow. */
static void spoil(struct world *w, struct oracle_op *op, struct vb_send_wqe *wqe,
		  struct ibv_sge *sge, uint32_t *recv)
{
	switch (w->config.fault) {
	case SIM_FAULT_RKEY:
	case SIM_FAULT_RANGE:
	case SIM_FAULT_RIGHTS:
		if (w->config.fault == SIM_FAULT_RANGE)
			wqe->remote_addr = SIM_IOVA + SIM_TARGET_BYTES + SIM_ATOMIC_BYTES -
					   (op->length - 1) / 8 * 8;
		else
			wqe->rkey = w->config.fault == SIM_FAULT_RKEY ? SIM_KEY_WRONG
								      : SIM_KEY_NO_RIGHTS;
		op->remote_at = NOWHERE;
		op->status = only(IBV_WC_REM_ACCESS_ERR);
		op->recv_status = op->has_imm ? only(IBV_WC_LOC_ACCESS_ERR) : 0;
		op->event = IBV_EVENT_QP_ACCESS_ERR;
		break;
	case SIM_FAULT_ALIGN:
		wqe->remote_addr += 4;
		op->remote_at = NOWHERE;
		op->status = only(IBV_WC_REM_INV_REQ_ERR);
		op->event = IBV_EVENT_QP_REQ_ERR;
		break;
	case SIM_FAULT_RECV_SMALL:
		*recv = op->length - 1;
		op->status = only(IBV_WC_REM_INV_REQ_ERR);
		op->recv_status = only(IBV_WC_LOC_LEN_ERR);
		break;
	case SIM_FAULT_RECV_LKEY:
		*recv |= 0x80000000u;
		op->status = only(IBV_WC_REM_OP_ERR);
		op->recv_status = only(IBV_WC_LOC_PROT_ERR);
		break;
	case SIM_FAULT_LKEY:
		for (unsigned int i = 0; i < op->pieces; i++)
			sge[i].lkey = SIM_KEY_WRONG;
		wqe->is_inline = 0;
		op->status = only(IBV_WC_LOC_PROT_ERR);
		if (op->kind == ORACLE_WRITE || op->kind == ORACLE_PUT)
			op->remote_at = NOWHERE;
		break;
	case SIM_FAULT_PRESET:
		wqe->error = IBV_WC_LOC_QP_OP_ERR;
		wqe->reason = VB_REASON_AH_PD;
		if (is_remote(op))
			op->remote_at = NOWHERE;
		op->status = only(IBV_WC_LOC_QP_OP_ERR);
		break;
	case SIM_FAULT_NO_RECV:
		op->status = only(IBV_WC_RNR_RETRY_EXC_ERR);
		break;
	case SIM_FAULT_INVALIDATE:
		op->has_imm = false;
		op->has_inv = true;
		op->imm = wqe->imm = SIM_KEY_WINDOW + 1;
		wqe->opcode = IBV_WR_SEND_WITH_INV;
		op->status = only(IBV_WC_RETRY_EXC_ERR);
		op->recv_status = only(IBV_WC_MW_BIND_ERR);
		break;
	default:
		break;
	}
}

/* A READ whose answer was lost is not answered again from memory that has been taken away since. */
static uint32_t unanswered(const struct world *w)
{
	return w->config.reliable ? 0 : only(IBV_WC_RETRY_EXC_ERR);
}

/* Faults of a whole side: their possible results for each request. */
static void loosen(const struct world *w, struct oracle_op *op, unsigned int lacking)
{
	bool atomic = op->kind == ORACLE_SWAP || op->kind == ORACLE_ADD;

	switch (w->config.fault) {
	case SIM_FAULT_QP_ACCESS:
		if (op->kind != lacking && !(atomic && lacking == ORACLE_SWAP) &&
		    !(op->kind == ORACLE_PUT && lacking == ORACLE_WRITE))
			return;
		op->status = only(IBV_WC_REM_INV_REQ_ERR);
		op->recv_status = op->has_imm ? only(IBV_WC_REM_INV_REQ_ERR) : 0;
		op->event = IBV_EVENT_QP_REQ_ERR;
		op->remote_at = NOWHERE;
		break;
	case SIM_FAULT_PSN:
		if (op->kind == ORACLE_LOCAL)
			return;
		op->status = only(IBV_WC_RETRY_EXC_ERR);
		if (is_remote(op)) /* no byte changes */
			op->remote_at = NOWHERE;
		break;
	case SIM_FAULT_GONE:
		if (!touches(op))
			return;
		op->status |= only(IBV_WC_REM_OP_ERR) | unanswered(w);
		op->recv_status = op->has_imm ? only(IBV_WC_LOC_PROT_ERR) : 0;
		op->event = IBV_EVENT_QP_FATAL;
		break;
	case SIM_FAULT_DEREG:
		if (!touches(op))
			return;
		op->status |= only(IBV_WC_REM_ACCESS_ERR) | unanswered(w);
		op->recv_status = op->has_imm ? only(IBV_WC_LOC_ACCESS_ERR) : 0;
		op->event = IBV_EVENT_QP_ACCESS_ERR;
		break;
	case SIM_FAULT_RD_EXCEED:
		if (op->kind != ORACLE_READ && op->kind != ORACLE_FLUSH && !is_word(op))
			return;
		op->status |= only(IBV_WC_REM_INV_REQ_ERR);
		/*
		 * The answer to one request too many is forgotten before it can be requested again.
		 */
		if (!w->config.reliable)
			op->status |= only(IBV_WC_RETRY_EXC_ERR);
		op->event = IBV_EVENT_QP_REQ_ERR;
		break;
	default:
		break;
	}
}

static void choose_content(struct sim_side *s, struct oracle_op *op, bool spoilt)
{
	struct world *w = s->world;
	struct sim_side *to = sim_peer(s);
	const struct sim_config *c = &w->config;
	bool none = op->kind == ORACLE_LOCAL || op->kind == ORACLE_FLUSH;
	uint32_t most = c->service == VB_SERVICE_RC   ? 60000
			: c->service == VB_SERVICE_UD ? c->mtu
						      : 8000;

	if (to->recv_used > SIM_RECV_BYTES - 150000 || s->landing_used > SIM_LANDING_BYTES - 80000)
		most = 60;
	op->length = none ? 0 : is_word(op) ? 8 : choose_length(w, most);
	if (spoilt && !op->length && !none)
		op->length = 5;
	if (op->kind == ORACLE_SEND || op->kind == ORACLE_WRITE) {
		op->has_imm = sim_chance(w, 300);
		op->solicited = sim_chance(w, 300) && (op->kind == ORACLE_SEND || op->has_imm);
		/* Where messages get lost, short ones are recognised by their immediate. */
		if (c->service != VB_SERVICE_RC && op->length < 8 && op->kind == ORACLE_SEND)
			op->has_imm = true;
		op->has_inv = c->service == VB_SERVICE_RC && op->kind == ORACLE_SEND &&
			      !op->has_imm && sim_chance(w, 150);
		op->imm = op->has_inv ? SIM_KEY_WINDOW : op->has_imm ? (uint32_t)sim_random(w) : 0;
	}
	op->fence = sim_chance(w, 100);
	op->compare = sim_below(w, 4);
	op->swap = sim_below(w, 4);
	op->remote_at = is_word(op) ? SIM_ATOMIC_AT + 8 * sim_below(w, 4)
				    : choose_target(w, op->length);
	op->status = only(IBV_WC_SUCCESS);
	op->event = -1;
}

static void plan_one(struct world *w, unsigned int number, unsigned int lacking)
{
	struct sim_side *s = &w->side[number];
	struct sim_side *to = sim_peer(s);
	struct vb_send_wqe *wqe = &s->plan[s->plans];
	struct ibv_sge *sge = s->plan_sge[s->plans];
	struct oracle_op op = {.kind = choose_kind(w)};
	bool spoilt = w->config.fault && w->config.fault_side == number &&
		      w->config.fault_op == s->plans;
	uint32_t recv;

	if (spoilt)
		op.kind = fault_kind(w, op.kind);
	choose_content(s, &op, spoilt);
	place_pieces(s, &op,
		     op.kind == ORACLE_READ || op.kind == ORACLE_SWAP || op.kind == ORACLE_ADD);
	memset(wqe, 0, sizeof(*wqe));
	wqe->wr_id = s->plans;
	wqe->length = op.length;
	wqe->opcode = (uint8_t)opcode_of(&op);
	wqe->imm = op.kind == ORACLE_LOCAL ? SIM_KEY_WINDOW : op.imm;
	wqe->remote_addr = SIM_IOVA + op.remote_at - SIM_TARGET_AT;
	wqe->srqn = (s->plans * 7 + 3) % ORACLE_OPS;
	wqe->rkey = op.length || op.kind == ORACLE_FLUSH || sim_chance(w, 500) ? SIM_KEY_ALL
									       : SIM_KEY_WRONG;
	if (w->config.xrc && wqe->rkey == SIM_KEY_ALL && wqe->srqn & 1)
		wqe->rkey = SIM_KEY_SECOND;
	wqe->compare_add = op.compare;
	wqe->swap = op.swap;
	if (op.kind == ORACLE_FLUSH) {
		/* The region continues behind the targets. */
		wqe->compare_add = 1 + sim_below(w, 200);
		wqe->swap = VB_FETH(1 + sim_below(w, 3), sim_below(w, 2));
	}
	wqe->num_sge = op.pieces;
	wqe->solicited = op.solicited;
	wqe->fence = op.fence;
	wqe->is_inline =
		(op.kind == ORACLE_SEND || op.kind == ORACLE_WRITE || op.kind == ORACLE_PUT) &&
		op.length <= 60 && sim_chance(w, 400);
	wqe->remote_qpn = to->qp.qpn;
	wqe->remote_qkey = sim_chance(w, 500) ? 0x11111111 : 0x80000000;
	for (unsigned int i = 0; i < op.pieces; i++) {
		sge[i] = (struct ibv_sge){
			.addr = op.piece[i].at,
			.length = op.piece[i].length,
			.lkey = op.piece[i].length
					? SIM_KEY_ALL
					: SIM_KEY_WRONG, /* of zero bytes: the key is not read */
		};
	}
	recv = op.length + (w->config.service == VB_SERVICE_UD ? 40 : 0) + sim_below(w, 50);
	/* Where messages get lost, most receives must fit any message. */
	if (w->config.service != VB_SERVICE_RC && !sim_chance(w, 50))
		recv = w->config.service == VB_SERVICE_UD ? w->config.mtu + 40 : 8000;
	else if (op.kind == ORACLE_WRITE)
		recv = sim_below(w, 30);
	if (spoilt)
		spoil(w, &op, wqe, sge, &recv);
	if (w->config.fault_side == number || w->config.fault == SIM_FAULT_RD_EXCEED)
		loosen(w, &op, lacking);
	oracle_plan(&w->oracle, number, &op);
	s->plans++;
	if (op.kind == ORACLE_SEND || (op.kind == ORACLE_WRITE && op.has_imm)) {
		to->recv_length[to->recvs_wanted++] = recv;
		to->recv_used += (recv & 0x7fffffff) + 40;
	}
}

static void take_right(struct world *w, unsigned int lacking)
{
	struct vb_tqp *qp = &sim_peer(&w->side[w->config.fault_side])->qp;

	qp->access &= ~(lacking == ORACLE_WRITE  ? IBV_ACCESS_REMOTE_WRITE
			: lacking == ORACLE_READ ? IBV_ACCESS_REMOTE_READ
						 : IBV_ACCESS_REMOTE_ATOMIC);
}

void workload_plan(struct world *w)
{
	static const enum oracle_kind rights[] = {ORACLE_WRITE, ORACLE_READ, ORACLE_SWAP};
	const struct sim_config *c = &w->config;
	enum oracle_kind lacking = rights[sim_below(w, 3)];

	for (unsigned int s = 0; s < w->sides; s++) {
		unsigned int count = 12 + sim_below(w, 60);

		for (unsigned int i = 0; i < count; i++)
			plan_one(w, s, lacking);
	}
	if (c->fault == SIM_FAULT_QP_ACCESS)
		take_right(w, lacking);
	for (unsigned int s = 0; s < w->sides; s++) {
		struct sim_side *to = sim_peer(&w->side[s]);

		w->side[s].recv_used = 0;
		/* The message of this fault finds no receive. */
		if (c->fault == SIM_FAULT_NO_RECV && c->fault_side == s) {
			unsigned int before = 0;

			for (unsigned int i = 0; i < c->fault_op; i++) {
				const struct oracle_op *op = &w->oracle.side[s].op[i];

				before += op->kind == ORACLE_SEND ||
					  (op->kind == ORACLE_WRITE && op->has_imm);
			}
			to->recvs_wanted = before;
		}
	}
}

void plan_describe(const struct world *w, char *text, unsigned int size)
{
	static const char *const services[] = {"RC", "UC", "UD", "XRC"};
	const struct sim_config *c = &w->config;

	snprintf(
		text, size,
		"seed %llu: %s%s, %s link, delay %llu ns, room %u, loss %u spoilt %u twice %u late %u of 1000, mtu %u, run %u, "
		"window %u, read %u of %u, rd_atomic %u/%u, timeout %u, retry %u, rnr %u, psn %06x %06x%s%s%s, fault: %s (side %u "
		"op %u)",
		(unsigned long long)c->seed, services[c->xrc ? VB_SERVICE_XRC : c->service],
		c->self ? " to itself" : "", c->reliable ? "reliable" : "lossy",
		(unsigned long long)c->delay_ns, c->room, c->loss, c->corrupt, c->twice, c->late,
		c->mtu, c->run_packets, c->window, c->read_packets, c->read_window,
		c->max_rd_atomic, c->max_dest_rd_atomic, c->timeout, c->retry_cnt, c->rnr_retry,
		c->psn[0], c->psn[1], c->direct ? ", direct access" : "",
		c->late_recv ? ", late receives" : "", c->sqd ? ", SQD" : "",
		sim_fault_name(c->fault), c->fault_side, c->fault_op);
}
