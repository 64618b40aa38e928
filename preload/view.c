/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Which directory is the view, and which paths lead into it. */
#include "view.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "hook.h"
#include "view/peer_memory.h"

struct view view;

/* The longest directory that is looked for inside of the machine's /sys. */
enum { PLACE = 96 };

/* What a path in /sys or /dev is, as far as it has been read. */
enum node { NODE_OUTSIDE, NODE_ABOVE, NODE_INSIDE };

static const char *const above[] = {"",
				    "/sys",
				    "/sys/class",
				    "/sys/devices",
				    "/sys/bus",
				    "/sys/bus/pci",
				    "/sys/module",
				    "/sys/kernel",
				    "/sys/kernel/mm",
				    "/dev"};
static const char *const lists[] = {"/sys/class/infiniband", "/sys/class/infiniband_verbs",
				    "/sys/bus/pci/devices", "/dev/infiniband"};
/* No view has these, and the machine's are not shown. */
static const char *const hidden[] = {PEER_MEMORY};
/* Names of which the view says whether it has them: its PCI domains, further classes. */
static const char *const beginnings[] = {"/sys/devices/pci76", "/sys/class/infiniband_"};

/* The part of a path that was read: all its components but `..` are directories, no links. */
struct place {
	char text[PLACE];
	size_t length;
	bool left; /* by `..` out of a directory that may be in the view alone */
};

static bool begins(const char *text, const char *with)
{
	return !strncmp(text, with, strlen(with));
}

/* a, b and c one after the other in `room`; false where they do not fit. */
static bool join(char room[PATH_MAX], const char *a, const char *b, const char *c)
{
	const char *part[] = {a, b, c};
	size_t at = 0;

	for (size_t i = 0; i < 3; i++) {
		size_t length = strlen(part[i]);

		if (at + length >= PATH_MAX)
			return false;
		memmove(room + at, part[i], length + 1);
		at += length;
	}
	return true;
}

/*
 * Whether a path means the view's file. A link that leads out of the view stands for the machine's
 * own file, and what the view has not may be of the machine. Uses the caller's room: a signal
 * handler may have a small stack.
 */
static bool view_has(const char *file, char room[PATH_MAX])
{
	char link[sizeof("/dev/infiniband/")] = "";
	ssize_t length;

	if (!join(room, view.root, file, ""))
		return false;
	length = syscall(SYS_readlinkat, AT_FDCWD, room, link, sizeof(link) - 1);
	if (length >= 0)
		return !begins(link, "/sys/") && !begins(link, "/dev/infiniband/");
	if (errno == ENOENT) /* looked for where it is missing */
		return syscall(SYS_faccessat, AT_FDCWD, file, F_OK) != 0;
	/* There, and no link. Another user, which the program may have become, cannot enter. */
	return errno == EINVAL;
}

static bool is_hidden(const char *text)
{
	for (size_t i = 0; i < sizeof(hidden) / sizeof(hidden[0]); i++) {
		if (!strcmp(text, hidden[i]))
			return true;
	}
	return false;
}

static enum node node_of(const char *text)
{
	if (is_hidden(text))
		return NODE_INSIDE;
	for (size_t i = 0; i < sizeof(above) / sizeof(above[0]); i++) {
		if (!strcmp(text, above[i]))
			return NODE_ABOVE;
	}
	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		if (!strcmp(text, lists[i]))
			return NODE_INSIDE;
	}
	for (size_t i = 0; i < sizeof(beginnings) / sizeof(beginnings[0]); i++) {
		if (begins(text, beginnings[i]))
			return NODE_INSIDE;
	}
	return NODE_OUTSIDE;
}

static bool place_enter(struct place *place, const char *name, size_t length)
{
	if (place->length + length + 2 > sizeof(place->text))
		return false;
	place->text[place->length++] = '/';
	memcpy(place->text + place->length, name, length);
	place->length += length;
	place->text[place->length] = '\0';
	return true;
}

