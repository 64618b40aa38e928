/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The runs of loop.h: two processes for each, their watchdog, and what is said about them. */
#include "alloc/loop.h"

#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/check.h"
#include "support/clock.h"
#include "calls/context/failing.h"
#include "support/process.h"

#define MOST       4096 /* allocations of a life */
#define PATIENCE_S 45   /* for a whole run */
/* Which allocation is the n-th differs a little from run to run, as threads do. */
#define BEYOND     3
#define STEP_BYTES 48
#define TIMES      200 /* of ALLOC_N */

/* What came of a life. */
struct side_end {
	char step[STEP_BYTES]; /* the first that failed, "": none */
	int err;
	int status; /* of a completion; -1: none came */
	uint32_t reason;
};

/* What one process of a run found; shared with it. */
struct found {
	unsigned int made; /* allocations while one was to fail */
	struct side_end failing, after;
	bool lived; /* it came to its end */
	bool told;  /* a reason was given */
	uint64_t ms;
	void *frames[FAILING_FRAMES];
};

struct run {
	const struct scenario *scenario;
	int victim;
	unsigned int nth;
};

/* Of a scenario and a victim. */
struct tally {
	unsigned int runs, passed, refused, completions, other;
	unsigned int allocations;
	uint64_t longest;
};

static struct found *found;
static int log_file;

static off_t log_bytes(void)
{
	struct stat st;

	return fstat(log_file, &st) ? -1 : st.st_size;
}

bool side_call(struct side *side, const char *step, int err)
{
	if (!err)
		return true;
	if (!side->end->step[0]) {
		snprintf(side->end->step, STEP_BYTES, "%s", step);
		side->end->err = err;
	}
	return false;
}

bool side_found(struct side *side, const char *step, const void *object)
{
	return side_call(side, step, object ? 0 : errno ? errno : -1);
}

bool side_completion(struct side *side, const char *step, int came, const struct ibv_wc *wc)
{
	if (came == 1 && wc->status == IBV_WC_SUCCESS)
		return true;
	if (!side->end->step[0]) {
		snprintf(side->end->step, STEP_BYTES, "%s", step);
		side->end->status = came == 1 ? (int)wc->status : -1;
		side->end->reason = came == 1 ? wc->vendor_err : 0;
	}
	return false;
}

bool side_event(struct side *side, const char *step, int type, int status)
{
	if (!side->end->step[0]) {
		snprintf(side->end->step, STEP_BYTES, "%s", step);
		side->end->status = type;
		side->end->reason = (uint32_t)(status < 0 ? -status : status);
	}
	return false;
}

bool side_other_failed(const struct side *side)
{
	char first = 1;

	return side->sock >= 0 && recv(side->sock, &first, 1, MSG_PEEK | MSG_DONTWAIT) == 1 &&
	       !first;
}

bool side_await(struct side *side, const char *step, int fd)
{
	uint64_t until = now_ms() + EVENT_MS;
	struct pollfd p = {.fd = fd, .events = POLLIN};

	while (now_ms() < until) {
		if (poll(&p, 1, 20) > 0)
			return true;
		if (side_other_failed(side))
			return false;
	}
	return side_event(side, step, -1, 0);
}

bool side_well(const struct side *side)
{
	return !side->end->step[0];
}

bool side_both(struct side *side, bool ok, const void *mine, void *theirs, size_t length)
{
	char out[256] = {0}, in[256] = {0};

	if (side->sock < 0)
		return ok;
	CHECK(length < sizeof(out));
	out[0] = ok;
	if (length)
		memcpy(out + 1, mine, length);
	message_swap(side->sock, out, in, length + 1);
	if (length)
		memcpy(theirs, in + 1, length);
	if (!in[0] && !side->end->step[0])
		snprintf(side->end->step, STEP_BYTES, "-"); /* the other one's */
	return ok && in[0];
}

static bool live(const struct scenario *scenario, int index, int sock, struct side_end *end)
{
	struct side side = {index, sock, scenario, end};
	bool ok = scenario->life(&side);

	CHECK(ok == side_well(&side));
	return ok;
}

