/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The fault tap. */
#include "udp/fault.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "base/clock.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/sys.h"
#include "wire/packet.h"

#define CONTROL_MOST 256u

/* A packet in one buffer. */
struct copy {
	int fd;
	struct sockaddr_storage to;
	socklen_t to_length;
	size_t control_length;
	size_t length;
	_Alignas(struct cmsghdr) uint8_t control[CONTROL_MOST];
	uint8_t data[VB_PACKET_MOST];
};

struct tap {
	struct vb_udp_fault_plan plan;
	bool active;
	struct vb_lock lock;
	uint64_t state;
	struct copy held;
	_Atomic uint64_t until; /* when `held` is sent at the latest, 0: nothing is held */
	const struct vb_udp_fault_host *_Atomic host;
	uint64_t packets, drops, dups, reorders, corrupts;
};

static struct tap tap = {.lock = VB_LOCK_AT(VB_ORDER_FAULT)};
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* Reads a share as a part of 2^32. */
static bool parse_share(const char *text, char **end, uint32_t *share)
{
	double value = strtod(text, end);

	if (*end == text)
		return false;
	if (**end == '%') {
		value /= 100;
		(*end)++;
	}
	if (!(value >= 0 && value <= 1))
		return false;
	value *= 4294967296.0;
	*share = value >= 4294967295.0 ? UINT32_MAX : (uint32_t)value;
	return true;
}

static bool parse_word(const char *word, size_t length, const char *value, char **end,
		       struct vb_udp_fault_plan *plan)
{
	const struct {
		const char *name;
		uint32_t *share;
	} shares[] = {
		{"drop", &plan->drop},
		{"dup", &plan->dup},
		{"reorder", &plan->reorder},
		{"corrupt", &plan->corrupt},
	};

	if (length == 4 && !memcmp(word, "seed", 4)) {
		plan->seed = strtoull(value, end, 0);
		return *end != value;
	}
	for (size_t i = 0; i < sizeof(shares) / sizeof(shares[0]); i++) {
		if (strlen(shares[i].name) == length && !memcmp(word, shares[i].name, length))
			return parse_share(value, end, shares[i].share);
	}
	return false;
}

bool vb_udp_fault_parse(const char *text, struct vb_udp_fault_plan *plan)
{
	*plan = (struct vb_udp_fault_plan){.seed = 1};
	while (*text) {
		const char *equals = strchr(text, '=');
		char *end = NULL;

		if (!equals || !parse_word(text, (size_t)(equals - text), equals + 1, &end, plan))
			return false;
		if (*end == ',')
			end++;
		else if (*end)
			return false;
		text = end;
	}
	return true;
}

static void read_environment(void)
{
	const char *text = secure_getenv("VERBATIM_FAULT");

	if (!text || !*text)
		return;
	tap.active = vb_udp_fault_parse(text, &tap.plan);
	tap.state = tap.plan.seed;
	if (tap.active)
		vb_log(VB_LOG_INFO, "fault tap: %s", text);
	else
		vb_log(VB_LOG_WARN, "fault tap: VERBATIM_FAULT=%s is not understood: no faults",
		       text);
}

bool vb_udp_fault_active(void)
{
	pthread_once(&once, read_environment);
	return tap.active;
}

/*
 * SplitMix64. Its state grows by a constant at each step, so seeds that differ by one have nothing
 * in common.
 */
