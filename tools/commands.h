/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The commands of `verbatim`. Each gets the arguments after its own name and returns the exit
 * status, after it has written what went wrong to standard error.
 */
#ifndef TOOLS_COMMANDS_H
#define TOOLS_COMMANDS_H

int command_run(int argc, char **argv);
int command_devices(int argc, char **argv);
int command_view(int argc, char **argv);
int command_explain(int argc, char **argv);
int command_doctor(int argc, char **argv);

#endif
