/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Callers are let in within bounds. Every process of the network namespace can connect to a name,
 * again and again, and stay silent. Therefore callers are taken by a budget of so many a
 * millisecond, and a greeting that takes too long ends. The processes of other users together have
 * a share of the descriptors that leaves the program its own. A caller that is turned away may call
 * again.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/lock.h"
#include "base/log.h"
#include "base/reason.h"
#include "base/sys.h"
#include "host/control.h"
#include "host/descriptor.h"
#include "host/private.h"
#include "host/trust.h"

/*
 * To take a call and end it costs some 4 us: a caller in a loop takes an eighth of a core at most.
 */
#define CALLERS_A_MSEC   16u
#define CALLERS_AT_ONCE  256u /* after a quiet time, when a job of many processes starts */
#define AT_A_TIME        32u  /* callers in one turn of the progress thread */
/*
 * To greet costs ten times as much. Processes of other users are greeted at most once in this time.
 */
#define STRANGER_NS      (4 * VB_MSEC)
#define STRANGERS_AHEAD  16
#define AGAIN_NS         (1 * VB_MSEC)
/*
 * The most that a greeting needs at once: the socket, the four descriptors of a GIVE, and a ring of
 * each side or the two for judging.
 */
#define FOR_A_PEER       7
/* The pause when no descriptor is left, or when the socket does not answer. */
#define LATER_NS         (10 * VB_MSEC)
/* From connecting to the grant: the threads of both sides must be scheduled a few times. */
#define GREETING_NS      (2000 * VB_MSEC)
/*
 * Of this user's processes, while there is room for others: hundreds that share a processor take
 * seconds for it. A greeting that ends begins again, so that none of them would ever be complete.
 */
#define GREETING_OURS_NS (60000 * VB_MSEC)
/* A caller sends its hello with its call. Without one it is silent after so long. */
#define SILENT_NS        (100 * VB_MSEC)
/* Most greetings at once: of this user; of all others; of one other user. */
#define OPEN_OURS        256u
#define OPEN_OTHERS      64u
#define OPEN_OTHER       16u
/*
 * The part of the descriptors that processes of other users may use, and the most that is useful.
 */
#define SHARE            16u
#define SHARE_MOST       1024u

static uint32_t others_share(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur / SHARE > SHARE_MOST)
		return SHARE_MOST;
	return limit.rlim_cur / SHARE < 4 ? 4 : (uint32_t)(limit.rlim_cur / SHARE);
}

