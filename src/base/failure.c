/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The list of failures: what counts as one, where it is kept, when the journal is written. */
#include "base/failure.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/failure_report.h"
#include "base/journal.h"
#include "base/log.h"
#include "base/pause.h"
#include "base/sys.h"

enum vb_report vb_report;

/* What an occurrence means for the list. */
enum weight {
	IGNORED,    /* the consequence of another failure, or the ordinary end of a connection */
	BACKGROUND, /* kept, because it may explain a failure */
	TELLING, /* kept in the journal, too: a program that hangs may wait for what was dropped */
	PROBE,   /* may have been meant to fail */
	FAILURE
};

/* Between two kept occurrences of one reason and kind; strangers' packets can cause facts. */
#define AGAIN_NS                               10000000ull
#define AGAIN_FACT_NS                          100000000ull

/* From a fact to the failure that it explains; from one that silenced a peer to the last retry. */
#define DETAIL_NS                              10000000ull
#define SILENCE_NS                             30000000000ull

/* A program that tries a call so often, and goes on trying, hangs. */
#define HAMMERED                               1000

/*
 * Waiting for another thread: turns of a loop, then naps, of which a call that fails takes fewer
 * than the end of the program.
 */
#define PATIENCE                               200
#define NAP_NS                                 100000
#define NAPS_CALL                              200
#define NAPS_EXIT                              20000

#define NOBODY                                 (-1)

#define ONE_ROW(code, name, text, cause, cure) +1
enum { REASONS = 1 VB_REASONS(ONE_ROW) };

static struct {
	_Atomic uintptr_t holder; /* the thread that is changing this; 0: none */
	_Atomic pid_t pid;        /* whose failures these are; NOBODY: it is being changed */
	uint64_t kept;            /* the number of the last record */
	uint64_t in_ring;
	uint64_t last_ns[VB_FAILURE_KINDS][REASONS];
	struct vb_failures summary;
	struct vb_failure_record silence; /* the last fact by which a peer may not have answered */
	_Atomic bool present;             /* as in the summary */
	struct vb_journal journal;
} list;

static enum weight weight_of_fact(enum vb_reason reason)
{
	switch (reason) {
	case VB_REASON_CQ_OVERRUN:
		return FAILURE;
	case VB_REASON_DROP_QKEY:
	case VB_REASON_DROP_PKEY:
	case VB_REASON_DROP_TYPE:
	case VB_REASON_DROP_SOURCE:
	case VB_REASON_DROP_PSN:
	case VB_REASON_DROP_NO_RECEIVE:
	case VB_REASON_DROP_TOO_LONG:
	case VB_REASON_DROP_ACCESS:
	case VB_REASON_DROP_UNREACHABLE:
	case VB_REASON_DROP_ICRC:
	case VB_REASON_PEER_USER:
	case VB_REASON_PEER_VERSION:
	case VB_REASON_DESCRIPTORS_GONE:
	case VB_REASON_DESCRIPTORS_SHORT:
		return TELLING;
	default:
		return BACKGROUND;
	}
}

/*
 * Calls that programs make to find out what a device offers (UCX registers descriptor -1 and asks
 * for more inline data than there is), calls that are to be repeated, and objects that are
 * destroyed in the wrong order at the end.
 */
static enum weight weight_of_call(int err, enum vb_reason reason)
{
	if (err == EOPNOTSUPP || err == ENOSYS || err == EAGAIN || err == EBUSY || err == ENODATA ||
	    err == EBADF)
		return PROBE;
	switch (reason) {
	case VB_REASON_UNSUPPORTED:
	case VB_REASON_QUEUE_FULL:
	case VB_REASON_ARG_LIMIT:
	case VB_REASON_BUSY:
	case VB_REASON_TAG_GONE:
		return PROBE;
	default:
		return FAILURE;
	}
}

static enum weight weight_of(struct vb_failure_origin origin, enum vb_reason reason)
{
	switch (origin.kind) {
	case VB_FAILURE_CALL:
		return weight_of_call(origin.value, reason);
	case VB_FAILURE_COMPLETION:
		if (reason == VB_REASON_FLUSHED || reason == VB_REASON_FLUSHED_LOCAL)
			return IGNORED;
		return reason == VB_REASON_TAG_GONE ? PROBE : FAILURE;
	case VB_FAILURE_REQUEST:
		/* The sender tries again. */
		return reason == VB_REASON_NO_RECEIVE || reason == VB_REASON_NAK_SEQUENCE
			       ? BACKGROUND
			       : FAILURE;
	default:
		return weight_of_fact(reason);
	}
}