static int child(const struct run *run, int index, int sock)
{
	struct found *f = &found[index];
	struct side_end before = {0};
	uint64_t begun;
	off_t said;

	alarm(PATIENCE_S);
	if (run->scenario->link)
		CHECK_ZERO(setenv("VERBATIM_LINK", run->scenario->link, 1));
	if (run->scenario->warm)
		CHECK(live(run->scenario, index, sock, &before));
	said = log_bytes();
	begun = now_ms();
	failing_frames = f->frames;
	if (index == run->victim)
		failing_everywhere(FAILING_MEMORY, run->nth, false);
	live(run->scenario, index, sock, &f->failing);
	if (index == run->victim)
		f->made = failing_everywhere_stop();
	f->ms = now_ms() - begun;
	f->told = log_bytes() > said;
	live(run->scenario, index, sock, &f->after);
	f->lived = true;
	return 0;
}

static pid_t start(const struct run *run, int index, const int *pair)
{
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid)
		return pid;
	if (pair[0] >= 0)
		close(pair[!index]);
	CHECK(freopen("/dev/null", "w", stdout));
	exit(child(run, index, pair[index]));
}

/* Each "object+offset" of the request that failed, for addr2line(1). */
static void frames_show(const struct found *f)
{
	char text[4096];
	ssize_t n;
	off_t at = 0;

	fflush(stderr);
	while (getenv("ALLOC_SHOW") && (n = pread(log_file, text, sizeof(text), at)) > 0) {
		(void)!write(2, text, (size_t)n);
		at += n;
	}
	for (int i = 0; i < FAILING_FRAMES && f->frames[i]; i++)
		backtrace_symbols_fd(&f->frames[i], 1, 2);
}

static void end_expect(const struct run *run, int index, const char *when, const struct side_end *e,
		       bool may_fail)
{
	if (!e->step[0])
		return;
	EXPECT_SAY(may_fail, "n %u, side %d, %s: %s: errno %d, status %d, reason %u", run->nth,
		   index, when, e->step, e->err, e->status, e->reason);
}

static void refusal_expect(const struct run *run, int index)
{
	const struct side_end *e = &found[index].failing;

	if (!e->step[0] || !strcmp(e->step, "-"))
		return;
	if (e->err) {
		EXPECT_SAY(e->err == ENOMEM && index == run->victim,
			   "n %u, side %d: %s refused with %d", run->nth, index, e->step, e->err);
		EXPECT_SAY(found[index].told || run->scenario->quiet,
			   "n %u, side %d: %s refused, and no reason was given", run->nth, index,
			   e->step);
	} else {
		EXPECT_SAY(e->status >= 0, "n %u, side %d: %s: nothing came", run->nth, index,
			   e->step);
		EXPECT_SAY(e->reason, "n %u, side %d: %s: status %d without a reason", run->nth,
			   index, e->step, e->status);
	}
}

/* False: no allocation has failed. */
static bool judge(const struct run *run, struct tally *t, const int *status)
{
	const struct side_end *e = &found[run->victim].failing;
	unsigned int failed = expect_failed();
	bool reached;

	for (unsigned int i = 0; i < run->scenario->sides; i++)
		EXPECT_SAY(found[i].lived && !status[i], "n %u, victim %d, side %u: %s, status %#x",
			   run->nth, run->victim, i,
			   WIFSIGNALED(status[i]) && WTERMSIG(status[i]) == SIGALRM ? "stands still"
										    : "ended",
			   (unsigned int)status[i]);
	if (expect_failed() != failed) {
		frames_show(&found[run->victim]);
		return true;
	}
	reached = found[run->victim].made >= run->nth;
	for (unsigned int i = 0; i < run->scenario->sides; i++) {
		end_expect(run, (int)i, "first", &found[i].failing, reached);
		end_expect(run, (int)i, "afterwards", &found[i].after, false);
		refusal_expect(run, (int)i);
		if (found[i].ms > t->longest)
			t->longest = found[i].ms;
	}
	if (expect_failed() != failed)
		frames_show(&found[run->victim]);
	if (!reached)
		return false;
	t->passed += !e->step[0];
	t->refused += e->err != 0;
	t->completions += e->step[0] && !e->err && e->reason;
	t->other += !strcmp(e->step, "-");
	if (getenv("ALLOC_SHOW"))
		fprintf(stderr, "n %u: %s: errno %d, status %d, reason %u; %d ms\n", run->nth,
			e->step[0] ? e->step : "passed", e->err, e->status, e->reason,
			(int)found[run->victim].ms);
	return true;
}

