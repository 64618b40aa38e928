/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Promise: when the system gives a call no memory, no mapping, no descriptor or no thread, the call
 * is refused with the system's errno and a sentence that says why. It leaves nothing behind and
 * keeps nothing busy, and the same call succeeds afterwards. Each call is made in a fresh process
 * for k = 1, 2, and so on: its k-th request to the system fails, once or from then on, until a k
 * comes that the call does not reach. A process in which nothing fails tells what the call may
 * keep.
 *
 * usage: no_room [TEXT | SHARE/SHARES]: the calls whose name contains TEXT; or one of SHARES equal
 * parts of all calls, so that several programs together make all of them.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "support/check.h"
#include "failing.h"
#include "room_calls.h"

#define MOST       4096          /* requests of one kind that a call makes */
#define ALL_UP_TO  24            /* more of them are a loop's, of which a few are enough */
#define ARENA_MOST (64ull << 30) /* no buffer is larger in any case */
#define PIECE      (32ull << 20)
#define SETTLE_MS  500
#define PATIENCE_S 10

/* What the process of one attempt found. */
struct outcome {
	bool prepared; /* everything before the call under test has worked */
	bool reached;  /* the request that was to fail has been made */
	bool refused;
	struct failing_held kept;
};

static struct outcome *outcome; /* shared with the processes */
static int log_file;

static off_t log_bytes(void)
{
	struct stat st;

	return fstat(log_file, &st) ? -1 : st.st_size;
}

static bool within(struct failing_held a, struct failing_held b)
{
	return a.blocks <= b.blocks && a.mapped <= b.mapped && a.descriptors <= b.descriptors;
}

/* What is held more than @before; the progress thread gives some things back in its own time. */
static struct failing_held kept_since(struct failing_held before, struct failing_held allowed,
				      int patience_ms)
{
	struct failing_held now;

	for (int ms = 0;; ms++) {
		now = failing_held();
		now.blocks -= before.blocks;
		now.mapped -= before.mapped;
		now.descriptors -= before.descriptors;
		if (within(now, allowed) || ms >= patience_ms)
			return now;
		usleep(1000);
	}
}

static void expect_kept(struct failing_held before, struct failing_held allowed)
{
	struct failing_held kept = kept_since(before, allowed, SETTLE_MS);

	EXPECT_SAY(kept.blocks <= allowed.blocks, "%ld blocks kept, not %ld", kept.blocks,
		   allowed.blocks);
	EXPECT_SAY(kept.mapped <= allowed.mapped, "%ld bytes mapped, not %ld", kept.mapped,
		   allowed.mapped);
	EXPECT_SAY(kept.descriptors <= allowed.descriptors, "%ld descriptors kept, not %ld",
		   kept.descriptors, allowed.descriptors);
}

static void make_and_undo(const struct room_call *call, struct room *room)
{
	if (EXPECT_EQ(call->make(room), 0))
		EXPECT_EQ(call->undo(room), 0);
}

/* The call with its k-th request failing. False: it does not make so many. */
static bool attempt(const struct room_call *call, struct room *room, enum failing_kind kind,
		    unsigned int kth, bool lasting)
{
	off_t said = log_bytes();
	bool reached;
	int err, seen;

	failing_start(kind, kth, lasting);
	errno = 0;
	err = call->make(room);
	seen = errno;
	reached = failing_stop();
	if (!err) {
		EXPECT_EQ(call->undo(room), 0);
		return reached;
	}
	EXPECT_SAY(reached, "refused with %d though nothing failed", err);
	EXPECT_SAY(err == failing_errno(kind) || (call->other_errno && err == call->other_errno),
		   "refused with %s", strerror(err));
	EXPECT_EQ(seen, err);
	EXPECT_SAY(log_bytes() > said, "no reason was given");
	outcome->refused = true;
	return reached;
}

/*
 * In a process of its own: twice, since the second time finds what the first has left. kth 0:
 * nothing fails.
 */
static int child(const struct room_call *call, enum failing_kind kind, unsigned int kth,
		 bool lasting, struct failing_held allowed)
{
	const struct failing_held nothing = {0};
	struct room room = {0};
	const unsigned int failed = expect_failed();
	struct failing_held before;

	alarm(PATIENCE_S);
	outcome->prepared = call->prepare(&room);
	if (!outcome->prepared)
		return 0;
	before = failing_held();
	if (!kth) {
		if (call->make(&room) || call->undo(&room))
			outcome->prepared = false;
		outcome->kept = kept_since(before, nothing, 0);
		room_leave(&room);
		return expect_failed() != failed;
	}
	outcome->reached = attempt(call, &room, kind, kth, lasting);
	if (outcome->reached) {
		make_and_undo(call, &room);
		if (!call->meets)
			expect_kept(before, allowed);
		attempt(call, &room, kind, kth, lasting);
		make_and_undo(call, &room);
		if (!call->meets)
			expect_kept(before, allowed);
	}
	room_leave(&room);
	return expect_failed() != failed;
}

static void run(const struct room_call *call, enum failing_kind kind, unsigned int kth,
		bool lasting, struct failing_held allowed)
{
	int status = 0;
	pid_t pid;

	memset(outcome, 0, sizeof(*outcome));
	fflush(stdout);
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		CHECK(freopen("/dev/null", "w", stdout));
		exit(child(call, kind, kth, lasting, allowed));
	}
	CHECK(waitpid(pid, &status, 0) == pid);
	EXPECT_SAY(WIFEXITED(status) && !WEXITSTATUS(status), "request %u%s: status %#x", kth,
		   lasting ? " and all after it" : "", (unsigned int)status);
}

