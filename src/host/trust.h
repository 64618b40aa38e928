/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * To whom this process gives its memory: to those whom the kernel would let open /proc/PID/mem of it at that moment (ptrace(2), "Ptrace access
 * mode checking"), and to nobody else. docs/security.md says what is decided here and why.
 *
 * The kernel can only be asked by the one who wants something, so the one who gives asks all that the kernel would look at. Where
 * that cannot be seen the answer is no. It is asked anew for each giving; what was given cannot be taken back.
 */
#ifndef VB_HOST_TRUST_H
#define VB_HOST_TRUST_H

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/types.h>

/* Who asks, as the kernel told it. */
struct vb_asker {
	struct ucred opened; /* SO_PEERCRED: who connected, or called listen(2) */
	struct ucred sent;   /* SCM_CREDENTIALS of the message: who sent it */
	int pidfd;           /* of `opened`, got before the message was sent; -1: none */
	bool says_uid;       /* it, too, was started with VERBATIM_TRUST=uid */
};

/* NULL: it may have this process's memory. Otherwise why not, as a sentence. */
const char *vb_trust_obstacle(const struct vb_asker *who);

/*
 * Is it one of this user's processes that could do as much as this one? As vb_trust_obstacle(), but for the question of whether either is
 * dumpable: that is about memory, this about whom to believe.
 */
bool vb_trust_is_kin(const struct vb_asker *who);

/*
 * The same of who connected to this socket (`caller`), or listens at the other end of it, without a message. For tables that such
 * processes share.
 */
bool vb_trust_socket_is_kin(int sock, bool caller);

/* A pidfd of who made the other end, not adopted; -1: it has ended, or is not visible here. */
int vb_trust_pidfd(int sock, pid_t pid);
/* Can one be had of a socket (Linux 6.5), that is of the process which made the other end, whenever it is asked for? */
bool vb_trust_socket_names(int sock);

/*
 * Does this number stand for one user? The overflow user (user_namespaces(7)) stands for all that have no number in our user namespace,
 * unless it is one where all have one.
 */
bool vb_trust_is_one_user(uid_t uid);
/* And is it that of this process? */
bool vb_trust_same_user(uid_t uid);

/* Was this process started with VERBATIM_TRUST=uid? */
bool vb_trust_says_uid(void);

#endif
