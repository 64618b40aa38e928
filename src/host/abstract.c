/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Abstract names: made, called and listed. */
#include "host/abstract.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/un.h>

#include "base/sys.h"
#include "host/descriptor.h"

static socklen_t address_of(struct sockaddr_un *addr, const char *name)
{
	size_t length = strlen(name);

	memset(addr, 0, sizeof(*addr));
	addr->sun_family = AF_UNIX;
	memcpy(addr->sun_path + 1, name, length);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length);
}

static int socket_open(void)
{
	int fd = vb_descriptor_adopt(
		socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));

	return fd < 0 ? -errno : fd;
}

int vb_abstract_listen(const char *name, int queue)
{
	struct sockaddr_un addr;
	int fd = socket_open();

	if (fd < 0)
		return fd;
	socklen_t length = address_of(&addr, name);

	if (bind(fd, (struct sockaddr *)&addr, length) || listen(fd, queue)) {
		int err = -errno;

		vb_descriptor_close(fd);
		return err;
	}
	return fd;
}

int vb_abstract_connect(const char *name, struct ucred *owner)
{
	struct sockaddr_un addr;
	socklen_t length = address_of(&addr, name), size = sizeof(*owner);
	int fd = socket_open();

	if (fd < 0)
		return fd;
	if (vb_sys_connect(fd, (struct sockaddr *)&addr, length) ||
	    getsockopt(fd, SOL_SOCKET, SO_PEERCRED, owner, &size)) {
		int err = -errno;

		vb_descriptor_close(fd);
		return err;
	}
	return fd;
}

/* The text behind the last blank of a line, if it is an abstract name (proc_net_unix(5)). */
static const char *name_in(const char *line)
{
	const char *name = strrchr(line, ' ');

	return name && name[1] == '@' && strlen(name + 2) < VB_ABSTRACT_NAME ? name + 2 : NULL;
}

/* Reads the whole lines of `text`. Returns the rest; NULL: no more names are wanted. */
static char *lines_read(char *text, size_t have, bool (*each)(const char *name, void *arg),
			void *arg)
{
	char *line = text, *end;

	for (; (end = memchr(line, '\n', have - (size_t)(line - text))); line = end + 1) {
		*end = '\0';
		const char *name = name_in(line);

		if (name && !each(name, arg))
			return NULL;
	}
	return line;
}

int vb_abstract_read(bool (*each)(const char *name, void *arg), void *arg)
{
	char text[16384], *rest = text;
	size_t have = 0;
	ssize_t n;
	int fd = vb_sys_open("/proc/net/unix", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	while (rest && (n = vb_sys_read(fd, text + have, sizeof(text) - 1 - have)) > 0) {
		have += (size_t)n;
		text[have] = '\0';
		rest = lines_read(text, have, each, arg);
		if (!rest)
			break;
		have -= (size_t)(rest - text);
		if (have == sizeof(text) - 1) /* no line is so long */
			have = 0;
		memmove(text, rest, have);
	}
	vb_sys_close(fd);
	return rest && n < 0 ? -EIO : 0;
}
