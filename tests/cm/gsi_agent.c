/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A process with a GSI, for tests of the carrier: reads commands, one a line, and prints answers and
 * the MADs that come, one a line. It uses the interface that librdmacm uses (gsi/gsi.h).
 *
 *   open                                       opened NUMBER BASE
 *   reach GID|any                              ok | error ERRNO
 *   bind SPACE PORT GID [reuse] [afonly] [to GID PORT]   bound PORT HANDLE | error ERRNO
 *   fill COUNT GID                             filled PORTS ERRNO: binds so many automatic ports
 *   hold SPACE PORT GID                        as bind; stands still (SIGSTOP) with the table's lock
 *   listen HANDLE, unbind HANDLE               ok | error ERRNO
 *   send SGID DGID TYPE LOCAL REMOTE [SERVICE [GID]]     ok | error ERRNO
 *   repeat COUNT RATE SGID DGID TYPE LOCAL REMOTE [SERVICE]   repeated FAILED in T ms
 *   count                                      counted MADS
 *   quiet, echo                                prints no MADs; answers each MAD with one of type DREP
 *   verbs DEVICE INDEX GID                     held: a queue pair that is ready to receive
 *   reasons                                    reason NAME=COUNT ...
 *   fork                                       forked PID: the child goes on with the commands
 *   due MILLISECONDS                           ok, and when the time has come: due
 *   quit
 *
 *   mad TYPE LOCAL REMOTE wire|ring SRC_QPN SGID DGID IFINDEX    a MAD has come
 */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/reason.h"
#include "gsi/gsi.h"
#include "wire/bytes.h"

enum { AT_ATTRIBUTE = 16, AT_BODY = 24, WORDS = 16 };

static const struct {
	const char *name;
	uint16_t attribute;
} types[] = {
	{"REQ", 0x10},  {"MRA", 0x11},  {"REJ", 0x12},      {"REP", 0x13},      {"RTU", 0x14},
	{"DREQ", 0x15}, {"DREP", 0x16}, {"SIDR_REQ", 0x17}, {"SIDR_REP", 0x18}, {"LAP", 0x19},
};

static pthread_mutex_t out_lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic bool quiet, echoes;
static _Atomic uint64_t count, due_at, serves;

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

static void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void say(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	pthread_mutex_lock(&out_lock);
	vprintf(format, ap);
	putchar('\n');
	fflush(stdout);
	pthread_mutex_unlock(&out_lock);
	va_end(ap);
}

static void say_error(int err)
{
	if (err)
		say("error %d", -err);
	else
		say("ok");
}

static const char *type_name(uint16_t attribute)
{
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		if (types[i].attribute == attribute)
			return types[i].name;
	}
	return "?";
}

static void gid_get(const char *text, uint8_t gid[16])
{
	struct in_addr v4;

	memset(gid, 0, 16);
	if (inet_pton(AF_INET, text, &v4) == 1) {
		memset(gid + 10, 0xff, 2);
		memcpy(gid + 12, &v4, 4);
	} else if (inet_pton(AF_INET6, text, gid) != 1 && strcmp(text, "any")) {
		fprintf(stderr, "no address: %s\n", text);
		exit(2);
	}
}

static const char *gid_text(const uint8_t gid[16], char *text)
{
	return inet_ntop(AF_INET6, gid, text, INET6_ADDRSTRLEN);
}

static void mad_fill(struct vb_gsi_mad *mad, const char *type, uint32_t local, uint32_t remote)
{
	uint8_t *d = mad->data;

	memset(d, 0, sizeof(mad->data));
	d[0] = 1;
	d[1] = 7;
	d[2] = 2;
	d[3] = 3;
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		if (!strcmp(types[i].name, type))
			vb_put16(d + AT_ATTRIBUTE, types[i].attribute);
	}
	vb_put32(d + AT_BODY, local);
	vb_put32(d + AT_BODY + 4, remote);
}

static void on_mad(void *arg, const struct vb_gsi_mad *mad)
{
	char s[INET6_ADDRSTRLEN], d[INET6_ADDRSTRLEN];
	struct vb_gsi_mad answer = *mad;
	uint32_t local = vb_get32(mad->data + AT_BODY), remote = vb_get32(mad->data + AT_BODY + 4);

	(void)arg;
	atomic_fetch_add(&count, 1);
	if (!atomic_load(&quiet))
		say("mad %s %x %x %s %x %s %s %u", type_name(vb_get16(mad->data + AT_ATTRIBUTE)),
		    local, remote, mad->wire ? "wire" : "ring", mad->src_qpn,
		    gid_text(mad->sgid, s), gid_text(mad->dgid, d), mad->ifindex);
	if (!atomic_load(&echoes))
		return;
	memcpy(answer.sgid, mad->dgid, 16);
	memcpy(answer.dgid, mad->sgid, 16);
	mad_fill(&answer, "DREP", remote, local);
	vb_gsi_send(&answer);
}

static uint64_t on_serve(void *arg)
{
	uint64_t at = atomic_load(&due_at);

	(void)arg;
	atomic_fetch_add(&serves, 1);
	if (!at || now_ns() < at)
		return at;
	atomic_store(&due_at, 0);
	say("due");
	return 0;
}