static uint32_t less(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* True if the other side called and has not granted anything yet. */
static bool half_open(const struct vb_connection *conn)
{
	return conn->block < 0 && (!conn->peer || conn->peer->state == VB_PEER_MET);
}

struct census {
	uint32_t others; /* connections of other users */
	/* Half-open connections of the caller's kind: this user's, or others'. */
	uint32_t open;
	uint32_t open_same; /* those of the caller's user among them */
	struct vb_connection *oldest;
	struct vb_connection *oldest_same;
};

static bool is_silent(const struct vb_connection *conn)
{
	return !conn->peer && vb_sys_poll_one(conn->source.fd, POLLIN, 0) == 0;
}

/* Greetings of this user's processes are not ended for others that are not better. */
static bool may_end(const struct vb_connection *conn, int64_t now)
{
	int64_t age = now - conn->since;

	return age >= GREETING_NS || (age >= SILENT_NS && is_silent(conn));
}

/* The list begins with the newest. */
static struct census count(const struct vb_node *node, uid_t uid)
{
	bool ours = vb_user_is_ours(node, uid), its_ours = ours;
	struct census c = {0};
	uid_t known = uid;

	for (struct vb_connection *conn = node->connections; conn; conn = conn->next) {
		if (conn->opened.uid != known) { /* it is a system call */
			known = conn->opened.uid;
			its_ours = vb_user_is_ours(node, known);
		}

		c.others += !its_ours;
		if (!half_open(conn) || its_ours != ours)
			continue;
		c.open++;
		c.oldest = conn;
		if (conn->opened.uid == uid) {
			c.open_same++;
			c.oldest_same = conn;
		}
	}
	return c;
}

/* The caller holds the lock. Ends a greeting that does not finish; its caller may call again. */
static void drop(struct vb_node *node, struct vb_connection *conn)
{
	vb_note(VB_REASON_NO_ANSWER, "process %d of user %u: its greeting was dropped",
		(int)conn->opened.pid, conn->opened.uid);
	vb_connection_end(node, conn);
}

bool vb_admit_called(struct vb_node *node, const struct ucred *cred)
{
	if (vb_user_is_ours(node, cred->uid) || count(node, cred->uid).others < others_share())
		return true;
	vb_note(VB_REASON_STRANGERS,
		"no contact with process %d of user %u: other users' processes have %u connections",
		(int)cred->pid, cred->uid, others_share());
	return false;
}

/* A greeting of this user's processes that may end for another one, NULL: there is none. */
static struct vb_connection *oldest_to_end(const struct vb_node *node)
{
	struct vb_connection *oldest = NULL;
	int64_t now = vb_node_clock();

	for (struct vb_connection *conn = node->connections; conn; conn = conn->next) {
		if (half_open(conn) && vb_user_is_ours(node, conn->opened.uid) &&
		    may_end(conn, now))
			oldest = conn;
	}
	return oldest;
}

static bool end_one(struct vb_node *node)
{
	struct vb_connection *oldest = oldest_to_end(node);

	if (oldest)
		drop(node, oldest);
	return oldest;
}

/* How many callers there is room for. The others wait in the queues of the names. */
static uint32_t room(struct vb_node *node)
{
	uint32_t most = less(OPEN_OURS, 2 * others_share());

	vb_mutex_take(&node->lock, VB_ORDER_NODE);
	uint32_t open = count(node, geteuid()).open;
	uint32_t left = open < most ? most - open : oldest_to_end(node) ? 1 : 0;

	vb_mutex_release(&node->lock);
	return left;
}

/*
 * The caller holds the lock. Makes room for one more greeting of this user, by ending the oldest
 * greeting of its kind.
 */
static bool make_room(struct vb_node *node, const struct ucred *cred)
{
	bool ours = vb_user_is_ours(node, cred->uid);
	uint32_t share = others_share();
	struct census c = count(node, cred->uid);

	if (!ours && c.open_same >= less(OPEN_OTHER, share / 2))
		drop(node, c.oldest_same);
	else if (ours && c.open >= less(OPEN_OURS, 2 * share))
		return end_one(node);
	else if (!ours && c.open >= less(OPEN_OTHERS, share))
		drop(node, c.oldest);
	else
		return vb_admit_called(node, cred);
	return true;
}

/* Whether one more process of another user may be greeted now. */
static bool stranger_is_due(struct vb_admission *a)
{
	int64_t now = vb_node_clock(), ahead = now + STRANGERS_AHEAD * STRANGER_NS;

	if (a->stranger_at < now)
		a->stranger_at = now;
	if (a->stranger_at >= ahead) {
		vb_note(VB_REASON_STRANGERS, "a caller of another user came too soon");
		return false;
	}
	a->stranger_at += STRANGER_NS;
	return true;
}

/*
 * No descriptor is left. The caller is told: otherwise it would wait for an answer that may never
 * come.
 */
static void tell_short(struct vb_node *node, int fd)
{
	vb_note(VB_REASON_DESCRIPTORS_SHORT, "no descriptor left for a process that calls");
	vb_control_send(fd, &vb_control_short, NULL, 0);
	vb_sys_close(fd);
	/* The caller may have come to ring (vb_peer_ring). */
	node->rang = true;
	vb_bell_spoke(node, NULL);
}

void vb_admit_greeted(struct vb_node *node)
{
	const struct vb_connection *conn = node->late_due ? node->connections : NULL;

	while (conn && !half_open(conn))
		conn = conn->next;
	if (!conn)
		node->late_due = 0;
}

/* The caller holds the lock. */
static void late_expect(struct vb_node *node, int64_t now, int64_t delay)
{
	if (!node->late_due || now + delay < node->late_due)
		node->late_due = now + delay;
	vb_node_retry(node, node->late_due - now);
}

static void admit(struct vb_node *node, int fd)
{
	struct ucred cred = {0};
	socklen_t len = sizeof(cred);
	struct vb_connection *conn = NULL;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) ||
	    (!vb_user_is_ours(node, cred.uid) && !stranger_is_due(&node->admission))) {
		vb_sys_close(fd);
		return;
	}
	if (!vb_admit_has_room(node)) {
		tell_short(node, fd);
		return;
	}
	fd = vb_descriptor_adopt(fd);
	vb_mutex_take(&node->lock, VB_ORDER_NODE);
	if (make_room(node, &cred))
		conn = vb_connection_new(node, fd, -1, &cred);
	else
		vb_descriptor_close(fd);
	if (conn) {
		vb_greeting_hello(node, conn);
		late_expect(node, vb_node_clock(), GREETING_NS);
	}
	/* A peer that cannot ring any more connects to a name instead (vb_peer_ring). */
	node->rang = true;
	vb_bell_spoke(node, NULL);
	vb_mutex_release(&node->lock);
}

