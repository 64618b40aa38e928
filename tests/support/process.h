/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Child processes of a test: started with a socket pair, waited for with a
 * deadline, killed by pid, never left behind.
 *
 * Children are forked, so start them before this process opens a device,
 * unless the fork itself is what is tested. A child dies with its parent
 * (PR_SET_PDEATHSIG), and a process that ends kills the children it still has.
 * All functions end the test on failure. Not thread-safe.
 */
#ifndef TESTS_SUPPORT_PROCESS_H
#define TESTS_SUPPORT_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { PROCESS_MAX = 256, PROCESS_USER = 65532, PROCESS_PATIENCE_MS = 30000 };

/* One child: its pid (0 once reaped) and our end of the socket pair. */
struct process {
	pid_t pid;
	int sock;
};

/* What a child runs; sock is its end of the pair, the result its exit status. */
typedef int (*process_main)(int sock, void *argument);

void process_start(struct process *process, process_main run, void *argument);

/*
 * Two children whose socks lead to each other instead of to this process
 * (whose own ends are -1): it only waits for them.
 */
void process_start_pair(struct process *a, process_main run_a, struct process *b,
			process_main run_b, void *argument);

/* Becomes an ordinary user when root; a process may not come back from it. */
void process_drop_root(void);

/* Registers a pid started by other means (clone, fork in a test) for clean-up. */
void process_adopt(pid_t pid);

/* SIGKILL and reap an adopted pid. */
void process_reap(pid_t pid);

/* Fails if a child has ended otherwise than with success and was not waited for yet. */
void processes_check(void);

/*
 * Waits for the end and returns the wait status. Fails after timeout_ms, and at
 * once when another child ended badly.
 */
int process_wait(struct process *process, int timeout_ms);

/* Waits and demands exit status 0; a child that skipped makes the caller skip. */
void process_expect_success(struct process *process, int timeout_ms);

/* Zeroed memory that this process and the children started later share; never freed. */
void *memory_shared(size_t size);

/* SIGSTOP and wait until every thread stands; SIGCONT. */
void process_stop(struct process *process);
void process_continue(struct process *process);

/* SIGKILL and reap; nothing happens when it is gone already. */
void process_kill(struct process *process);

/* Whole messages over the pair; receiving fails after PROCESS_PATIENCE_MS or at the peer's end. */
void message_send(int sock, const void *data, size_t length);
void message_receive(int sock, void *data, size_t length);
/* False when nothing came in time or the peer is gone. */
bool message_try_receive(int sock, void *data, size_t length, int timeout_ms);

/* Passes one message of this length from each of two children to the other. */
void message_relay(int a, int b, size_t length);

/* Meets the other side: both call it, both go on. */
void message_meet(int sock);

/* Sends `mine`, receives `theirs`: the exchange of connection data. */
void message_swap(int sock, const void *mine, void *theirs, size_t length);

/* Passes a descriptor (SCM_RIGHTS); whoever receives it has a new one, closed on exec. */
void descriptor_send(int sock, int fd);
int descriptor_receive(int sock);

#endif
