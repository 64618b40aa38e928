/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Reading the file and the environment. */
#include "config.h"

#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

enum { RULES = 256, LINE = 512, ANY = -1, BAD = -2, FAMILY_IB = 27 };

struct rule {
	char program[64];
	int domain, type, protocol;
};

static const char *file = "/etc/rdma/rsocket/preload_config";
static struct config config;
static struct rule rules[RULES];
static int rule_count;
static pthread_once_t once = PTHREAD_ONCE_INIT;

struct word {
	const char *name;
	int value;
};

static const struct word domains[] = {
	{"INET", AF_INET}, {"INET6", AF_INET6}, {"IB", FAMILY_IB}, {NULL, 0}};
static const struct word types[] = {{"STREAM", SOCK_STREAM}, {"DGRAM", SOCK_DGRAM}, {NULL, 0}};
static const struct word protocols[] = {{"TCP", IPPROTO_TCP}, {"UDP", IPPROTO_UDP}, {NULL, 0}};

static int value_of(const char *text, const char *prefix, const struct word *words)
{
	if (!strcmp(text, "*"))
		return ANY;
	if (!strncasecmp(text, prefix, strlen(prefix)))
		text += strlen(prefix);
	for (; words->name; words++) {
		if (!strcasecmp(text, words->name))
			return words->value;
	}
	return BAD;
}

static void take_line(char *line)
{
	char program[LINE], domain[LINE], type[LINE], protocol[LINE];
	struct rule *r = &rules[rule_count];

	line[strcspn(line, "#\n")] = '\0';
	if (rule_count == RULES ||
	    sscanf(line, "%s %s %s %s", program, domain, type, protocol) != 4)
		return;
	r->domain = value_of(domain, "AF_", domains);
	r->type = value_of(type, "SOCK_", types);
	r->protocol = value_of(protocol, "IPPROTO_", protocols);
	if (r->domain == BAD || r->type == BAD || r->protocol == BAD)
		return;
	snprintf(r->program, sizeof(r->program), "%.63s", program);
	rule_count++;
}

/* What of a line has no room is left out: it is no line of its own. */
static bool read_line(FILE *f, char line[LINE])
{
	int c = 0;

	if (!fgets(line, LINE, f))
		return false;
	if (!strchr(line, '\n'))
		while (c != EOF && c != '\n')
			c = fgetc(f);
	return true;
}

static void read_file(void)
{
	FILE *f = fopen(file, "rce");
	char line[LINE];

	if (!f)
		return;
	while (read_line(f, line))
		take_line(line);
	fclose(f);
}

static int number(const char *name)
{
	const char *text = getenv(name);
	int value = text ? atoi(text) : 0;

	return value > 0 ? value : 0;
}

static void read_all(void)
{
	const char *fork_safe = getenv("RDMAV_FORK_SAFE");

	config.send_queue = number("RS_SQ_SIZE");
	config.receive_queue = number("RS_RQ_SIZE");
	config.inline_bytes = number("RS_INLINE");
	config.fork_mode = fork_safe;
	read_file();
}

const struct config *config_get(void)
{
	int before = errno;

	pthread_once(&once, read_all);
	errno = before;
	return &config;
}

void config_use_file(const char *path)
{
	file = path;
}

static bool fits(int rule, int asked)
{
	return rule == ANY || rule == asked;
}

/* Protocol 0 is the usual one of the type. */
static bool fits_protocol(const struct rule *r, int type, int protocol)
{
	if (!protocol)
		protocol = type == SOCK_STREAM ? IPPROTO_TCP : IPPROTO_UDP;
	return fits(r->protocol, protocol);
}

static bool is_for_us(const struct rule *r)
{
	return !strcmp(r->program, "*") ||
	       !strncasecmp(program_invocation_short_name, r->program, strlen(r->program));
}

bool config_takes(int domain, int type, int protocol)
{
	type &= ~(SOCK_NONBLOCK | SOCK_CLOEXEC);
	config_get();
	if (!rule_count)
		return true;
	for (int i = 0; i < rule_count; i++) {
		const struct rule *r = &rules[i];

		if (is_for_us(r) && fits(r->domain, domain) && fits(r->type, type) &&
		    fits_protocol(r, type, protocol))
			return true;
	}
	return false;
}
