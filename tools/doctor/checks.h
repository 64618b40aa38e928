/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The checks of `verbatim doctor`, in the order in which they are made: each prints what it found
 * (doctor/finding.h).
 */
#ifndef TOOLS_DOCTOR_CHECKS_H
#define TOOLS_DOCTOR_CHECKS_H

#include <stdbool.h>

void check_library(void);      /* that this program itself runs on verbatim */
void check_interfaces(void);   /* network interfaces and their addresses */
void check_kernel(void);       /* system calls, one by one; seccomp */
void check_limits(void);       /* resource limits */
void check_surroundings(void); /* runtime directory, /proc, namespaces, access to memory */
void check_others(void);       /* UDP port 4791, drivers, real adapters */
void check_devices(void);      /* the device list that a program gets */

/* Transfers between two processes. True: all data arrived. */
bool check_transfer(void);

/* A program that is to run: its file, its libraries. */
void check_program(const char *name);

#endif
