/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The requester learns "remote access error", and the responder knows the key and the range. Both
 * name the two queue pairs: "qp 0xA -> 0xB: ..." here, "qp 0xB refuses ... of qp 0xA..." there.
 */
#include "explain/other_side.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/reason.h"

static bool is_answer(const struct vb_failure_record *r, unsigned int own, unsigned int peer)
{
	unsigned int responder, requester;
	const char *of = strstr(r->text, " of qp 0x");

	return r->kind == VB_FAILURE_REQUEST && of &&
	       sscanf(r->text, "qp 0x%x refuses", &responder) == 1 &&
	       sscanf(of, " of qp 0x%x", &requester) == 1 && responder == peer && requester == own;
}

static void print_answers(const struct journal *j, unsigned int own, unsigned int peer)
{
	for (unsigned int i = 0; i < j->count; i++) {
		if (is_answer(&j->records[i], own, peer))
			printf("    the other end, process %d (%s), says: 0x%x %s\n        %s\n",
			       j->pid, j->name, j->records[i].reason,
			       vb_reason_name((enum vb_reason)j->records[i].reason),
			       j->records[i].text);
	}
}

void other_side_print(int pid, const struct vb_failure_record *completion)
{
	unsigned int own, peer, count;
	char folder[PATH_MAX];
	int pids[JOURNALS_MAX];

	if (completion->kind != VB_FAILURE_COMPLETION ||
	    sscanf(completion->text, "qp 0x%x -> 0x%x", &own, &peer) != 2 ||
	    journals_folder(folder, sizeof(folder)))
		return;
	count = journals_list(folder, pids);
	for (unsigned int i = 0; i < count; i++) {
		struct journal j;

		if (pids[i] != pid && !journal_read(folder, pids[i], &j))
			print_answers(&j, own, peer);
	}
}
