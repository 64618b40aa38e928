/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Child processes of a test: started with a socket pair, waited for with a deadline, killed by pid,
 * never left behind.
 *
 * Children are forked, so start them before this process opens a device, unless the fork itself is
 * tested. A child dies with its parent (PR_SET_PDEATHSIG), and a process that ends kills the
 * children that it still has. All functions end the test on failure. Not thread-safe.
 */
#ifndef TESTS_SUPPORT_PROCESS_H
#define TESTS_SUPPORT_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { PROCESS_MAX = 256, PROCESS_USER = 65532, PROCESS_PATIENCE_MS = 30000 };

/* One child: its pid (0 once reaped) and this side's end of the socket pair. */
struct process {
	pid_t pid;
	int sock;
};

/* The function of a child. `sock` is its end of the pair; its result is the exit status. */
typedef int (*process_main)(int sock, void *argument);

void process_start(struct process *process, process_main run, void *argument);

/*
 * Starts two children whose sockets lead to each other instead of to this process (whose own ends
 * are -1). This process only waits for them.
 */
void process_start_pair(struct process *a, process_main run_a, struct process *b,
			process_main run_b, void *argument);

/* Changes from root to an ordinary user; the process may be unable to change back. */
void process_drop_root(void);

/* Registers a pid that was started by other means (clone, fork in a test) for clean-up. */
void process_adopt(pid_t pid);

/* Kills (SIGKILL) and reaps an adopted pid. */
void process_reap(pid_t pid);

/* Fails if a child that was not waited for has ended otherwise than with success. */
void processes_check(void);

/*
 * Waits for the end and returns the wait status. Fails after timeout_ms, and at once when another
 * child has ended badly.
 */
int process_wait(struct process *process, int timeout_ms);

/* Waits and demands exit status 0. When the child skipped, the caller skips as well. */
void process_expect_success(struct process *process, int timeout_ms);

/* Zeroed memory that this process shares with children that are started later; never freed. */
void *memory_shared(size_t size);

/* SIGSTOP, and wait until every thread has stopped; SIGCONT. */
void process_stop(struct process *process);
void process_continue(struct process *process);

/*
 * Waits until the library has been given the process's memory: that is a descriptor of its mem file
 * (proc_pid_mem(5)) here. Then one-sided requests need nothing of the process any more.
 */
void process_await_memory(const struct process *process);

/* SIGKILL and reap; does nothing when the child is already gone. */
void process_kill(struct process *process);

/*
 * Whole messages over the pair. Receiving fails after PROCESS_PATIENCE_MS or when the peer has
 * ended.
 */
void message_send(int sock, const void *data, size_t length);
void message_receive(int sock, void *data, size_t length);
/* False when no message came in time or the peer has ended. */
bool message_try_receive(int sock, void *data, size_t length, int timeout_ms);

/* A word without contents, and the wait for one. */
void message_say(int sock);
void message_hear(int sock);

/* Passes one message of this length from each of two children to the other one. */
void message_relay(int a, int b, size_t length);

/* Returns when both sides have called it. */
void message_meet(int sock);

/* Sends `mine`, receives `theirs`: the exchange of connection data. */
void message_swap(int sock, const void *mine, void *theirs, size_t length);

/* Passes a descriptor (SCM_RIGHTS). The receiver gets a new descriptor, closed on exec. */
void descriptor_send(int sock, int fd);
int descriptor_receive(int sock);

#endif
