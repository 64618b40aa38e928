/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Descriptors that programs see (events, the command descriptor): where they lie, and whether they
 * still stand for the same files. They are not in the table of host/descriptor.h, because a forked
 * child keeps them open.
 */
#ifndef VB_PROCESS_DESCRIPTOR_H
#define VB_PROCESS_DESCRIPTOR_H

#include <stdbool.h>
#include <sys/types.h>

/*
 * Moves a descriptor out of the low numbers (it stays below 1024 where that is possible, for
 * select(2)), with O_CLOEXEC. A program that closes every descriptor that it does not know, and
 * then opens files, gets low numbers; an event must not be written into such a file. Returns the
 * new number, or `fd` itself if there is no room above.
 */
int vb_descriptor_move_up(int fd);

/* Identifies an open file. */
struct vb_file_id {
	dev_t device;
	ino_t inode;
	/*
	 * An eventfd's own number in the system (proc(5), fdinfo), because all eventfds share an
	 * inode; -1: none.
	 */
	long event;
};

/* Marks an eventfd, without changing what the program may do with it. */
struct vb_file_id vb_file_id_of(int fd);

/* Whether the number still stands for the file. One or two light system calls. */
bool vb_file_is(int fd, const struct vb_file_id *id);

#endif
