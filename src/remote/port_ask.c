/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Asking for a socket of the port. /proc/net/udp says whose the port is. Every process can make the
 * names of one that gives; a name counts if the kernel says that its maker is that user, and if this
 * process agrees with it. What comes is looked at before it is used. The time is bounded, whatever
 * the other processes do.
 */
#include "remote/port.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/reason.h"
#include "base/sys.h"
#include "host/abstract.h"
#include "host/control.h"
#include "host/descriptor.h"
#include "host/domain.h"
#include "host/standstill.h"
#include "base/clock.h"
#include "udp/holder.h"
#include "udp/socket.h"
#include "wire/packet.h"

/* Said to a user who has not named a domain. */
#define CURE    "processes whose VERBATIM_DOMAIN names one directory or group share it (verbatim(7))"

#define SOON_NS 200000000ull
#define NAP_NS  500000l
#define MSEC_NS 1000000ull
/* A process that is at work and does not answer is looked at again after so long. */
#define WORK_MS 100

struct asking {
	bool ipv4;
	uint64_t until;
	uint64_t longest; /* for a process that is at work */
	uint32_t *buffer;
	int fd;     /* -1: not given yet */
	bool full;  /* the queue of one that gives was full */
	bool found; /* a process of the holder's user gives */
	struct vb_port_question *question;
	struct vb_port_answer *answer;
};

static void say(struct asking *a, const struct ucred *who, const char *what)
{
	snprintf(a->answer->why, sizeof(a->answer->why),
		 "process %d of user %u gives no socket of it: %s", (int)who->pid, who->uid, what);
}

static int left_ms(const struct asking *a)
{
	uint64_t now = vb_clock_ns();

	return now >= a->until ? 0 : (int)((a->until - now + MSEC_NS - 1) / MSEC_NS);
}

static void given(struct asking *a, const struct ucred *who, int fd)
{
	const char *defect = NULL;
	int err = vb_udp_take_receiver(fd, a->ipv4, a->buffer, &defect);

	if (!err) {
		a->fd = fd;
		return;
	}
	say(a, who, defect ? defect : strerror(-err));
	vb_descriptor_close(fd);
}

static void answer_take(struct asking *a, int sock, const struct ucred *who)
{
	int fds[VB_CONTROL_FDS], num_fds = 0;
	struct vb_control msg;
	int n = vb_control_receive(sock, &msg, NULL, fds, &num_fds);

	if (n != 1 || msg.type != VB_CONTROL_PORT) {
		say(a, who,
		    n == -EPROTO ? "it has another version of this library"
				 : "its answer cannot be read");
	} else if (num_fds != 1 || fds[0] < 0) {
		say(a, who, msg.text);
	} else {
		given(a, who, fds[0]);
		return;
	}
	while (num_fds)
		vb_descriptor_close(fds[--num_fds]);
}

/*
 * Waits until the answer is there. On a busy machine one that is at work may get a processor
 * seconds later; it keeps its question, because another one would come behind those that have
 * called since.
 */
static bool answer_comes(const struct asking *a, const struct vb_port_question *q)
{
	if (vb_sys_poll_one(q->sock, POLLIN, left_ms(a)) == 1)
		return true;
	while (vb_clock_ns() < a->longest && vb_is_at_work(q->who.pid)) {
		if (vb_sys_poll_one(q->sock, POLLIN, WORK_MS) == 1)
			return true;
	}
	return false;
}

/* Waits for the answer to the question, and ends the question when it has come. */
static void answer_await(struct asking *a)
{
	struct vb_port_question *q = a->question;

	if (!vb_descriptor_ours(q->sock)) {
		q->sock = 0;
		return;
	}
	if (!answer_comes(a, q)) {
		a->answer->silent = true;
		say(a, &q->who, "it does not answer in time");
		return;
	}
	answer_take(a, q->sock, &q->who);
	vb_port_ask_end(q);
}

void vb_port_ask_end(struct vb_port_question *q)
{
	if (q->sock)
		vb_descriptor_close(q->sock);
	q->sock = 0;
}

/* The process that has made a name of the library as this user, as far as the kernel tells. */
struct search {
	uid_t uid;
	pid_t pid; /* 0: none is found */
};