static void place_leave(struct place *place)
{
	while (place->length && place->text[--place->length] != '/')
		;
	place->text[place->length] = '\0';
}

/* The next component that is not "."; `*length` is 0 at the end of the path. */
static const char *component(const char *path, size_t *length)
{
	for (;;) {
		while (*path == '/')
			path++;
		*length = strcspn(path, "/");
		if (*length != 1 || *path != '.')
			return path;
		path++;
	}
}

static bool is_parent(const char *name, size_t length)
{
	return length == 2 && name[0] == '.' && name[1] == '.';
}

/* A path outside: as it is, unless it went through a directory that may be in the view alone. */
static const char *outside(const struct place *place, const char *rest, const char *path,
			   char room[PATH_MAX])
{
	if (!place->left || !join(room, place->text, "/", rest))
		return path;
	return room;
}

/* The path of a file in the view, or NULL; `rest`: what comes after the place. */
static const char *inside(struct place *place, const char *rest, char room[PATH_MAX])
{
	char file[PLACE + NAME_MAX + 2];
	size_t length;
	const char *name = component(rest, &length);

	memcpy(file, place->text, place->length + 1);
	if (length > NAME_MAX)
		return NULL;
	if (length) {
		file[place->length] = '/';
		memcpy(file + place->length + 1, name, length);
		file[place->length + 1 + length] = '\0';
	}
	if (!is_hidden(place->text) && !view_has(file, room))
		return NULL;
	return join(room, view.root, place->text, rest) ? room : NULL;
}

static const char *from_root(const char *path, char room[PATH_MAX])
{
	struct place place = {.length = 0};
	enum node node = NODE_ABOVE;
	size_t length;

	for (const char *name = component(path, &length);;
	     name = component(name + length, &length)) {
		if (is_parent(name, length)) {
			place.left |= node == NODE_INSIDE;
			place_leave(&place);
		} else if (node == NODE_INSIDE) {
			const char *rest = path + (name - path);
			const char *use;

			/* The slashes belong to what comes after. */
			while (rest > path && rest[-1] == '/')
				rest--;
			use = inside(&place, rest, room);
			return use ? use : outside(&place, name, path, room);
		} else if (!length || !place_enter(&place, name, length)) {
			return outside(&place, name, path, room);
		}
		node = node_of(place.text);
		if (node == NODE_OUTSIDE) {
			place_leave(&place);
			return outside(&place, name, path, room);
		}
	}
}

/* The canonical path of the directory that a relative path starts from; 0: it cannot be known. */
static size_t base_of(int dir, char base[PATH_MAX])
{
	char link[sizeof("/proc/self/fd/") + 3 * sizeof(int)] = "/proc/self/fd/";
	char *digit = link + sizeof(link) - 1;
	char *at = link + strlen("/proc/self/fd/");
	long length;

	if (dir == AT_FDCWD) {
		length = syscall(SYS_getcwd, base, PATH_MAX);
		return length > 1 && base[0] == '/' ? (size_t)length - 1 : 0;
	}
	if (dir < 0)
		return 0;
	*digit = '\0';
	do
		*--digit = (char)('0' + dir % 10);
	while (dir /= 10);
	memmove(at, digit, strlen(digit) + 1);
	length = syscall(SYS_readlinkat, AT_FDCWD, link, base, PATH_MAX - 1);
	if (length <= 0 || base[0] != '/')
		return 0;
	base[length] = '\0';
	return (size_t)length;
}

/*
 * Takes the leading `..` of a relative path off, and as many directories off the base, which the
 * kernel gave and which thus has no links. Returns what is left of the path.
 */
static const char *climb(char *base, const char *path)
{
	size_t length;

	for (path = component(path, &length); is_parent(path, length);
	     path = component(path + length, &length)) {
		char *slash = strrchr(base, '/');

		if (slash)
			*slash = '\0';
	}
	return path;
}