/*
 * False: this thread is here already, or another one does not come to an end in so many naps. It
 * may be writing the journal, or have lost its processor.
 */
static bool take(int naps)
{
	const struct timespec nap = {.tv_nsec = NAP_NS};
	uintptr_t self = (uintptr_t)pthread_self();

	for (int i = 0; i < PATIENCE + naps; i++) {
		uintptr_t none = 0;

		if (atomic_compare_exchange_strong(&list.holder, &none, self))
			return true;
		if (none == self)
			return false;
		if (i < PATIENCE)
			vb_pause();
		else
			vb_sys_nanosleep(&nap);
	}
	return false;
}

static void release(void)
{
	atomic_store(&list.holder, 0);
}

/*
 * In a forked child nothing of the parent's counts, and the lock may be held by a thread that does
 * not exist there. False: another thread is at it.
 */
static bool is_ours(void)
{
	pid_t self = getpid();
	pid_t of = atomic_load(&list.pid);

	if (of == self)
		return true;
	if (of == NOBODY || !atomic_compare_exchange_strong(&list.pid, &of, NOBODY))
		return false;
	memset(list.last_ns, 0, sizeof(list.last_ns));
	memset(&list.summary, 0, sizeof(list.summary));
	memset(&list.journal, 0, sizeof(list.journal));
	memset(&list.silence, 0, sizeof(list.silence));
	atomic_store(&list.present, false);
	list.kept = list.in_ring = 0;
	atomic_store(&list.holder, 0);
	atomic_store(&list.pid, self);
	return true;
}

static bool is_due(struct vb_failure_origin origin, enum vb_reason reason)
{
	size_t row = (size_t)(vb_reason_entry(reason) - vb_reason_entry(VB_REASON_NONE));
	uint64_t now = vb_clock_ns();
	uint64_t *last = &list.last_ns[origin.kind][row];

	if (*last && now - *last < (origin.kind == VB_FAILURE_FACT ? AGAIN_FACT_NS : AGAIN_NS))
		return false;
	*last = now;
	return true;
}

static struct vb_failure_record *place_for(enum weight weight)
{
	struct vb_failure_record *slots = list.journal.image.slots;

	if (weight == FAILURE && list.summary.failures < VB_FAILURE_FIRST)
		return &slots[list.summary.failures];
	return &slots[VB_FAILURE_FIRST + list.in_ring++ % (VB_FAILURE_SLOTS - VB_FAILURE_FIRST)];
}

/* The fact of the same reason that was told just before: it has the key and the range. */
static void find_detail(const struct vb_failure_record *failure, struct vb_failure_record *detail)
{
	for (int i = VB_FAILURE_FIRST; i < VB_FAILURE_SLOTS; i++) {
		const struct vb_failure_record *r = &list.journal.image.slots[i];

		if (r->number && r->kind == VB_FAILURE_FACT && r->reason == failure->reason &&
		    failure->when_ns - r->when_ns < DETAIL_NS)
			*detail = *r;
	}
}

/* Facts by which a peer may not have answered. */
static bool explains_silence(uint32_t reason)
{
	switch (reason) {
	case VB_REASON_DROP_UNREACHABLE:
	case VB_REASON_DROP_ICRC:
	case VB_REASON_PEER_USER:
	case VB_REASON_PEER_VERSION:
	case VB_REASON_DESCRIPTORS_SHORT:
	case VB_REASON_DESCRIPTORS_GONE:
		return true;
	default:
		return false;
	}
}

static bool is_silence(uint32_t reason)
{
	return reason == VB_REASON_RETRY_EXCEEDED || reason == VB_REASON_PEER_NO_QP;
}

static bool is_drop(uint32_t reason)
{
	return reason >> 8 == 6;
}

