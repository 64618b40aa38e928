/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* This program on its own library. */
#ifndef TOOLS_OWN_LIBRARY_H
#define TOOLS_OWN_LIBRARY_H

/*
 * The loader knows $ORIGIN, from which this program finds its library, by /proc/self/exe. Where
 * /proc is not mounted it would load another libibverbs, so the program starts itself again with
 * the library's directory in LD_LIBRARY_PATH.
 */
void own_library_ensure(char **argv);

#endif