bool vb_admit_has_room(const struct vb_node *node)
{
	return !vb_descriptor_ours(node->page_fd) || vb_descriptor_room(node->page_fd, FOR_A_PEER);
}

void vb_admit_spare(struct vb_node *node)
{
	if (node->admission.spare < 0 && vb_descriptor_ours(node->page_fd))
		node->admission.spare =
			vb_descriptor_adopt(fcntl(node->page_fd, F_DUPFD_CLOEXEC, 0));
}

static void turn_away(struct vb_node *node, const struct vb_source *listener)
{
	struct vb_admission *a = &node->admission;

	vb_admit_spare(node);
	if (a->spare < 0)
		return;
	vb_descriptor_close(a->spare);
	a->spare = -1;
	int fd = vb_sys_accept4(listener->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd >= 0)
		tell_short(node, fd);
	vb_admit_spare(node);
}

static void later(struct vb_node *node, int64_t delay)
{
	vb_mutex_take(&node->lock, VB_ORDER_NODE);
	node->admission.again = true;
	vb_node_retry(node, delay);
	vb_mutex_release(&node->lock);
}

/* How many callers may be taken now. */
static uint32_t budget(struct vb_budget *b)
{
	int64_t now = vb_node_clock();
	int64_t more = (now - b->at) * CALLERS_A_MSEC / VB_MSEC;

	if (!b->at || more >= CALLERS_AT_ONCE - b->left) {
		b->left = CALLERS_AT_ONCE;
		b->at = now;
	} else if (more > 0) {
		b->left += (uint32_t)more;
		b->at = now;
	}
	return b->left;
}

/*
 * The listener is watched edge-triggered. Otherwise callers that must wait would keep this thread
 * busy.
 */
static void callers_take(struct vb_node *node, struct vb_source *listener, struct vb_budget *b,
			 uint32_t most)
{
	uint32_t left = budget(b);

	if (left && most)
		most = less(most, room(node));
	if (!most) {
		later(node, LATER_NS);
		return;
	}
	for (; left && most; most--) {
		if (!vb_descriptor_ours(listener->fd)) {
			vb_node_descriptors_gone(node);
			return;
		}
		int fd = vb_sys_accept4(listener->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd < 0 && (errno == EAGAIN || atomic_load(&node->gone)))
			return;
		if (fd < 0) {
			if (errno == EMFILE || errno == ENFILE)
				turn_away(node, listener);
			later(node, LATER_NS);
			return;
		}
		b->left = --left;
		admit(node, fd);
	}
	later(node, AGAIN_NS);
}

void vb_admit_ready(struct vb_node *node, struct vb_source *listener, uint32_t events)
{
	(void)events;
	callers_take(node, listener, &node->admission.plain, AT_A_TIME);
}

void vb_admit_keyed_ready(struct vb_node *node, struct vb_source *listener, uint32_t events)
{
	(void)events;
	callers_take(node, listener, &node->admission.keyed, AT_A_TIME);
}

/* The caller holds the lock. */
static void drop_late(struct vb_node *node)
{
	int64_t now = vb_node_clock(), wait = 0;
	struct vb_connection *next;

	if (!node->late_due)
		return;
	if (node->late_due > now) {
		vb_node_retry(node, node->late_due - now);
		return;
	}
	node->late_due = 0;
	for (struct vb_connection *conn = node->connections; conn; conn = next) {
		next = conn->next;
		if (!half_open(conn))
			continue;
		bool ours = vb_user_is_ours(node, conn->opened.uid) && !is_silent(conn);
		int64_t left = conn->since + (ours ? GREETING_OURS_NS : GREETING_NS) - now;

		if (left <= 0)
			drop(node, conn);
		else if (!wait || left < wait)
			wait = left;
	}
	if (wait)
		late_expect(node, now, wait);
}

/*
 * Every listener has its turn. Names that are called by a key have a budget of their own, so
 * callers of plain names do not use it up.
 */
static void callers_again(struct vb_node *node)
{
	struct vb_admission *a = &node->admission;
	uint32_t n = node->page->header.num_blocks;

	for (uint32_t k = 0; k < n; k++) {
		uint32_t i = (a->turn + k) % n;

		if (node->names.keyed[i].fd > 0)
			vb_admit_keyed_ready(node, &node->names.keyed[i], 0);
		if (node->names.plain[i].fd > 0)
			vb_admit_ready(node, &node->names.plain[i], 0);
	}
	a->turn++;
}

void vb_admit_service(struct vb_node *node)
{
	if (node->admission.again) {
		node->admission.again = false;
		callers_again(node);
	}
	vb_mutex_take(&node->lock, VB_ORDER_NODE);
	drop_late(node);
	vb_mutex_release(&node->lock);
}
