/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Where descriptors of the device lie in the descriptor table of the program. */
#ifndef VB_DEVICE_DESCRIPTOR_H
#define VB_DEVICE_DESCRIPTOR_H

/*
 * Moves a descriptor out of the low numbers (it stays below 1024 where that is possible, for select(2)), with O_CLOEXEC.
 * A program that closes every descriptor it does not know and then opens files gets low numbers again: an event must
 * not be written into such a file. Returns the new number, or `fd` itself if there is no room above.
 */
int vb_descriptor_move_up(int fd);

#endif
