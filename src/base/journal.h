/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The journal of this process: the file that `verbatim explain PID` reads while the process lives
 * and for some time afterwards (base/failure_record.h). It is opened for each change: no descriptor
 * is kept that the program could close, and no memory is mapped that could lose its file.
 */
#ifndef VB_BASE_JOURNAL_H
#define VB_BASE_JOURNAL_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/failure_record.h"

struct vb_journal {
	struct {
		struct vb_journal_header header;
		struct vb_failure_record slots[VB_FAILURE_SLOTS];
	} image;   /* what the file holds */
	bool made; /* the file is there */
	bool given_up;
	dev_t device; /* of the file that was made */
	ino_t inode;
	char path[512];
};

/* One slot of the image was written. `make`: a reason to make the file, if it is not there yet. */
void vb_journal_changed(struct vb_journal *j, unsigned int slot, bool make);

/* The process exits with this status. */
void vb_journal_ended(struct vb_journal *j, int status);

/*
 * Removes journals of processes that have ended from the directory: those older than a day, and
 * earlier ones when there are many.
 */
void vb_journal_sweep(const char *folder);

#endif
