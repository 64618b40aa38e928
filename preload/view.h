/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The view: a directory with the files that an adapter would have in /sys and /dev, and the rule
 * which paths mean a file of it.
 *
 * These are inside: /sys/class/infiniband and its sisters, /sys/devices/pci7662:00 (or as the
 * view's PCI domains are named), /sys/bus/pci/devices and /dev/infiniband. An entry that the view
 * has from the machine itself, a link to the real one, is outside: the program opens the real one
 * by its own name.
 *
 * A program knows nothing of the place of the view: what it is told of paths has the names that it
 * would see on a machine with an adapter.
 */
#ifndef PRELOAD_VIEW_H
#define PRELOAD_VIEW_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The state, set once. Without a view (`length` 0) every path passes. */
struct view {
	bool ready;
	size_t length;
	char root[PATH_MAX]; /* canonical, without a slash at the end */
};
extern struct view view;

/* Finds the functions that are replaced and reads VERBATIM_VIEW; the constructor calls it. */
void view_start(void);

/* The first component of a relative path can lead into the view from a directory outside. */
bool view_may_enter(const char *path);

/*
 * Whether a path is surely outside, by its first letters. What is no address of a string goes to
 * the kernel, which answers EFAULT.
 */
static inline bool view_passes(const char *path)
{
	if (!__atomic_load_n(&view.ready, __ATOMIC_ACQUIRE))
		view_start();
	if (!view.length || (uintptr_t)path + 4096 < 8192)
		return true;
	if (path[0] != '/')
		return !view_may_enter(path);
	switch (path[1]) {
	case 's':
		return path[2] != 'y' || path[3] != 's';
	case 'd':
		return path[2] != 'e' || path[3] != 'v';
	case '/':
	case '.':
		return false;
	default:
		return true;
	}
}

/*
 * The path to use instead: one in the view, written to `room`; or `path` itself if it is outside.
 * `dir` is what a relative path is relative to. Leaves errno as it was.
 */
const char *view_path(int dir, const char *path, char room[PATH_MAX]);

/*
 * How much of the front of a path that the kernel gave is the place of the view: 0 if it does not
 * lie in there. `size`: the length of the path.
 */
size_t view_front(const char *path, size_t size);

/* Cuts the place of the view off the front of a string. */
void view_cut(char *path);

#endif