static void try_kind(const struct room_call *call, enum failing_kind kind,
		     struct failing_held allowed)
{
	unsigned int refused = 0, k;
	bool reached = true;

	expect_case("%s: no %s", call->name, failing_name(kind));
	for (k = 1; reached && k < MOST; k += k < ALL_UP_TO ? 1 : k / 2) {
		run(call, kind, k, false, allowed);
		reached = outcome->reached;
		refused += outcome->refused;
		if (reached && !call->slow) {
			run(call, kind, k, true, allowed);
			refused += outcome->refused;
		}
	}
	EXPECT_SAY(!reached, "no end");
	if (getenv("ROOM_SHOW"))
		fprintf(stderr, "%-28s %-12s %2u refusals\n", call->name, failing_name(kind),
			refused);
	EXPECT_SAY(refused || !(call->refused & 1u << kind), "never refused");
}

static void try_call(const struct room_call *call)
{
	const struct failing_held nothing = {0};
	struct failing_held allowed;

	expect_case("%s: nothing fails", call->name);
	run(call, FAILING_MEMORY, 0, false, nothing);
	if (!outcome->prepared) {
		fprintf(stderr, "%s: not to be had here\n", call->name);
		return;
	}
	allowed = outcome->kept;
	/*
	 * Once in a process, and when it comes to it, the progress thread makes an engine that
	 * keeps packets for others. What a refused call leaves shows nevertheless: each process has
	 * two of them.
	 */
	allowed.blocks++;
	for (int kind = 0; kind < FAILING_KINDS; kind++)
		try_kind(call, (enum failing_kind)kind, allowed);
}

/* A number of /proc/meminfo, in bytes; 0: it has none. */
static uint64_t meminfo(const char *name)
{
	FILE *f = fopen("/proc/meminfo", "re");
	unsigned long long kib = 0;
	char line[128];

	while (f && !kib && fgets(line, sizeof(line), f)) {
		if (!strncmp(line, name, strlen(name)))
			kib = strtoull(line + strlen(name), NULL, 10);
	}
	if (f)
		fclose(f);
	return kib << 10;
}

/* More memory than the machine has is refused before the kernel is asked to find it. */
static void beyond_memory(void)
{
	uint64_t all = meminfo("MemTotal:");
	struct room room = {0};
	struct ibv_buf *buf = NULL;

	expect_case("a buffer larger than the memory");
	if (!all || !meminfo("MemAvailable:") || all >= ARENA_MOST || !room_with_context(&room))
		return;
	EXPECT_NULL(ibv_alloc_buf(room.pd, all, &buf), ENOMEM);
	EXPECT_EQ(failing_largest_piece(), 0);
	expect_case("and one that is not");
	EXPECT(ibv_alloc_buf(room.pd, PIECE, &buf) != NULL);
	EXPECT_EQ(failing_largest_piece(), PIECE);
	if (buf)
		ibv_free_buf(buf);
	room_leave(&room);
}

static void export_refused(void)
{
	struct room room = {0};

	expect_case("no descriptor for a dma-buf");
	if (!room_with_dm(&room))
		return;
	failing_start(FAILING_DESCRIPTORS, 1, false);
	EXPECT_MINUS1(ibv_dm_export_dmabuf_fd(room.dm), EMFILE);
	EXPECT(failing_stop());
	room_leave(&room);
}

/* A program that closes descriptors which it did not open. */
static void descriptors_closed(void)
{
	struct room room = {0};
	struct ibv_comp_channel *channel;
	struct ibv_async_event event;
	struct ibv_cq *cq;
	void *context;

	expect_case("the program has closed the events' descriptors");
	CHECK(room_with_context(&room));
	channel = ibv_create_comp_channel(room.ctx);
	CHECK(channel);
	close(channel->fd);
	EXPECT_MINUS1(ibv_get_cq_event(channel, &cq, &context), EBADF);
	EXPECT_EQ(ibv_destroy_comp_channel(channel), 0);
	/* The first call opens what tells of the network's changes, which might get the number. */
	CHECK(fcntl(room.ctx->async_fd, F_SETFL, O_NONBLOCK) == 0);
	EXPECT_MINUS1(ibv_get_async_event(room.ctx, &event), EAGAIN);
	close(room.ctx->async_fd);
	EXPECT_MINUS1(ibv_get_async_event(room.ctx, &event), EBADF);
	room_leave(&room);
}

static void try_all(const struct room_call *calls, const char *only, unsigned int share,
		    unsigned int shares)
{
	for (unsigned int number = 0; calls[number].name; number++) {
		if (number % shares == share && (!only || strstr(calls[number].name, only)))
			try_call(&calls[number]);
	}
}

int main(int argc, char **argv)
{
	const char *only = argc > 1 ? argv[1] : NULL;
	unsigned int share = 0, shares = 1;
	char path[32];

	if (only && sscanf(only, "%u/%u", &share, &shares) == 2)
		only = NULL;
	CHECK(share < shares);

	setvbuf(stdout, NULL, _IOLBF, 0);
	outcome = mmap(NULL, sizeof(*outcome), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		       -1, 0);
	log_file = memfd_create("log", 0);
	CHECK(outcome != MAP_FAILED && log_file >= 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", log_file);
	setenv("VERBATIM_LOG", "debug", 1);
	setenv("VERBS_LOG_FILE", path, 1);
	try_all(room_calls, only, share, shares);
	try_all(room_queue_calls, only, share, shares);
	if (!only && !share) {
		beyond_memory();
		export_refused();
		descriptors_closed();
	}
	return expect_done();
}