static const struct vb_gsi_events events = {.mad = on_mad, .serve = on_serve};

static void do_open(void)
{
	struct vb_gsi_identity id;
	int err = vb_gsi_open(&events, &id);

	if (err)
		say_error(err);
	else
		say("opened %x %x", id.qpn, id.comm_id_base);
}

static void do_bind(char **word, int words)
{
	struct vb_gsi_binding b = {0};
	uint64_t handle = 0;
	int err;

	b.space = (uint16_t)strtoul(word[1], NULL, 16);
	b.port = (uint16_t)strtoul(word[2], NULL, 10);
	gid_get(word[3], b.address);
	for (int i = 4; i < words; i++) {
		b.reuse |= !strcmp(word[i], "reuse");
		b.afonly |= !strcmp(word[i], "afonly");
		if (!strcmp(word[i], "to")) {
			gid_get(word[i + 1], b.remote);
			b.remote_port = (uint16_t)strtoul(word[i + 2], NULL, 10);
		}
	}
	err = vb_gsi_bind(&b, &handle);
	if (err)
		say_error(err);
	else
		say("bound %u %llx", b.port, (unsigned long long)handle);
}

/* Each of them for another destination, so that a port can be had by several. */
static void do_fill(char **word)
{
	unsigned long most = strtoul(word[1], NULL, 10), n = 0;
	uint64_t handle;
	int err = 0;

	for (; n < most && !err; n += !err) {
		struct vb_gsi_binding b = {.space = 0x111, .remote_port = (uint16_t)(n + 1)};

		gid_get(word[2], b.address);
		err = vb_gsi_bind(&b, &handle);
	}
	say("filled %lu %d", n, -err);
}

/* Of the thread that is told to hold: whether it is to stand still, and the lock that it has taken by trying. */
static __thread bool holds;
static __thread pthread_mutex_t *held;

typedef int (*mutex_call)(pthread_mutex_t *mutex);

static mutex_call next_call(_Atomic(uintptr_t) *known, const char *name)
{
	uintptr_t found = atomic_load(known);

	if (!found) {
		found = (uintptr_t)dlsym(RTLD_NEXT, name);
		atomic_store(known, found);
	}
	return (mutex_call)found;
}

/* The library must see these names; the tree is built with hidden ones. */
#pragma GCC visibility push(default)

/* These stand before the functions of the C library: the lock of a shared table is taken by trying. */
int pthread_mutex_trylock(pthread_mutex_t *mutex)
{
	static _Atomic(uintptr_t) next;
	int err = next_call(&next, "pthread_mutex_trylock")(mutex);

	if (holds && !err)
		held = mutex;
	return err;
}

int pthread_mutex_unlock(pthread_mutex_t *mutex)
{
	static _Atomic(uintptr_t) next;

	if (holds && mutex == held) {
		holds = false;
		raise(SIGSTOP);
	}
	return next_call(&next, "pthread_mutex_unlock")(mutex);
}

#pragma GCC visibility pop

static void do_hold(char **word, int words)
{
	holds = true;
	do_bind(word, words);
	holds = false;
}

/* SGID DGID TYPE LOCAL REMOTE [SERVICE [GID]] */
static void mad_read(struct vb_gsi_mad *mad, char **word, int words)
{
	memset(mad, 0, sizeof(*mad));
	gid_get(word[0], mad->sgid);
	gid_get(word[1], mad->dgid);
	mad_fill(mad, word[2], (uint32_t)strtoul(word[3], NULL, 16),
		 (uint32_t)strtoul(word[4], NULL, 16));
	if (!strcmp(word[2], "REJ"))
		vb_put16(mad->data + AT_BODY + 10, 4);
	if (words > 5)
		vb_put64(mad->data + AT_BODY + 8, strtoull(word[5], NULL, 16));
	if (words > 6) {
		uint8_t *private_data = mad->data + AT_BODY + (strcmp(word[2], "REQ") ? 16 : 140);
		uint8_t gid[16];

		gid_get(word[6], gid);
		private_data[1] = strchr(word[6], '.') ? 0x40 : 0x60;
		if (strchr(word[6], '.'))
			memset(gid, 0, 12);
		memcpy(private_data + 20, gid, 16);
	}
}

static void do_repeat(char **word, int words)
{
	unsigned long times = strtoul(word[1], NULL, 10), rate = strtoul(word[2], NULL, 10);
	unsigned long failed = 0;
	uint64_t began = now_ns();
	struct vb_gsi_mad mad;

	mad_read(&mad, word + 3, words - 3);
	for (unsigned long i = 0; i < times; i++) {
		failed += vb_gsi_send(&mad) != 0;
		while (rate && now_ns() - began < i * 1000000000ull / rate)
			usleep(100);
	}
	say("repeated %lu in %llu ms", failed, (unsigned long long)((now_ns() - began) / 1000000));
}

