/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The ports of ids. They are numbers of a network namespace and a port space, and have nothing to do
 * with those of sockets. cm/port_rule.h says which ids exclude each other.
 */
#ifndef VB_RDMACM_PORT_H
#define VB_RDMACM_PORT_H

#include <stdint.h>
#include <sys/socket.h>

struct vb_cma_id;

/*
 * Takes the port of `addr` for the id, or any if it is 0, and writes it into `addr`. `remote` is
 * where the id is to be connected (NULL: not known). With the id's lock. -EACCES: a port below 1024;
 * -EADDRINUSE, -EADDRNOTAVAIL: it is another's; -errno.
 */
int vb_cma_port_take(struct vb_cma_id *id, struct sockaddr *addr, const struct sockaddr *remote);
/* Requests for the port come to the id: the same errors. With the id's lock. */
int vb_cma_port_listen(struct vb_cma_id *id);
/* The destination or an option of the id has changed. With the id's lock. */
int vb_cma_port_change(struct vb_cma_id *id, const struct sockaddr *remote);
/* Gives the port back, if there is one. */
void vb_cma_port_release(struct vb_cma_id *id);

#endif
