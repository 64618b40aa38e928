/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The processes of other users with which this one shares the UDP port: those that may enter the
 * directory, or are in the group, that VERBATIM_DOMAIN names (docs/architecture/domain.md). Without
 * the variable there are none. What they may do besides is nothing: host/trust.h decides about
 * memory, and no member of a domain is nearer to that for being one.
 *
 * A process is judged by what the kernel says about it (SO_PEERCRED, SO_PEERGROUPS), and by nothing
 * that it says itself. The directory is looked at anew for each question.
 */
#ifndef VB_HOST_DOMAIN_H
#define VB_HOST_DOMAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Whether the variable is set. Its value may be of no use. */
bool vb_domain_is_named(void);

/*
 * Whether the process that made the other end of the socket, by connect(2) or listen(2), is in the
 * domain together with this one. Its ids are those that it had then.
 */
bool vb_domain_has(int sock);

/* NULL: the domain is of use to this process. Otherwise why not, as a sentence in `text`. */
const char *vb_domain_defect(char *text, size_t size);

/* For several such questions at one time: who is in the domain now. */
struct vb_domain {
	bool owner; /* this user is */
	uid_t uid;
	bool members; /* this group is */
	gid_t gid;
};
/* False: nobody is. */
bool vb_domain_read(struct vb_domain *domain);
bool vb_domain_admits(const struct vb_domain *domain, int sock);

#endif
