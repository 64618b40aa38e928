/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The trace of a run, by lines: time, side, event. */
#include <stdarg.h>
#include <stdio.h>

#include "world.h"

static const char *const op_names[VB_OP_COUNT] = {
	"SEND",       "WRITE", "READ_REQ", "READ_RESP",    "CAS",   "FAA",
	"ATOMIC_ACK", "ACK",   "DROP",     "ATOMIC_WRITE", "FLUSH",
};

static void describe_ack(const struct vb_run *run)
{
	switch (VB_AETH_CLASS(run->syndrome)) {
	case VB_AETH_RNR:
		printf(" RNR timer %u", VB_AETH_VALUE(run->syndrome));
		break;
	case 0x60:
		printf(" NAK %u", VB_AETH_VALUE(run->syndrome));
		break;
	default:
		break;
	}
}

void trace_packet(struct sim_side *from, const struct vb_run *run, const char *fate)
{
	if (!from->world->trace)
		return;
	printf("%12llu %c> %-10s psn %06x +%u len %u", (unsigned long long)from->world->now,
	       'A' + (int)from->number, run->op < VB_OP_COUNT ? op_names[run->op] : "?", run->psn,
	       run->segments, run->length);
	printf("%s%s%s%s%s%s", run->flags & VB_RUN_FIRST ? " first" : "",
	       run->flags & VB_RUN_LAST ? " last" : "", run->flags & VB_RUN_IMM ? " imm" : "",
	       run->flags & VB_RUN_INV ? " inv" : "", run->flags & VB_RUN_SOLICITED ? " sol" : "",
	       run->flags & VB_RUN_ACK_REQ ? " ackreq" : "");
	if (run->op == VB_OP_ACK)
		describe_ack(run);
	if (run->op == VB_OP_READ_REQUEST || (run->op == VB_OP_WRITE && run->flags & VB_RUN_FIRST))
		printf(" va %llx dma %u", (unsigned long long)run->va, run->dma_length);
	printf("%s%s\n", *fate ? "  " : "", fate);
}

void trace_line(struct world *w, const char *format, ...)
{
	va_list ap;

	if (!w->trace)
		return;
	printf("%12llu ", (unsigned long long)w->now);
	va_start(ap, format);
	vprintf(format, ap);
	va_end(ap);
	putchar('\n');
}
