/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Sockets behind descriptors, for the files of this library. */
#ifndef PRELOAD_RSOCKET_OPEN_H
#define PRELOAD_RSOCKET_OPEN_H

#include "fds.h"

/* The options of the environment. */
void open_configure(int behind);
/* In fork mode: makes a socket of the library out of one that is connected. What the number is then. */
struct fd open_changed(int fd);
/* As fd_get(), after a socket of fork mode was changed. */
struct fd open_get(int fd);

#endif
