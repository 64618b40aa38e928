/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What failed in processes: one process in full, or a line for each of them. */
#include "explain/processes.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/reason.h"
#include "explain/journals.h"
#include "explain/other_side.h"

static void clock_time(uint64_t ns, char text[16])
{
	time_t seconds = (time_t)(ns / 1000000000);
	struct tm tm;

	if (!localtime_r(&seconds, &tm) || !strftime(text, 16, "%H:%M:%S", &tm))
		snprintf(text, 16, "?");
}

static const char *kind_name(const struct vb_failure_record *r)
{
	static const char *const names[] = {[VB_FAILURE_FACT] = "noted",
					    [VB_FAILURE_CALL] = "call refused",
					    [VB_FAILURE_COMPLETION] = "completion failed",
					    [VB_FAILURE_REQUEST] = "peer's request refused"};

	return r->probe ? "call refused, perhaps a probe" : names[r->kind];
}

static void print_state(const struct journal *j)
{
	if (j->alive)
		printf("Process %d (%s) runs.\n", j->pid, j->name);
	else if (j->ended == VB_JOURNAL_RUNNING)
		printf("Process %d (%s) has ended, without exit(3): by a signal, abort(3) or _exit(2).\n",
		       j->pid, j->name);
	else
		printf("Process %d (%s) has ended with status %d.\n", j->pid, j->name, j->ended);
}

static void print_record(const struct vb_failure_record *r)
{
	const struct vb_reason_entry *e = vb_reason_entry((enum vb_reason)r->reason);
	char when[16];

	clock_time(r->when_ns, when);
	printf("%s  %s: 0x%x %s\n    %s\n", when, kind_name(r), e->code, e->name, r->text);
	if (r->kind == VB_FAILURE_CALL)
		printf("    errno: %s\n", strerror(r->value));
	if (r->count > 1)
		printf("    for this reason %llu times by then\n", (unsigned long long)r->count);
}

static bool has_before(const struct journal *j, unsigned int at)
{
	for (unsigned int i = 0; i < at; i++) {
		if (j->records[i].reason == j->records[at].reason)
			return true;
	}
	return false;
}

/* Each reason once, in the order in which they came. */
static void print_cures(const struct journal *j)
{
	for (unsigned int i = 0; i < j->count; i++) {
		const struct vb_reason_entry *e =
			vb_reason_entry((enum vb_reason)j->records[i].reason);

		if (j->records[i].probe || has_before(j, i) || !e->code)
			continue;
		printf("\n0x%x %s: %s\n  usual cause: %s\n  what to do: %s\n", e->code, e->name,
		       e->text, e->cause, e->cure);
	}
}

static int read_one(int pid, struct journal *j)
{
	char folder[PATH_MAX];
	int err = journals_folder(folder, sizeof(folder));

	return err ? err : journal_read(folder, pid, j);
}

static void tell_absent(int pid, int err)
{
	if (err != -ENOENT)
		fprintf(stderr, "verbatim explain: journal of process %d: %s\n", pid,
			err == -EBADMSG ? "it is damaged" : strerror(-err));
	else if (!kill(pid, 0) || errno == EPERM)
		fprintf(stderr,
			"verbatim explain: process %d runs and has no journal: nothing has failed, or it was not started by "
			"`verbatim run` of this user\n",
			pid);
	else
		fprintf(stderr,
			"verbatim explain: no process %d, and no journal of one; `verbatim explain` without an argument lists what there is\n",
			pid);
}

bool process_has_journal(int pid)
{
	struct journal j;

	return !read_one(pid, &j);
}

int process_explain(int pid)
{
	struct journal j;
	int err = read_one(pid, &j);

	if (err) {
		tell_absent(pid, err);
		return EXIT_FAILURE;
	}
	print_state(&j);
	for (unsigned int i = 0; i < j.count; i++) {
		print_record(&j.records[i]);
		other_side_print(pid, &j.records[i]);
	}
	print_cures(&j);
	return EXIT_SUCCESS;
}

/* The record that a report would begin with. */
static const struct vb_failure_record *most_telling(const struct journal *j)
{
	const struct vb_failure_record *best = NULL;

	for (unsigned int i = 0; i < j->count; i++) {
		const struct vb_failure_record *r = &j->records[i];

		if (r->kind == VB_FAILURE_COMPLETION || r->kind == VB_FAILURE_REQUEST)
			return r;
		if (!best || (best->kind == VB_FAILURE_FACT && !r->probe) || best->probe)
			best = r;
	}
	return best;
}

static void print_line(const struct journal *j)
{
	const struct vb_failure_record *r = most_telling(j);
	char when[16] = "";
	char state[32];

	if (!r)
		return;
	clock_time(r->when_ns, when);
	if (j->alive)
		snprintf(state, sizeof(state), "runs");
	else if (j->ended == VB_JOURNAL_RUNNING)
		snprintf(state, sizeof(state), "killed or aborted");
	else
		snprintf(state, sizeof(state), "ended, status %d", j->ended);
	printf("%d (%s; %s), %s: 0x%x %s\n    %s\n", j->pid, j->name, state, when, r->reason,
	       vb_reason_name((enum vb_reason)r->reason), r->text);
}

int processes_list(void)
{
	char folder[PATH_MAX];
	int pids[JOURNALS_MAX];
	unsigned int count, printed = 0;
	int err = journals_folder(folder, sizeof(folder));

	if (err) {
		fprintf(stderr, "verbatim explain: no runtime directory: %s\n", strerror(-err));
		return EXIT_FAILURE;
	}
	count = journals_list(folder, pids);
	for (unsigned int i = 0; i < count; i++) {
		struct journal j;

		if (journal_read(folder, pids[i], &j))
			continue;
		print_line(&j);
		printed++;
	}
	if (!printed)
		printf("No program of `verbatim run` has had a failure lately.\n");
	else
		printf("`verbatim explain PID` tells all of one process, `verbatim explain CODE` what a code means.\n");
	return EXIT_SUCCESS;
}