static uint64_t draw(void)
{
	uint64_t z = tap.state += 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

static bool happens(uint32_t share, uint64_t *count)
{
	bool yes = (uint32_t)draw() < share;

	*count += yes;
	return yes;
}

static bool copy_of(struct copy *c, int fd, const struct msghdr *m)
{
	if (m->msg_namelen > sizeof(c->to) || m->msg_controllen > sizeof(c->control))
		return false;
	c->fd = fd;
	c->to_length = m->msg_namelen;
	memcpy(&c->to, m->msg_name, m->msg_namelen);
	c->control_length = m->msg_controllen;
	memcpy(c->control, m->msg_control, m->msg_controllen);
	c->length = 0;
	for (size_t i = 0; i < m->msg_iovlen; i++) {
		if (c->length + m->msg_iov[i].iov_len > sizeof(c->data))
			return false;
		memcpy(c->data + c->length, m->msg_iov[i].iov_base, m->msg_iov[i].iov_len);
		c->length += m->msg_iov[i].iov_len;
	}
	return true;
}

static int copy_send(struct copy *c)
{
	struct iovec piece = {c->data, c->length};
	struct msghdr m = {
		.msg_name = &c->to,
		.msg_namelen = c->to_length,
		.msg_iov = &piece,
		.msg_iovlen = 1,
		.msg_control = c->control,
		.msg_controllen = c->control_length,
	};

	return vb_sys_sendmsg(c->fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0;
}

/* The caller holds the lock. The program may have closed the socket since. */
static void held_send(void)
{
	const struct vb_udp_fault_host *host = atomic_load(&tap.host);

	atomic_store(&tap.until, 0);
	if (!host || host->is_ours(tap.held.fd))
		(void)copy_send(&tap.held);
}

static void hold(const struct copy *c)
{
	tap.held = *c;
	atomic_store(&tap.until, vb_clock_ns() + VB_UDP_FAULT_HOLD_NS);
}

/*
 * The caller holds the lock. Each packet takes the same number of draws, so that one share does not
 * change the faults of another.
 */
static int faults_apply(struct copy *c)
{
	bool drop = happens(tap.plan.drop, &tap.drops);
	bool dup = happens(tap.plan.dup, &tap.dups);
	bool reorder = happens(tap.plan.reorder, &tap.reorders);
	bool corrupt = happens(tap.plan.corrupt, &tap.corrupts);
	uint64_t number = draw();
	bool release = atomic_load(&tap.until) != 0;
	int err = 0;

	tap.packets++;
	if (corrupt && c->length) {
		uint64_t bit = number % (c->length * 8);

		c->data[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	if (!drop && !(reorder && !release)) {
		err = copy_send(c);
		if (dup && !err)
			err = copy_send(c);
	}
	if (release)
		held_send();
	else if (reorder && !drop)
		hold(c);
	return err;
}

int vb_udp_fault_send(int fd, const struct msghdr *message)
{
	const struct vb_udp_fault_host *host = atomic_load(&tap.host);
	struct copy c;
	uint64_t until;
	int err;

	if (!copy_of(&c, fd, message))
		return -EMSGSIZE;
	vb_lock_take(&tap.lock);
	err = faults_apply(&c);
	until = atomic_load(&tap.until);
	vb_lock_release(&tap.lock);
	if (until && host)
		host->held(until);
	return err;
}

void vb_udp_fault_join(const struct vb_udp_fault_host *host)
{
	atomic_store(&tap.host, host);
}

void vb_udp_fault_forget(void)
{
	vb_lock_place(&tap.lock, VB_ORDER_FAULT);
	atomic_store(&tap.until, 0);
	tap.packets = tap.drops = tap.dups = tap.reorders = tap.corrupts = 0;
}

uint64_t vb_udp_fault_serve(uint64_t now)
{
	uint64_t until = atomic_load(&tap.until);

	if (!until || now < until)
		return until;
	vb_lock_take(&tap.lock);
	until = atomic_load(&tap.until);
	if (until && until <= now) {
		held_send();
		until = 0;
	}
	vb_lock_release(&tap.lock);
	return until;
}

void vb_udp_fault_report(void)
{
	if (!vb_udp_fault_active())
		return;
	vb_lock_take(&tap.lock);
	vb_log(VB_LOG_INFO,
	       "fault tap: %llu packets: %llu dropped, %llu doubled, %llu held back, %llu corrupted",
	       (unsigned long long)tap.packets, (unsigned long long)tap.drops,
	       (unsigned long long)tap.dups, (unsigned long long)tap.reorders,
	       (unsigned long long)tap.corrupts);
	tap.packets = tap.drops = tap.dups = tap.reorders = tap.corrupts = 0;
	vb_lock_release(&tap.lock);
}