/* Faults of this program or of its peer, not the ordinary end of a peer. */
static bool is_own_fault(const struct vb_failure_record *r)
{
	return r->kind == VB_FAILURE_COMPLETION &&
	       (r->reason >> 8 == 3 || r->reason >> 8 == 4 || r->reason == VB_REASON_NAK_INVALID ||
		r->reason == VB_REASON_NAK_ACCESS || r->reason == VB_REASON_NAK_OPERATION ||
		r->reason == VB_REASON_RNR_EXCEEDED);
}

static bool is_better_first(const struct vb_failure_record *r)
{
	const struct vb_failure_record *first = &list.summary.first;

	/* A failed completion has more to say than a refused call, which may have been a probe. */
	return !first->number || (first->kind == VB_FAILURE_CALL && r->kind != VB_FAILURE_CALL);
}

static void sum_up(const struct vb_failure_record *r, enum weight weight)
{
	struct vb_failures *s = &list.summary;

	if (weight == PROBE)
		s->probe = *r;
	if (r->kind == VB_FAILURE_FACT && is_drop(r->reason))
		s->drop = *r;
	if (explains_silence(r->reason))
		list.silence = *r;
	if (weight != FAILURE)
		return;
	s->failures++;
	if (is_own_fault(r))
		atomic_store(&list.present, true);
	if (is_better_first(r)) {
		s->first = *r;
		memset(&s->detail, 0, sizeof(s->detail));
		find_detail(r, &s->detail);
		if (!s->detail.number && is_silence(r->reason) &&
		    r->when_ns - list.silence.when_ns < SILENCE_NS)
			s->detail = list.silence;
	} else if (r->reason != s->first.reason) {
		s->last = *r;
	}
}

static uint64_t real_time(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

static void keep(struct vb_failure_origin origin, enum weight weight, enum vb_reason reason,
		 uint64_t count, const char *fmt, va_list ap)
{
	struct vb_failure_record *r = place_for(weight);

	memset(r, 0, sizeof(*r));
	r->number = ++list.kept;
	r->when_ns = real_time();
	r->count = count;
	r->reason = reason;
	r->kind = (uint16_t)origin.kind;
	r->value = (uint16_t)origin.value;
	r->probe = weight == PROBE;
	if (vsnprintf(r->text, sizeof(r->text), fmt, ap) < 0)
		r->text[0] = '\0';
	sum_up(r, weight);
	vb_journal_changed(&list.journal, (unsigned int)(r - list.journal.image.slots),
			   weight == FAILURE || weight == TELLING || count >= HAMMERED);
}

void vb_failure_add(struct vb_failure_origin origin, enum vb_reason reason, uint64_t count,
		    const char *fmt, va_list ap)
{
	enum weight weight = weight_of(origin, reason);
	int saved = errno;

	if (weight == IGNORED)
		return;
	if (is_ours() && take(NAPS_CALL)) {
		if (is_due(origin, reason))
			keep(origin, weight, reason, count, fmt, ap);
		release();
	}
	errno = saved;
}

void vb_failures_past(void)
{
	atomic_store_explicit(&list.present, false, memory_order_relaxed);
}

bool vb_failures_get(struct vb_failures *failures)
{
	if (list.pid != getpid() || !take(NAPS_EXIT))
		return false;
	*failures = list.summary;
	failures->present = atomic_load(&list.present);
	failures->journal = list.journal.made && !list.journal.given_up;
	release();
	return true;
}

static void at_exit(int status, void *unused)
{
	(void)unused;
	vb_failure_report(status);
	if (list.pid == getpid() && take(NAPS_EXIT)) {
		vb_journal_ended(&list.journal, status);
		release();
	}
}

/*
 * Handlers are called in the reverse order: this one, registered when the library is loaded, after
 * those of the program, in which calls may still fail.
 */
__attribute__((constructor)) static void setup(void)
{
	const char *text = secure_getenv("VERBATIM_REPORT");

	if (!text || vb_log_is_silenced())
		return;
	if (!strcmp(text, "1"))
		vb_report = VB_REPORT_FAILED;
	else if (!strcmp(text, "2"))
		vb_report = VB_REPORT_ALWAYS;
	atomic_store(&list.pid, getpid());
	if (vb_report != VB_REPORT_OFF && on_exit(at_exit, NULL))
		vb_report = VB_REPORT_OFF;
	vb_failure_report_prepare();
}
