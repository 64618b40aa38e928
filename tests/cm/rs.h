/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What the tests of rsockets' calls share: listeners and connected pairs in the test's own network. */
#ifndef TESTS_CM_RS_H
#define TESTS_CM_RS_H

#include <rdma/rsocket.h>
#include <stdint.h>

#include "cm.h"

/* A socket that listens on the own address, at a port of its own. */
int rs_listener(const char *address, uint16_t *port);
/* A connected pair: `a` connected, `b` accepted. */
void rs_pair(const char *address, int *a, int *b);
void rs_pair_close(int a, int b);

socklen_t rs_length(const struct sockaddr *addr);
void rs_nonblocking(int fd);

#endif
