/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * `verbatim explain`: what a code, a name or a number means, its usual cause and its cure; what
 * failed in a process.
 */
#include <argp.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/reason.h"
#include "arguments.h"
#include "commands.h"
#include "explain/nearest.h"
#include "explain/processes.h"
#include "explain/terms.h"

struct wish {
	const char *subject;
	bool all;
};

static const struct argp_option options[] = {
	{"all", 'a', NULL, 0, "List every code, status, event and errno with its meaning", 0},
	{0},
};

static const char doc[] =
	"Tell what a failure means and what to do about it. SUBJECT is a code of vendor_err (0x403, 1027), a reason "
	"(RKEY_RANGE), a completion status (REM_ACCESS_ERR, IBV_WC_REM_ACCESS_ERR, 10), an event (IBV_EVENT_QP_FATAL), an "
	"errno (ENOMEM), or the number of a process. Without SUBJECT: the processes in which something failed lately.";

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct wish *wish = state->input;

	switch (key) {
	case 'a':
		wish->all = true;
		return 0;
	case ARGP_KEY_ARG:
		if (wish->subject)
			argp_usage(state);
		wish->subject = arg;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static void print_reason(const struct vb_reason_entry *e)
{
	printf("0x%x %s: %s\n  usual cause: %s\n  what to do: %s\n", e->code, e->name, e->text,
	       e->cause, e->cure);
}

static void print_term(const struct term *t)
{
	printf("%s (%s %d): %s\n  usual cause: %s\n  what to do: %s\n", t->name,
	       term_kind_name(t->kind), t->value, t->text, t->cause, t->cure);
}

static int print_all(void)
{
	unsigned int reasons;
	const struct vb_reason_entry *r = vb_reason_all(&reasons);
	size_t count;
	const struct term *t = terms_all(&count);

	printf("Reasons (vendor_err of a failed completion, codes of the log):\n");
	for (unsigned int i = 0; i < reasons; i++)
		printf("  0x%x %-20s %s\n", r[i].code, r[i].name, r[i].text);
	for (size_t i = 0; i < count; i++) {
		if (!i || t[i].kind != t[i - 1].kind)
			printf("%s:\n", term_kind_name(t[i].kind));
		printf("  %3d %-26s %s\n", t[i].value, t[i].name, t[i].text);
	}
	return EXIT_SUCCESS;
}

static bool explain_name(const char *name)
{
	unsigned int reasons;
	const struct vb_reason_entry *r = vb_reason_all(&reasons);
	size_t count;
	const struct term *t = terms_all(&count);
	bool found = false;

	if (!strncasecmp(name, "VB_REASON_", strlen("VB_REASON_")))
		name += strlen("VB_REASON_");
	for (unsigned int i = 0; i < reasons; i++) {
		if (!strcasecmp(name, r[i].name)) {
			print_reason(&r[i]);
			found = true;
		}
	}
	for (size_t i = 0; i < count; i++) {
		if (!strcasecmp(name, t[i].name) || !strcasecmp(name, term_short_name(&t[i]))) {
			print_term(&t[i]);
			found = true;
		}
	}
	return found;
}

static int explain_unknown(const char *name)
{
	struct nearest n = {.wanted = name};
	unsigned int reasons;
	const struct vb_reason_entry *r = vb_reason_all(&reasons);
	size_t count;
	const struct term *t = terms_all(&count);

	for (unsigned int i = 0; i < reasons; i++)
		nearest_offer(&n, r[i].name);
	for (size_t i = 0; i < count; i++)
		nearest_offer(&n,
			      strncasecmp(name, "IBV_", 4) ? term_short_name(&t[i]) : t[i].name);
	fprintf(stderr, "verbatim explain: nothing is called %s", name);
	for (int i = 0; i < NEAREST_MAX && n.names[i]; i++)
		fprintf(stderr, "%s %s", i ? "," : "; near it:", n.names[i]);
	fprintf(stderr, "\n`verbatim explain --all` lists everything.\n");
	return EXIT_FAILURE;
}

static bool print_value(enum term_kind kind, long value)
{
	size_t count;
	const struct term *t = terms_all(&count);

	for (size_t i = 0; i < count; i++) {
		if (t[i].kind == kind && t[i].value == value) {
			print_term(&t[i]);
			return true;
		}
	}
	return false;
}

static bool process_is_known(long pid)
{
	return pid > 0 && pid <= INT_MAX && (!kill((pid_t)pid, 0) || errno == EPERM);
}

/*
 * A number may be a code of vendor_err, a status or errno (all below 256), or a process; codes in
 * decimal and process numbers overlap, so a decimal number is told as all that it can be. In a
 * container the numbers of most processes are that small.
 */
static int explain_number(const char *text, long value)
{
	const struct vb_reason_entry *e = vb_reason_entry((enum vb_reason)value);
	bool hexadecimal = !strncasecmp(text, "0x", 2);
	bool found = value > 0 && e->code == (enum vb_reason)value;

	if (found)
		print_reason(e);
	if (value < 256) {
		found |= print_value(TERM_STATUS, value);
		found |= print_value(TERM_ERRNO, value);
	}
	if (found && hexadecimal)
		return EXIT_SUCCESS;
	if (hexadecimal) {
		fprintf(stderr,
			"verbatim explain: no code is %s\n`verbatim explain --all` lists everything.\n",
			text);
		return EXIT_FAILURE;
	}
	if (found && !process_has_journal((int)value) && (value < 256 || !process_is_known(value)))
		return EXIT_SUCCESS;
	return process_explain((int)value) && !found ? EXIT_FAILURE : EXIT_SUCCESS;
}

int command_explain(int argc, char **argv)
{
	static const struct argp argp = {
		.options = options, .parser = parse, .args_doc = "[SUBJECT]", .doc = doc};
	static char name[] = "verbatim explain";
	struct wish wish = {0};
	char *end;
	long value;

	if (arguments_parse(&argp, name, 0, argc, argv, &wish))
		return EXIT_FAILURE;
	if (wish.all)
		return print_all();
	if (!wish.subject)
		return processes_list();
	errno = 0;
	value = strtol(wish.subject, &end, 0);
	if (*wish.subject && !*end && !errno && value >= 0 && value <= INT_MAX)
		return explain_number(wish.subject, value);
	if (explain_name(wish.subject))
		return EXIT_SUCCESS;
	return explain_unknown(wish.subject);
}
