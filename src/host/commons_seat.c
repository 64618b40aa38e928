/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Names of seats: binding them, telling whose they are, asking their owners for the table. The only
 * wait is poll(2), with a bound.
 */
#include "host/commons_seat.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/sys.h"
#include "host/control.h"
#include "host/descriptor.h"
#include "host/private.h"
#include "host/trust.h"

/* So many seats are asked at once; the others when none of these has answered for a while. */
#define ASKED_MOST 64u
#define WAVE_MS    25

static socklen_t seat_address(struct sockaddr_un *addr, const char *name, uint32_t seat)
{
	memset(addr, 0, sizeof(*addr));
	addr->sun_family = AF_UNIX;
	int n = snprintf(addr->sun_path + 1, sizeof(addr->sun_path) - 1, "verbatim/%s/%u", name,
			 seat);

	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

static int seat_socket(void)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	return fd < 0 ? -errno : fd;
}

static int seat_bind(const char *name, uint32_t seat)
{
	struct sockaddr_un addr;
	socklen_t len = seat_address(&addr, name, seat);
	int fd = seat_socket();

	if (fd < 0)
		return fd;
	if (bind(fd, (struct sockaddr *)&addr, len)) {
		int err = -errno;

		vb_sys_close(fd);
		return err;
	}
	return fd;
}

int vb_seat_bind(const char *name, uint32_t seat)
{
	return vb_descriptor_adopt(seat_bind(name, seat));
}

bool vb_seat_is_bound(const char *name, uint32_t seat)
{
	int fd = seat_bind(name, seat);

	if (fd >= 0)
		vb_sys_close(fd);
	return fd < 0;
}

/* Does not block: a full backlog is EAGAIN (unix(7)). */
static int seat_connect(int fd, const char *name, uint32_t seat)
{
	struct sockaddr_un addr;
	socklen_t len = seat_address(&addr, name, seat);

	return vb_sys_connect(fd, (struct sockaddr *)&addr, len) ? -errno : 0;
}

int vb_seat_look(const char *name, uint32_t seat, enum vb_seat *what)
{
	int fd = seat_bind(name, seat);

	*what = VB_SEAT_FREE;
	if (fd >= 0)
		vb_sys_close(fd);
	if (fd != -EADDRINUSE)
		return fd < 0 ? fd : 0;
	fd = seat_socket();
	if (fd < 0)
		return fd;
	*what = VB_SEAT_UNCLEAR;
	if (!seat_connect(fd, name, seat))
		*what = vb_trust_socket_is_kin(fd, false) ? VB_SEAT_OURS : VB_SEAT_FOREIGN;
	vb_sys_close(fd);
	return 0;
}

bool vb_seat_of_another(const char *name, unsigned int *uid)
{
	FILE *f = vb_sys_fopen("/proc/self/net/unix");
	bool found = false;
	char line[512], rest[128], wanted[VB_COMMONS_NAME + 2];
	int n = snprintf(wanted, sizeof(wanted), "%s/", name);

	while (f && !found && fgets(line, sizeof(line), f)) {
		const char *at = strstr(line, " @verbatim/");

		found = at && sscanf(at, " @verbatim/%u/%127s", uid, rest) == 2 &&
			*uid != geteuid() && !strncmp(rest, wanted, (size_t)n);
	}
	if (f)
		fclose(f);
	return found;
}

struct search {
	const char *name;
	uint32_t first, next; /* seats asked so far, counted from `first` */
	uint32_t but;
	uint32_t num;
	uint32_t seat[ASKED_MOST];
	struct pollfd wait[ASKED_MOST];
	bool hung_up; /* a process had the name and did not give the table */
	bool silent;  /* a process did not answer in time */
};

/* Asks one more seat that could answer. 1; 0: no seat is left to be asked; -errno. */
static int search_widen(struct search *s)
{
	int fd = seat_socket(); /* one socket serves for all names without a listener */

	if (fd < 0)
		return fd;
	while (s->next < VB_COMMONS_SEATS) {
		uint32_t seat = (s->first + s->next++) % VB_COMMONS_SEATS;

		if (seat == s->but || seat_connect(fd, s->name, seat))
			continue;
		if (vb_trust_socket_is_kin(fd, false)) {
			s->seat[s->num] = seat;
			s->wait[s->num++] = (struct pollfd){.fd = fd, .events = POLLIN};
			return 1;
		}
		vb_sys_close(fd);
		fd = seat_socket();
		if (fd < 0)
			return fd;
	}
	vb_sys_close(fd);
	return 0;
}

static void search_drop(struct search *s, uint32_t i)
{
	vb_sys_close(s->wait[i].fd);
	s->wait[i] = s->wait[--s->num];
	s->seat[i] = s->seat[s->num];
}

/* Returns 0 and the table; -EAGAIN: no answer yet; -EPROTO: none will come; -errno. */
static int answer(int sock, int *table)
{
	struct vb_control msg;
	int got[VB_CONTROL_FDS], num = 0;
	int n = vb_control_receive(sock, &msg, NULL, got, &num);

	if (n == 1 && num == 1 && msg.type == VB_CONTROL_COMMONS) {
		*table = got[0];
		return 0;
	}
	while (num)
		vb_descriptor_close(got[--num]);
	return n == -EAGAIN || vb_system_is_short(n) ? n : -EPROTO;
}

/* As answer(), for the first seat that answers. */
static int search_answers(struct search *s, int *table, uint32_t *seat)
{
	for (uint32_t i = s->num; i-- > 0;) {
		int err = s->wait[i].revents ? answer(s->wait[i].fd, table) : -EAGAIN;

		*seat = s->seat[i];
		if (!err || vb_system_is_short(err))
			return err;
		if (err == -EAGAIN)
			continue;
		s->hung_up = true;
		search_drop(s, i);
	}
	return -EAGAIN;
}

/* Asks one more wave. 0 and the table; -EAGAIN: go on; otherwise the result of vb_seat_ask(). */
static int search_step(struct search *s, uint32_t wave, int64_t until, int *table, uint32_t *seat)
{
	int more = 1;

	for (uint32_t i = 0; more > 0 && i < wave && s->num < ASKED_MOST; i++)
		more = search_widen(s);
	if (more < 0)
		return more;
	if (!s->num && !more)
		return s->silent ? -ETIMEDOUT : s->hung_up ? -EADDRINUSE : -ENOENT;
	if (vb_sys_poll(s->wait, s->num, WAVE_MS) < 0 && errno != EINTR)
		return -errno;
	int err = search_answers(s, table, seat);

	if (err == -EAGAIN && vb_node_clock() > until)
		return -ETIMEDOUT;
	/* Seats that were asked and stand still make room for others. */
	if (err == -EAGAIN && s->num == ASKED_MOST && s->next < VB_COMMONS_SEATS) {
		s->silent = true;
		while (s->num > ASKED_MOST / 2)
			search_drop(s, 0);
	}
	return err;
}

int vb_seat_ask(const char *name, uint32_t from, uint32_t but, int64_t until, int *fd,
		uint32_t *seat)
{
	struct search s = {.name = name, .first = from, .but = but};
	uint32_t wave = 1;
	int err;

	do {
		err = search_step(&s, wave, until, fd, seat);
		wave = wave < ASKED_MOST ? wave * 4 : wave;
	} while (err == -EAGAIN);
	while (s.num)
		search_drop(&s, s.num - 1);
	return err;
}
