/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A specification for the Container Device Interface: what a container engine (Docker from 25 on,
 * Podman, containerd, CRI-O) adds to a container that asks for `verbatim/hca=NAME`.
 */
#ifndef TOOLS_VIEW_CDI_H
#define TOOLS_VIEW_CDI_H

#include <stdio.h>

/*
 * Writes the specification. Devices: each one of the view in `dir`; `all`, which is all of them;
 * and `run`, which adds the program and its libraries alone, for `verbatim run` in a container that
 * has interfaces of its own. 0, or -errno with view_why().
 */
int cdi_write(FILE *to, const char *dir);

#endif
