/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Claims on packets of other hosts: names made, read and watched. */
#include "host/claim.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/sys.h"
#include "host/descriptor.h"
#include "host/trust.h"

#define PREFIX     "verbatim/%u/to/"
#define BASE       64u
#define DIGITS     3u   /* of base 64: a block has 14 bits */
#define PLACE_MOST 4095 /* the largest plausible place */

static const char digits[BASE + 1] =
	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+-";

/*
 * The user whose group of sockets this process is in: the user at the time of the first question,
 * as with its sockets. Kept together with the process id, because a forked child begins anew.
 */
static uid_t group_user(void)
{
	static _Atomic uint64_t known;
	uint64_t k = atomic_load(&known), pid = (uint64_t)getpid() << 32;

	if ((k ^ pid) >> 32) {
		k = pid | geteuid();
		atomic_store(&known, k);
	}
	return (uid_t)k;
}

static void name_make(struct vb_claim *c)
{
	int n = snprintf(c->name, sizeof(c->name), PREFIX "%08x.%x/%d.%d/", group_user(), c->id,
			 c->serial, c->place[0], c->place[1]);

	for (uint32_t i = 0; i < c->blocks; i++) {
		for (uint32_t shift = 0; shift < 6 * DIGITS; shift += 6)
			c->name[n++] = digits[c->block[i] >> shift & (BASE - 1)];
	}
	c->name[n] = '\0';
}

static bool blocks_parse(struct vb_claim *c, const char *text)
{
	c->blocks = 0;
	for (; text[0]; text += DIGITS) {
		uint32_t block = 0;

		for (uint32_t i = 0; i < DIGITS; i++) {
			const char *digit = text[i] ? strchr(digits, text[i]) : NULL;

			if (!digit)
				return false;
			block |= (uint32_t)(digit - digits) << 6 * i;
		}
		if (c->blocks == VB_CLAIM_BLOCKS || block >> 14)
			return false;
		c->block[c->blocks++] = block;
	}
	return true;
}

static bool plausible(int place)
{
	return place >= -1 && place <= PLACE_MOST;
}

/* Reads the name of a claim of this user. False: the name is none. */
static bool name_parse(struct vb_claim *c, const char *name)
{
	unsigned int uid;
	int at = 0;

	if (strlen(name) >= sizeof(c->name) ||
	    sscanf(name, PREFIX "%8x.%8x/%d.%d/%n", &uid, &c->id, &c->serial, &c->place[0],
		   &c->place[1], &at) != 5 ||
	    !at || uid != group_user() || !plausible(c->place[0]) || !plausible(c->place[1]))
		return false;
	strcpy(c->name, name);
	return blocks_parse(c, name + at);
}

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

int vb_claim_publish(struct vb_claim *c)
{
	struct sockaddr_un addr;
	int fd = socket_open();

	if (fd < 0)
		return fd;
	name_make(c);
	socklen_t length = address_of(&addr, c->name);

	if (bind(fd, (struct sockaddr *)&addr, length) || listen(fd, SOMAXCONN)) {
		int err = -errno;

		vb_descriptor_close(fd);
		return err;
	}
	return fd;
}

int vb_claim_watch(const struct vb_claim *c)
{
	struct sockaddr_un addr;
	struct ucred cred = {0};
	socklen_t length = address_of(&addr, c->name), size = sizeof(cred);
	int fd = socket_open();
	int err = 0;

	if (fd < 0)
		return fd;
	if (vb_sys_connect(fd, (struct sockaddr *)&addr, length))
		err = -errno;
	else if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &size) ||
		 cred.uid != group_user() || !vb_trust_is_one_user(cred.uid))
		err = -EPERM;
	if (!err)
		return fd;
	vb_descriptor_close(fd);
	return err;
}

/* Reads the text behind the last blank of a line, if it is an abstract name (proc_net_unix(5)). */
static void line_read(char *line, void (*each)(const struct vb_claim *claim, void *arg), void *arg)
{
	char *name = strrchr(line, ' ');
	struct vb_claim c;

	if (name && name[1] == '@' && name_parse(&c, name + 2))
		each(&c, arg);
}

int vb_claim_read(void (*each)(const struct vb_claim *claim, void *arg), void *arg)
{
	char text[16384];
	size_t have = 0;
	ssize_t n;
	int fd = vb_sys_open("/proc/net/unix", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	while ((n = vb_sys_read(fd, text + have, sizeof(text) - 1 - have)) > 0) {
		char *line = text, *end;

		have += (size_t)n;
		text[have] = '\0';
		for (; (end = memchr(line, '\n', have - (size_t)(line - text))); line = end + 1) {
			*end = '\0';
			line_read(line, each, arg);
		}
		have -= (size_t)(line - text);
		if (have == sizeof(text) - 1) /* no line is so long */
			have = 0;
		memmove(text, line, have);
	}
	vb_sys_close(fd);
	return n < 0 ? -EIO : 0;
}