static bool name_look(const char *name, void *arg)
{
	struct search *s = arg;
	unsigned int uid;
	struct ucred who;

	if (sscanf(name, "verbatim/%u/", &uid) != 1 || uid != s->uid)
		return true;
	int sock = vb_abstract_connect(name, &who);

	vb_descriptor_close(sock);
	if (sock >= 0 && who.uid == s->uid && who.pid > 0)
		s->pid = who.pid;
	return !s->pid;
}

void vb_port_cure(bool ipv4, char *text, size_t size)
{
	struct search s = {0};

	*text = '\0';
	if (!vb_udp_holder_user(ipv4, VB_UDP_PORT, &s.uid) || s.uid == geteuid())
		return;
	(void)vb_abstract_read(name_look, &s);
	if (s.pid)
		snprintf(text, size, "process %d of user %u uses it; " CURE, (int)s.pid, s.uid);
	else
		snprintf(text, size, CURE);
}

/* False: no more names are wanted. */
static bool name_try(const char *name, void *arg)
{
	struct asking *a = arg;
	unsigned int uid, id;
	struct ucred who;
	int family, end = 0;

	if (sscanf(name, "verbatim/%u/port%1d/%8x%n", &uid, &family, &id, &end) != 3 || name[end] ||
	    uid != a->answer->holder || family != (a->ipv4 ? 4 : 6))
		return true;
	int sock = vb_abstract_connect(name, &who);

	a->full |= sock == -EAGAIN;
	a->found |= sock >= 0 && who.uid == a->answer->holder;
	if (sock >= 0 && who.uid == a->answer->holder && vb_domain_has(sock)) {
		*a->question = (struct vb_port_question){sock, who};
		answer_await(a);
		return a->fd < 0 && !a->question->sock;
	}
	if (sock >= 0 && who.uid == a->answer->holder)
		say(a, &who, "it is not in the domain of this process");
	vb_descriptor_close(sock);
	return left_ms(a) > 0;
}

/*
 * Calls those that give, until one answers or the time is over. A process that has just bound the
 * port gives a moment later.
 */
static void question_make(struct asking *a)
{
	uint64_t soon = vb_clock_ns() + SOON_NS;

	for (;;) {
		a->full = a->found = false;
		(void)vb_abstract_read(name_try, a);
		bool again = a->full || (!a->found && vb_clock_ns() < soon);

		if (a->fd >= 0 || a->question->sock || !again)
			return;
		if (!left_ms(a))
			break;
		vb_sys_nanosleep(&(struct timespec){.tv_nsec = NAP_NS});
	}
	if (!a->full)
		return;
	a->answer->silent = true;
	snprintf(
		a->answer->why, sizeof(a->answer->why),
		"the processes of that user that give sockets of it have more callers than they answer");
}

int vb_port_ask(bool ipv4, const struct vb_port_patience *patience,
		struct vb_port_question *question, uint32_t *buffer, struct vb_port_answer *answer)
{
	uint64_t now = vb_clock_ns();
	struct asking a = {
		.ipv4 = ipv4,
		.until = now + patience->wait_ns,
		.longest = now + patience->work_ns,
		.buffer = buffer,
		.fd = -1,
		.question = question,
		.answer = answer,
	};

	*answer = (struct vb_port_answer){.holder = (uid_t)-1};
	snprintf(answer->why, sizeof(answer->why),
		 "no process of that user gives sockets of it: it has no VERBATIM_DOMAIN");
	if (vb_domain_defect(answer->why, sizeof(answer->why)) ||
	    !vb_udp_holder_user(ipv4, VB_UDP_PORT, &answer->holder))
		return -EADDRINUSE;
	if (question->sock)
		answer_await(&a);
	if (a.fd < 0 && !question->sock)
		question_make(&a);
	if (a.fd >= 0)
		vb_log(VB_LOG_INFO, "user %u has given a socket of udp port %u (IPv%d)",
		       answer->holder, VB_UDP_PORT, ipv4 ? 4 : 6);
	return a.fd >= 0 ? a.fd : -EADDRINUSE;
}
