/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Writing a tree of small files: each call says what is to be there. What is there already is left
 * alone; what differs is made beside and renamed into place. In a directory that is new itself files
 * are made at once, so name all files of a directory one after the other, and what leads programs
 * there last. tree_sweep() then removes what no call has named.
 *
 * Paths are relative to the top. After a failure every call returns that error, and view_why() has
 * the sentence.
 */
#ifndef TOOLS_VIEW_TREE_H
#define TOOLS_VIEW_TREE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

struct tree {
	int top;      /* descriptor of the directory */
	int error;    /* the first one, negative */
	char **named; /* paths that are to stay */
	size_t count; /* of them */
	bool sorted;  /* `named` is in order */
	bool changed; /* something was made, replaced or removed */
	unsigned int temporaries;
	char latest[PATH_MAX]; /* the directory that was named last */
	bool latest_new;       /* it was made by this tree: nobody has looked into it before */
};

/* The folder at the top in which things are made before they are renamed. */
#define TREE_SCRATCH ".new"

/* `dir` exists, and is where only its owner, the caller, can put something (view/own_place.h). */
int tree_open(struct tree *tree, const char *dir);
void tree_close(struct tree *tree);

/* A directory, with its parents; -EPERM: another user can write to one that is there. */
int tree_dir(struct tree *tree, const char *path);
/* A file with this content, mode 0444; its directory is made if needed. */
int tree_bytes(struct tree *tree, const char *path, const void *content, size_t length);
int tree_file(struct tree *tree, const char *path, const char *content);
/* A file that its owner writes in place: made with this content if it is not there (mode 0644). */
int tree_own_file(struct tree *tree, const char *path, const char *content);
/* A further name of the file `path`, for many files with one content. */
int tree_twin(struct tree *tree, const char *path, const char *other);
int tree_link(struct tree *tree, const char *path, const char *target);

/* Removes what lies below `path` and was not named. */
int tree_sweep(struct tree *tree, const char *path);
/* Removes a file or a whole directory; it may be absent. */
int tree_remove(struct tree *tree, const char *path);

/* The conventional printf, for paths; a result that does not fit is cut, and then not found. */
const char *tree_path(char *buffer, size_t size, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#endif