/* A datagram queue pair on the port, in a process that has no GSI. */
static void do_verbs(char **word)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx = NULL;
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_UD,
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
	};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = 1};

	for (int i = 0; list && list[i]; i++) {
		if (!strcmp(ibv_get_device_name(list[i]), word[1]))
			ctx = ibv_open_device(list[i]);
	}
	ibv_free_device_list(list);
	if (!ctx) {
		say("error %d", ENODEV);
		return;
	}
	init.send_cq = init.recv_cq = ibv_create_cq(ctx, 16, NULL, NULL, 0);
	struct ibv_qp *qp = ibv_create_qp(ibv_alloc_pd(ctx), &init);
	int err = !qp ||
		  ibv_modify_qp(qp, &attr,
				IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);

	attr.qp_state = IBV_QPS_RTR;
	if (!err)
		err = ibv_modify_qp(qp, &attr, IBV_QP_STATE);
	if (err)
		say_error(-errno);
	else
		say("held");
}

static void do_reasons(void)
{
	unsigned int n;
	const struct vb_reason_entry *all = vb_reason_all(&n);
	char text[4096] = "";
	size_t at = 0;

	for (unsigned int i = 0; i < n && at < sizeof(text) - 100; i++) {
		uint64_t times = vb_reason_count(all[i].code);

		if (times)
			at += (size_t)snprintf(text + at, sizeof(text) - at, " %s=%llu",
					       all[i].name, (unsigned long long)times);
	}
	say("reason%s", text);
}

/* The parent waits for the child, which goes on reading commands. */
static void do_fork(void)
{
	pid_t pid = fork();

	if (!pid) {
		atomic_store(&count, 0);
		say("forked %d", (int)getpid());
		return;
	}
	int status;

	waitpid(pid, &status, 0);
	say("child %d", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
}

static void do_due(char **word)
{
	atomic_store(&due_at, now_ns() + strtoull(word[1], NULL, 10) * 1000000ull);
	say("ok");
	vb_gsi_kick();
}

/* Deadlines of which only the first is earlier than the one that stands; says how often it was looked. */
static void do_expect(char **word)
{
	uint64_t before = atomic_load(&serves);
	uint64_t at = now_ns() + strtoull(word[1], NULL, 10) * 1000000ull;

	if (at < atomic_load(&due_at))
		atomic_store(&due_at, at);
	for (int i = 0; i < 100; i++) {
		vb_gsi_expect(at + (uint64_t)i);
		usleep(500);
	}
	say("served %" PRIu64, atomic_load(&serves) - before);
}

static void do_send(char **word, int words)
{
	struct vb_gsi_mad mad;

	mad_read(&mad, word + 1, words - 1);
	say_error(vb_gsi_send(&mad));
}

static bool obey(char **word, int words)
{
	uint8_t gid[16];

	if (!strcmp(word[0], "open")) {
		do_open();
	} else if (!strcmp(word[0], "reach") && words == 2) {
		gid_get(word[1], gid);
		say_error(vb_gsi_reach(gid));
	} else if (!strcmp(word[0], "bind") && words >= 4) {
		do_bind(word, words);
	} else if (!strcmp(word[0], "fill") && words == 3) {
		do_fill(word);
	} else if (!strcmp(word[0], "hold") && words == 4) {
		do_hold(word, words);
	} else if (!strcmp(word[0], "listen") && words == 2) {
		say_error(vb_gsi_listen(strtoull(word[1], NULL, 16)));
	} else if (!strcmp(word[0], "unbind") && words == 2) {
		vb_gsi_unbind(strtoull(word[1], NULL, 16));
		say("ok");
	} else if (!strcmp(word[0], "send") && words >= 6) {
		do_send(word, words);
	} else if (!strcmp(word[0], "repeat") && words >= 8) {
		do_repeat(word, words);
	} else if (!strcmp(word[0], "count")) {
		say("counted %llu", (unsigned long long)atomic_load(&count));
	} else if (!strcmp(word[0], "quiet")) {
		atomic_store(&quiet, true);
		say("ok");
	} else if (!strcmp(word[0], "echo")) {
		atomic_store(&echoes, true);
		say("ok");
	} else if (!strcmp(word[0], "verbs") && words == 2) {
		do_verbs(word);
	} else if (!strcmp(word[0], "reasons")) {
		do_reasons();
	} else if (!strcmp(word[0], "fork")) {
		do_fork();
	} else if (!strcmp(word[0], "due") && words == 2) {
		do_due(word);
	} else if (!strcmp(word[0], "expect") && words == 2) {
		do_expect(word);
	} else if (!strcmp(word[0], "quit")) {
		return false;
	} else {
		say("what? %s", word[0]);
	}
	return true;
}

int main(void)
{
	char line[512];
	char *word[WORDS];

	setvbuf(stdin, NULL, _IONBF, 0); /* a forked child goes on where the parent was */
	while (fgets(line, sizeof(line), stdin)) {
		int words = 0;
		char *save = NULL;

		for (char *w = strtok_r(line, " \n", &save); w && words < WORDS;
		     w = strtok_r(NULL, " \n", &save))
			word[words++] = w;
		if (words && !obey(word, words))
			break;
	}
	return 0;
}