static bool run_once(const struct run *run, struct tally *t)
{
	int pair[2] = {-1, -1}, status[SIDES_MOST] = {0};
	pid_t pid[SIDES_MOST];

	memset(found, 0, SIDES_MOST * sizeof(*found));
	CHECK_ZERO(ftruncate(log_file, 0));
	if (run->scenario->sides > 1)
		CHECK_ZERO(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair));
	fflush(stdout);
	for (unsigned int i = 0; i < run->scenario->sides; i++)
		pid[i] = start(run, (int)i, pair);
	for (int i = 0; pair[0] >= 0 && i < 2; i++)
		close(pair[i]);
	for (unsigned int i = 0; i < run->scenario->sides; i++)
		CHECK(waitpid(pid[i], &status[i], 0) == pid[i]);
	t->runs++;
	if (found[run->victim].made > t->allocations)
		t->allocations = found[run->victim].made;
	return judge(run, t, status);
}

/* What depends on the order in which threads run shows now and then. */
static void try_one(struct run *run, struct tally *t, const char *nth)
{
	run->nth = (unsigned int)atoi(nth);
	for (int i = 0; i < TIMES; i++)
		run_once(run, t);
}

static void try_victim(const struct scenario *scenario, int victim, unsigned int stride)
{
	struct run run = {scenario, victim, 1};
	struct tally t = {0};
	const char *nth = getenv("ALLOC_N");
	unsigned int beyond = 0;

	expect_case("%s, side %d", scenario->name, victim);
	if (nth) {
		try_one(&run, &t, nth);
		return;
	}
	for (; beyond < BEYOND && run.nth < MOST; run.nth += beyond ? 1 : stride)
		beyond = run_once(&run, &t) ? 0 : beyond + 1;
	EXPECT_SAY(beyond == BEYOND, "no end");
	EXPECT_SAY(t.passed + t.refused + t.completions + t.other, "no allocation failed");
	printf("# %s, side %d: %u allocations, %u runs: %u succeeded, %u refused (ENOMEM), %u completions with a reason, %u ended by the other side; the longest took %u ms\n",
	       scenario->name, victim, t.allocations, t.runs, t.passed, t.refused, t.completions,
	       t.other, (unsigned int)t.longest);
}

int loop_main(int argc, char **argv, const struct scenario *scenarios)
{
	const char *stride_text = argc > 1 ? argv[1] : "all";
	const char *only = argc > 2 ? argv[2] : "";
	unsigned int stride = strcmp(stride_text, "all") ? (unsigned int)atoi(stride_text) : 1;
	char path[32];

	CHECK(stride);
	setvbuf(stdout, NULL, _IOLBF, 0);
	found = mmap(NULL, SIDES_MOST * sizeof(*found), PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	log_file = memfd_create("log", 0);
	CHECK(found != MAP_FAILED && log_file >= 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", log_file);
	CHECK_ZERO(setenv("VERBATIM_LOG", "debug", 1));
	CHECK_ZERO(setenv("VERBS_LOG_FILE", path, 1));
	for (const struct scenario *s = scenarios; s->name; s++) {
		for (unsigned int side = 0; side < s->sides; side++) {
			if (strstr(s->name, only))
				try_victim(s, (int)side, stride);
		}
	}
	return expect_done();
}
