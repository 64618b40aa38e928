/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The port between hosts belongs to one user (SO_REUSEPORT). Processes of users that agree
 * (host/domain.h) share it: a process that holds sockets of its own user gives a socket to a process
 * of another user that asks. docs/architecture/domain.md says why a socket, and not packets.
 *
 * A process that gives listens on the abstract name "verbatim/<uid>/port<4|6>/<id>". Whoever
 * connects is judged by the kernel's word alone; nothing is read from the connection.
 */
#ifndef VB_REMOTE_PORT_H
#define VB_REMOTE_PORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

struct vb_port_answer {
	uid_t holder;  /* the user who has the port */
	bool silent;   /* a process of that user has not answered in time */
	char why[256]; /* why there is no socket, as a sentence */
};

/* A question that was not answered in time. All zero: there is none. */
struct vb_port_question {
	int sock;
	struct ucred who;
};

/* How long an answer is waited for. */
struct vb_port_patience {
	uint64_t wait_ns;
	uint64_t work_ns; /* in all, if the process that is asked is at work (host/standstill.h) */
};

/*
 * Asks the processes that hold the port for a socket, as the one of this process from now on. An
 * answer that comes later is taken by the next call with this question. Returns an adopted
 * descriptor, or -errno. Without any lock; a question belongs to one thread.
 */
int vb_port_ask(bool ipv4, const struct vb_port_patience *patience,
		struct vb_port_question *question, uint32_t *buffer, struct vb_port_answer *answer);
/* No answer is waited for any more. */
void vb_port_ask_end(struct vb_port_question *question);

/*
 * Another user has the port: what can be done about it, as a sentence; empty: nothing that this
 * room knows of.
 */
void vb_port_cure(bool ipv4, char *text, size_t size);

/*
 * This process has a socket of its own user, and gives others to processes of its domain, if it has
 * one, until the socket is closed. Under the link's lock.
 */
void vb_port_give_begin(bool ipv4);
void vb_port_give_end(bool ipv4);
/* A process has called. Progress thread. */
void vb_port_give_ready(void);

#endif
