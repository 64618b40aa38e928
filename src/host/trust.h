/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Which processes are the user's own, with the same rights: kin, which are believed. And what can be
 * seen of the reasons for which the kernel does not let a process open this one's memory. The kernel
 * itself decides about memory (host/give.c). docs/security.md says what is decided here and why.
 */
#ifndef VB_HOST_TRUST_H
#define VB_HOST_TRUST_H

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/types.h>

/* The process that asks, as the kernel describes it. */
struct vb_asker {
	struct ucred opened; /* SO_PEERCRED: of the process that connected, or called listen(2) */
	struct ucred sent;   /* SCM_CREDENTIALS of the message: its sender */
	int pidfd;           /* of `opened`, got before the message was sent; -1: none */
	bool says_uid;       /* the other process, too, was started with VERBATIM_TRUST=uid */
};

/*
 * NULL: nothing that can be seen keeps the process from this one's memory. Otherwise a sentence.
 * *by_uid: that is because one of the two cannot name the other, and both were started with
 * VERBATIM_TRUST=uid.
 */
const char *vb_trust_obstacle(const struct vb_asker *who, bool *by_uid);
/* Whether the system lets processes attach only to those that agree (tracer.c). */
bool vb_trust_asks_tracee(void);

/*
 * Whether this is one of the user's processes that could do as much as this one: it has the same ids,
 * the capabilities of this one, and the same user namespace, in which they mean the same. Whether
 * this process is dumpable does not count: that protects memory, and this decides which process is
 * believed.
 */
bool vb_trust_is_kin(const struct vb_asker *who);

/*
 * The same for the process that connected to this socket (`caller`), or that listens at the other
 * end of it, without a message. For tables that such processes share.
 */
bool vb_trust_socket_is_kin(int sock, bool caller);

/* A pidfd of the maker of the other end, not adopted. -1: it has ended, or is not visible here. */
int vb_trust_pidfd(int sock, pid_t pid);
/*
 * Whether a socket gives a pidfd (Linux 6.5) of the process that made the other end, at any later
 * time.
 */
bool vb_trust_socket_names(int sock);

/*
 * Whether this number stands for one user. The overflow user (user_namespaces(7)) stands for all
 * users without a number in this user namespace, unless all have one.
 */
bool vb_trust_is_one_user(uid_t uid);
/* Whether it is, besides, the user of this process. */
bool vb_trust_same_user(uid_t uid);
/* Whether this number stands for one group; the overflow group's never does. */
bool vb_trust_is_one_group(gid_t gid);

/* Whether this process was started with VERBATIM_TRUST=uid. */
bool vb_trust_says_uid(void);

#endif