static const char *from_dir(int dir, const char *path, char room[PATH_MAX])
{
	char base[PATH_MAX];
	size_t size = base_of(dir, base);
	size_t front = view_front(base, size);
	const char *rest;
	const char *use;
	size_t length;

	if (!size)
		return path;
	/* The kernel finds what is below a directory of the view. */
	rest = component(path, &length);
	if (front && !is_parent(rest, length))
		return path;
	if (!strcmp(base, "/"))
		base[0] = '\0';
	rest = climb(base + front, rest);
	if (!join(base, base, *rest ? "/" : "", rest))
		return path;
	use = from_root(base + front, room);
	if (use != base + front)
		return use;
	if (!front)
		return path;
	return join(room, *use ? use : "/", "", "") ? room : path;
}

bool view_may_enter(const char *path)
{
	static const char *const names[] = {"sys",         "class",
					    "devices",     "bus",
					    "pci",         "dev",
					    "infiniband",  "infiniband_verbs",
					    "module",      "nvidia_peermem",
					    "nv_peer_mem", "kernel",
					    "mm",          "memory_peers"};
	size_t length;
	const char *name;

	if (!strchr("./scdbpimnk", *path) || !*path)
		return false;
	name = component(path, &length);
	if (is_parent(name, length) || begins(name, "pci76"))
		return true;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (length == strlen(names[i]) && !memcmp(name, names[i], length))
			return true;
	}
	return false;
}

const char *view_path(int dir, const char *path, char room[PATH_MAX])
{
	int before = errno;
	const char *use = *path == '/' ? from_root(path, room) : from_dir(dir, path, room);

	errno = before;
	return use;
}

/* Whether a canonical path of the view, its front cut off, is a name that programs see. */
static bool is_shown(const char *path, size_t size)
{
	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		size_t length = strlen(lists[i]);

		if (size >= length && !memcmp(path, lists[i], length) &&
		    (size == length || path[length] == '/'))
			return true;
	}
	for (size_t i = 0; i < sizeof(beginnings) / sizeof(beginnings[0]); i++) {
		size_t length = strlen(beginnings[i]);

		if (size >= length && !memcmp(path, beginnings[i], length))
			return true;
	}
	return false;
}

size_t view_front(const char *path, size_t size)
{
	if (!view.length || size <= view.length || memcmp(path, view.root, view.length) != 0)
		return 0;
	return is_shown(path + view.length, size - view.length) ? view.length : 0;
}

void view_cut(char *path)
{
	size_t size = strlen(path);
	size_t front = view_front(path, size);

	if (front)
		memmove(path, path + front, size - front + 1);
}

/* A directory of this user that nobody else can change. */
static bool is_own(int fd)
{
	struct stat st;

	return !syscall(SYS_fstat, fd, &st) && S_ISDIR(st.st_mode) && st.st_uid == geteuid() &&
	       !(st.st_mode & (S_IWGRP | S_IWOTH));
}

static void read_environment(void)
{
	const char *set = secure_getenv("VERBATIM_VIEW");
	char root[PATH_MAX];
	size_t size;
	long fd;

	if (!set || *set != '/')
		return;
	fd = syscall(SYS_openat, AT_FDCWD, set, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return;
	size = is_own((int)fd) ? base_of((int)fd, root) : 0;
	/* Without /proc the path is taken to be what it was made as: canonical. */
	if (!size && is_own((int)fd) && join(root, set, "", ""))
		size = strlen(root);
	syscall(SYS_close, fd);
	if (size < 2)
		return;
	memcpy(view.root, root, size + 1);
	view.length = size;
}

void view_start(void)
{
	int before = errno;

	if (hook_find_all() && !view.ready) {
		read_environment();
		__atomic_store_n(&view.ready, true, __ATOMIC_RELEASE);
	}
	errno = before;
}

/* Before the constructors of everything that is not preloaded. */
__attribute__((constructor(101))) static void view_constructed(void)
{
	view_start();
}
