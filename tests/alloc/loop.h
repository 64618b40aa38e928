/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The loop over failing allocations. A scenario is a life of one process, or of two that speak with
 * each other. It is lived again and again in fresh processes; in the n-th run the n-th allocation
 * that one of them makes, in whatever thread, fails. The loop ends with the n that is not reached.
 *
 * Whatever fails, each call and each request comes to an end in time. A call that is refused says
 * ENOMEM and gives a reason, and a completion with an error has a reason. Then everything can be
 * destroyed, and the same processes live the scenario once more, and nothing is refused.
 */
#ifndef TESTS_ALLOC_LOOP_H
#define TESTS_ALLOC_LOOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <infiniband/verbs.h>

enum {
	SIDES_MOST = 2,
	REQUEST_MS = 5000,
	EVENT_MS = 15000, /* a message of the connection manager may have to be sent again */
};

/* One process in one life. */
struct side {
	int index; /* the first, 0, begins */
	int sock;  /* to the other one; -1: there is none */
	const struct scenario *scenario;
	struct side_end *end;
};

struct scenario {
	const char *name;
	unsigned int sides;
	const char *link;                /* VERBATIM_LINK, or NULL */
	bool (*life)(struct side *side); /* whether everything in it succeeded */
	enum ibv_qp_type type;
	enum ibv_wr_opcode opcode;
	bool warm;  /* the processes have lived it once before */
	bool quiet; /* its calls say an errno and no more, as sockets do */
};

/*
 * Each notes what came of one step, the first of a life that failed; true if it succeeded. call: the
 * errno, 0: success. found: for a call that gives an object.
 */
bool side_call(struct side *side, const char *step, int err);
bool side_found(struct side *side, const char *step, const void *object);
bool side_completion(struct side *side, const char *step, int came, const struct ibv_wc *wc);

/*
 * A connection's event that came instead of the one that was waited for, and its status; -1: none came
 * in time. Says false.
 */
bool side_event(struct side *side, const char *step, int type, int status);
/* What the other side says next, if it says anything yet, is that it has failed. */
bool side_other_failed(const struct side *side);
/*
 * Waits until the descriptor is readable (true), for EVENT_MS at most. The other one may have failed
 * meanwhile, or before: then there is no point in waiting.
 */
bool side_await(struct side *side, const char *step, int fd);

/* Whether no step has failed so far. */
bool side_well(const struct side *side);

/* Whether both sides have come so far without a failure. Each learns what the other one says. */
bool side_both(struct side *side, bool ok, const void *mine, void *theirs, size_t length);

/*
 * Arguments: [STRIDE | all] [NAME]: every n, or every STRIDE-th, of scenarios whose name contains
 * NAME. ALLOC_SHOW=1 in the environment shows what came of each, and the log of a run that failed;
 * ALLOC_N=n tries this one many times. The caller has chosen the network. Returns the exit status.
 */
int loop_main(int argc, char **argv, const struct scenario *scenarios);

#endif
