/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the files of this room know of each other: the node, its peers, connections and tables.
 *
 * One lock, node->lock, guards all of it. It is the innermost lock of the device (callers may hold
 * engine locks), and is never held while the device is told of an event. The progress thread alone
 * frees objects that the epoll descriptor points to.
 */
#ifndef VB_HOST_PRIVATE_H
#define VB_HOST_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "base/clock.h"
#include "base/lock.h"
#include "base/siphash.h"
#include "host/channel.h"
#include "host/control.h"
#include "host/node.h"
#include "host/page.h"
#include "host/peer.h"

#define VB_MSEC 1000000ll

struct vb_guard;
struct vb_rack;
struct vb_turn;

/*
 * A descriptor that the epoll descriptor watches. The progress thread calls ready() without the
 * lock.
 */
struct vb_source {
	int fd;
	void (*ready)(struct vb_node *node, struct vb_source *source, uint32_t events);
};

/* names.c: the blocks of queue pair numbers and the numbers that are free, oldest first. */
struct vb_names {
	/* Listeners; each block has at least one of the two. */
	struct vb_source plain[VB_MAX_BLOCKS];
	struct vb_source keyed[VB_MAX_BLOCKS];
	uint16_t in_use[VB_MAX_BLOCKS];
	bool has_secret;
	uint8_t secret[VB_SIPHASH_KEY_BYTES];
	uid_t secret_uid; /* the user of the secret */
	uint32_t num_free;
	uint32_t first;
	uint32_t free[VB_MAX_QPS]; /* a ring of indices into page->qp */
	uint64_t used[VB_MAX_QPS / 64];
};

/* admit.c: how many callers may be taken. */
struct vb_budget {
	uint32_t left;
	int64_t at; /* when it was filled up last */
};

/* admit.c: used by the progress thread, except for `spare`. */
struct vb_admission {
	bool again; /* callers wait for budget or for a descriptor */
	uint32_t turn;
	struct vb_budget plain, keyed; /* by the kind of name that was called */
	int64_t stranger_at;           /* until when other users' turns are used up */
	int spare; /* a descriptor that is given up in order to tell a caller that none is left */
};

/*
 * keys.c: free slots in the order of their release. Slots that were never used come first, until
 * enough lie between release and reuse.
 */
struct vb_keys {
	uint32_t fresh; /* slots from here on were never used */
	uint32_t num_free;
	uint32_t head, tail;
	uint32_t next[VB_MAX_KEYS];
	uint32_t last[VB_MAX_KEYS]; /* the key that the slot has or had */
	uint64_t used[VB_MAX_KEYS / 64];
	uint8_t random[256];
	uint32_t random_left;
};

struct vb_engines {
	uint64_t used[VB_MAX_ENGINES / 64];
};

/* channel_table.c: all channels of the node. */
#define VB_CHANNEL_BUCKETS 16384

struct vb_channels {
	struct vb_channel *by_id[VB_CHANNEL_BUCKETS];
	struct vb_channel *by_engines[VB_CHANNEL_BUCKETS];
};

/* arena.c, and piece.c: the slab */
struct vb_extent;
struct vb_slab;

struct vb_arena {
	pthread_mutex_t lock;
	int fd;
	uint64_t size;   /* of the file */
	uint64_t usable; /* of the reserved range */
	uint64_t top;    /* the end of what was ever used, as peers are told */
	uint64_t floor;  /* below are the program's own blocks (mapped.h); 0: it has none */
	char *base;
	bool (*holds)(const void *addr, size_t bytes); /* with `floor`: whether they are blocks */
	struct vb_extent *extents;
	struct vb_extent *latest;  /* the piece placed last, or the one before it */
	uint64_t cursor;           /* the end of that piece */
	pthread_mutex_t slab_lock; /* taken before `lock` */
	struct vb_slab *slab;      /* the slab that is being filled; NULL: none */
};

enum vb_peer_state {
	VB_PEER_MET, /* it has introduced itself */
	VB_PEER_UP,  /* it has given its descriptors */
	VB_PEER_DEAD,
};

/*
 * give.c: what a process must read in this one's memory that wants to have that memory. The first word
 * comes from the process that reads, which knows by it that the place is meant for it.
 */
struct vb_proof {
	uint64_t asked; /* the nonce of its question */
	uint64_t token; /* 0: nothing is to be proven */
};

/* ask.c: asking a peer for its memory. */
struct vb_ask {
	_Atomic bool wanted;   /* a queue pair of this process wants it */
	_Atomic bool answered; /* the first answer has come */
	int64_t again;         /* CLOCK_MONOTONIC ns: when the peer is asked again, 0: never */
	int64_t pause;         /* the pause before it is asked again */
	uint64_t nonce;        /* of the question that waits for its answer */
	int mem;               /* the peer's memory, opened before the question was sent; -1: not */
	bool proven;           /* `mem` is the memory of the process that speaks */
	bool lost;             /* the question has no connection to go on, or its answer */
	bool first;            /* of the peer's answers none has come: channels wait for it */
};

struct vb_peer {
	struct vb_node *node;
	struct vb_peer *next;
	const struct vb_page *page; /* first part of its page */
	/*
	 * First part of its keys. This and the other members about its memory are valid once it is
	 * given.
	 */
	const struct vb_keyring *keys;
	_Atomic(void *) whole_page, whole_keys; /* NULL until needed */
	uint64_t nonce;
	pid_t seen_pid; /* in this process's pid namespace, 0: not visible here */
	uid_t uid;      /* on its first connection */
	bool stranger;  /* of another user */
	bool agrees;    /* a stranger, and in this process's domain */
	/*
	 * trust.c: its page may name any block. A block counts when this process has called its
	 * name and this peer has answered.
	 */
	_Atomic bool must_prove;
	_Atomic bool unproven; /* it has spoken for a block that it has not proven */
	_Atomic uint32_t num_proven;
	uint32_t proven[VB_MAX_BLOCKS];
	bool self;
	bool fences; /* one of the two processes does without base/barrier.h */
	enum vb_peer_state state;
	struct vb_ask ask;
	int64_t heard;         /* when it asked this process for memory last */
	struct vb_proof proof; /* what it is to prove */
	bool waits_for_tracer; /* tracer.c */
	_Atomic bool given;    /* some of its memory was given to this process; stored last */
	_Atomic bool rejected;
	_Atomic uint32_t rung;    /* bell.c: number of its sleep in which it was rung for */
	_Atomic int mem_fd;       /* -1: its memory cannot be reached */
	_Atomic bool unreachable; /* for another reason than mem_fd */
	/* Bulk.c: the process number under which its memory can be reached, 0: none. */
	_Atomic pid_t thread;
	uint64_t thread_word;
	struct vb_turn *turn;
	int arena_fd; /* window.c: of this process itself; -1: mapped as far as it is used */
	uint64_t arena_size;
	uint64_t arena_file; /* its inode */
	size_t windows;      /* of a peer: mapped so far, under the lock */
	/* It has this process's arena, and is told when more of it is used. */
	bool has_arena;
	_Atomic(void *) *window; /* NULL: it has no arena to share */
	struct vb_source pidfd;
	uint32_t connections;
	struct vb_connection *connection; /* the connection to speak on, NULL: none */
	/* bell.c: its messages were read since its bells were read last. The progress thread's. */
	bool spoke;
	bool listed; /* in the table: node->peers */
	struct vb_peer *spoke_next;
	/* One of the table, one for each channel, one for each waiting call. */
	uint32_t references;
	uint32_t num_channels;
	struct vb_channel *channels;       /* by host_next */
	struct vb_rack *racks, *its_racks; /* rack.h: written here; written there */
	uint32_t next_rack;
	bool racks_lost; /* some of its racks were not seen here */
	/* channel_ask.c: requests for channels that wait to be sent, and those not answered yet. */
	struct vb_channel *asks, *asks_last;
	uint32_t asking;
	uint64_t bells_heard; /* entries of its bells that were read */
};

/* connection.c: a control socket. */
struct vb_connection {
	struct vb_source source;
	struct vb_connection *next;
	struct vb_peer *peer; /* set by its hello */
	/* The block that this process called, -1: the other side has called. */
	int block;
	/* Credentials of the process that connected or, if this process has called, listened. */
	struct ucred opened;
	struct ucred from; /* credentials of the sender of the present message */
	int64_t since;     /* CLOCK_MONOTONIC ns */
	uint32_t queued;
	bool closed;
	/*
	 * The greeting on it is complete. Two processes that call each other have two connections,
	 * one of which may be late.
	 */
	bool granted;
	bool grant_held; /* the other side has granted before it was believed */
	bool gave;       /* this process has sent its grant */
	bool last_heard; /* the other side says no more on it */
	bool leaving;    /* this process says no more on it: another connection serves */
	/* The stranger at the other end must prove first that a block is its own. */
	bool grant_owed;
	bool torn;        /* messages were lost with it, which the other side waits for */
	bool ended;       /* to be closed: the other side has gone, */
	bool refused;     /* or is not a process of this library, */
	bool short_here;  /* or no descriptor is left here, */
	bool short_there; /* or there */
	struct vb_outgoing *out;
	struct vb_outgoing **out_end;
	struct vb_connection *unsent_next;
	bool unsent; /* in the list of those with messages that wait */
};

/*
 * contact.c. The functions that take what comes on connections; called by the progress thread,
 * without the lock.
 */
struct vb_hearer {
	void (*message)(struct vb_node *node, struct vb_connection *conn,
			const struct vb_control *msg, int *fds, int num_fds);
	/*
	 * The descriptors of this message were lost, because no number is left for them. False: the
	 * connection is of no use without them.
	 */
	bool (*stripped)(struct vb_node *node, struct vb_connection *conn,
			 const struct vb_control *msg);
	/* The connection has ended; its flags say why. */
	void (*lost)(struct vb_node *node, struct vb_connection *conn);
};

/* contact_table.c: what is known of a block that was asked for. */
enum vb_contact_state {
	VB_CONTACT_STATE_WANTED,
	VB_CONTACT_STATE_CONNECTED, /* hello and grant are on their way */
	VB_CONTACT_STATE_MET,
	VB_CONTACT_STATE_ABSENT,
	VB_CONTACT_STATE_DEAD,
	VB_CONTACT_STATE_REFUSED,
	VB_CONTACT_STATE_SHORT_HERE,
	VB_CONTACT_STATE_SHORT_THERE,
	VB_CONTACT_STATE_NO_MEMORY,
};

struct vb_contact_entry {
	struct vb_contact_entry *next;
	uint32_t block;
	enum vb_contact_state state;
	bool wanted;        /* the progress thread is to connect */
	bool answered;      /* the block had an owner once */
	uint64_t nonce;     /* MET: nonce of the owner */
	int64_t tried;      /* CLOCK_MONOTONIC ns */
	int64_t called;     /* when its name was called last, the same clock */
	int64_t full_since; /* since when its queue of callers is full, 0: it is not */
	int64_t left_since; /* since when the call is left to the owner (contact.c), 0: it is not */
};

#define VB_CONTACT_BUCKETS 1024
#define VB_BARRED          64
#define VB_NUM_BLOCKS      (1u << (24 - VB_QPN_BLOCK_BITS)) /* of all processes */

/*
 * A page is shown to every peer, and so is its nonce: both name a process only together with the
 * process that the kernel names.
 */
struct vb_barred {
	uint64_t nonce;
	pid_t pid;
};

/* tracer.c: the peer that may attach to this process for the moment; NULL: none. */
struct vb_tracer {
	struct vb_peer *peer;
	int64_t until; /* CLOCK_MONOTONIC ns */
};

struct vb_node {
	struct vb_node_events events;
	const struct vb_hearer *hears;
	struct vb_page *page;
	struct vb_keyring *keyring;
	uint64_t nonce;
	_Atomic bool forked;
	_Atomic bool gone;  /* the program has closed descriptors of the library */
	_Atomic bool todo;  /* the progress thread has something to serve */
	_Atomic bool woken; /* a ring of the doorbell from within the process was not heard yet */
	_Atomic bool held;  /* vb_node_hold_alive() was called */
	pthread_t thread;   /* the thread that called it */
	int epoll;
	int page_fd;
	int keyring_fd;
	int lock_fd;
	int mem_fd;
	char obstacle[VB_CONTROL_TEXT];
	struct vb_source doorbell;
	pthread_mutex_t lock;
	/* Rejected peers, which are not accepted again. */
	struct vb_barred barred[VB_BARRED];
	uint32_t num_barred;
	struct vb_peer *self;
	struct vb_peer *peers; /* others */
	uint32_t num_peers;
	uint32_t num_alone;   /* peers without a connection */
	uint32_t num_watched; /* watch.c: peers with a pidfd */
	/* peer_table.c: owners of blocks that were looked for. Pages of it are used as blocks are. */
	struct vb_peer *found[VB_NUM_BLOCKS];
	_Atomic uint32_t news[VB_NUM_BLOCKS]; /* channel_find.c */
	/* Peers that are dead; the table's reference is still to be dropped. */
	struct vb_peer *removed;
	struct vb_connection *connections;
	struct vb_connection *closed; /* to be freed */
	struct vb_connection *unsent; /* with messages that wait */
	struct vb_contact_entry *contacts[VB_CONTACT_BUCKETS];
	uint32_t contacts_wanted; /* entries that are wanted, or more */
	struct vb_watch *watches;
	struct vb_channel *retired; /* closed, to be freed */
	struct vb_channel *downs;   /* channel_life.c: ends that the device is to be told of */
	struct vb_admission admission;
	uint32_t ask_open;       /* ask.c: peers that are to be asked again */
	int64_t ask_due;         /* ask.c: when a peer is to be asked again, 0: never */
	_Atomic bool ask_doubts; /* ask.c: a peer is to prove a block */
	struct vb_tracer tracer;
	int64_t late_due;         /* admit.c: when a greeting is too late, 0: none is under way */
	bool bells_lost;          /* the progress thread's: vb_bell_lost() */
	bool rang;                /* the progress thread's: vb_node_wait() is to return true */
	struct vb_peer *spoke;    /* the progress thread's: bell.c */
	bool hear_all;            /* the progress thread's: the bells of all peers are to be read */
	_Atomic bool look;        /* liveness.c: a peer may have ended */
	bool look_owed;           /* the progress thread's, and so is the next */
	int64_t looked_at;        /* CLOCK_MONOTONIC ns */
	_Atomic int64_t retry_at; /* CLOCK_MONOTONIC ns, 0: nothing to try again */
	uint32_t next_channel_id;
	struct vb_names names;
	struct vb_keys keys;
	struct vb_engines engines;
	struct vb_channels channels;
	struct vb_lock bell_lock; /* bell.c: guards this process's notes in the page */
	_Atomic uint64_t called[VB_MAX_ENGINES / 64];
	struct vb_arena arena;
};

static inline int64_t vb_node_clock(void)
{
	return (int64_t)vb_clock_ns();
}

/* reactor.c */
/* epoll descriptor and doorbell; close: what is watched for other rooms. */
int vb_reactor_open(struct vb_node *node);
void vb_reactor_close(struct vb_node *node);
/*
 * Whether the epoll set of the progress thread is still the library's. A set of the program is
 * neither waited for nor changed.
 */
bool vb_reactor_intact(struct vb_node *node);
/* Waits up to `ns` for events and serves them. */
void vb_reactor_wait(struct vb_node *node, int64_t ns);
/* Rings the process's own doorbell. */
void vb_reactor_ring(struct vb_node *node);
/*
 * Removing also closes. -EBADF (and DESCRIPTORS_GONE noted) if the program has closed the epoll
 * descriptor.
 */
int vb_node_source_add(struct vb_node *node, struct vb_source *source, uint32_t events);
void vb_node_source_remove(struct vb_node *node, struct vb_source *source);
/* Reports readiness once more, although the source is edge-triggered. */
void vb_node_source_again(struct vb_node *node, struct vb_source *source, uint32_t events);
/* The progress thread is to serve what is left for it. Any thread. */
void vb_node_todo(struct vb_node *node);
/* With the lock: the progress thread is to serve again in `delay` ns at the latest. */
void vb_node_retry(struct vb_node *node, int64_t delay);

/*
 * name_address.c: whether the names and processes of this user are this process's own kind. That
 * alone opens no memory (host/trust.h).
 */
bool vb_user_is_ours(const struct vb_node *node, uid_t uid);

/* engines.c: with the lock. */
bool vb_node_has_engine(const struct vb_node *node, uint32_t engine);

/* names.c. open: looks for the user's secret. */
void vb_names_open(struct vb_node *node);
void vb_names_close(struct vb_node *node);

/* admit.c: progress thread. */
void vb_admit_ready(struct vb_node *node, struct vb_source *listener, uint32_t events);
void vb_admit_keyed_ready(struct vb_node *node, struct vb_source *listener, uint32_t events);
/* With the lock: a greeting is complete. None may be left that could be late. */
void vb_admit_greeted(struct vb_node *node);
/* Takes callers that had to wait, and ends greetings that take too long. Without the lock. */
void vb_admit_service(struct vb_node *node);
/* With the lock. Whether this process may keep a connection to this owner of a name. */
bool vb_admit_called(struct vb_node *node, const struct ucred *cred);
/* With the lock: a descriptor for vb_admission.spare, if there is one. */
void vb_admit_spare(struct vb_node *node);
/*
 * Whether there are descriptors for one more peer, as many as a greeting needs at once. A shortage
 * in the middle of a greeting costs both sides more, and the program keeps these few for itself.
 */
bool vb_admit_has_room(const struct vb_node *node);

/* contact_table.c */
/*
 * With the lock. No descriptor is left for a part of a greeting: the caller is told, and the
 * connection ends.
 */
void vb_contact_too_short(struct vb_connection *conn);
/* With the lock. The connection's contact, if this process has called. */
struct vb_contact_entry *vb_contact_of(struct vb_node *node, const struct vb_connection *conn);
bool vb_contact_is_short(enum vb_contact_state state);
/* With the lock. The peer that owns the block, or NULL and why there is none; starts contact. */
struct vb_peer *vb_contact_peer(struct vb_node *node, uint32_t block, int64_t since,
				enum vb_contact *why);
/* With the lock: calls the name of the block of a living peer again. */
enum vb_contact vb_contact_again(struct vb_node *node, uint32_t block);
/* With the lock: calls the names of the blocks that this peer's page claims. */
void vb_contact_prove(struct vb_node *node, const struct vb_peer *peer);
/* With the lock: records that the owner of these blocks has died. */
void vb_contact_mark_dead(struct vb_node *node, const struct vb_peer *peer);
void vb_contact_free_all(struct vb_node *node);

/* channel_find.c: the search for a channel to this block, or to any of this peer's, may end otherwise. */
void vb_channel_news_block(struct vb_node *node, uint32_t block);
void vb_channel_news_peer(const struct vb_peer *peer);

/*
 * contact.c: progress thread. Connects where that is wanted. True if the device was told something.
 */
bool vb_contact_service(struct vb_node *node);
extern const struct vb_hearer vb_contact_hearer;

/*
 * greeting.c: all with the lock. A defect sets conn->refused, a death conn->ended. Those that receive
 * return whether a peer can be used since.
 */
void vb_greeting_hello(struct vb_node *node, struct vb_connection *conn);
bool vb_greeting_hello_receive(struct vb_node *node, struct vb_connection *conn,
			       const struct vb_control *msg, const int *fds, int num_fds);
bool vb_greeting_grant_receive(struct vb_node *node, struct vb_connection *conn);

/* give.c: all with the lock. Take the messages of this connection. */
void vb_give_answer(struct vb_node *node, struct vb_connection *conn, const struct vb_control *msg);
void vb_give_proof(struct vb_node *node, struct vb_connection *conn, const struct vb_control *msg);
/* The process at the other end is to try once more to open this process's memory. */
void vb_give_try_again(struct vb_node *node, struct vb_peer *peer);
/*
 * Whether this peer, which has this process's memory, may have more of it now. If not, it is told
 * of no more.
 */
bool vb_give_still(struct vb_connection *conn);
/* vb_trust_is_kin() of the sender of the present message. */
bool vb_give_is_kin(const struct vb_connection *conn);

/*
 * tracer.c: with the lock. want: this process's descendants alone may attach to it, and the peer asks
 * to be let. False: it had its turn, or there is nothing to be let. end: it needs no turn (any more).
 */
bool vb_tracer_want(struct vb_node *node, struct vb_peer *peer);
void vb_tracer_end(struct vb_node *node, struct vb_peer *peer);
void vb_tracer_service(struct vb_node *node);

/* ask.c: all with the lock. Take the messages of this connection. */
void vb_ask_prove(struct vb_node *node, struct vb_connection *conn, const struct vb_control *msg);
void vb_ask_take(struct vb_peer *peer, const struct vb_control *msg, int *fds, int num_fds);
/* The parts of a GIVE found no descriptor: rings serve, and the peer is asked again. */
void vb_ask_stripped(struct vb_peer *peer);
/* A connection with the peer has ended: a question or an answer may have been on it. */
void vb_ask_lost(struct vb_node *node, struct vb_peer *peer);
/* There is a connection again: a question that was lost is asked. */
void vb_ask_found(struct vb_node *node, struct vb_peer *peer);
/* The peer is asked no more. */
void vb_ask_end(struct vb_peer *peer);
/* Asks the peer for its memory, once; asks peers again that have refused; asks for proofs. */
void vb_ask_memory(struct vb_node *node, struct vb_peer *peer);
/* True if the device is to be told of a change. */
bool vb_ask_service(struct vb_node *node);

/* connection.c: all with the lock. */
struct vb_connection *vb_connection_new(struct vb_node *node, int fd, int block,
					const struct ucred *cred);
/*
 * Queues the message. Descriptors that `owned` names are closed after sending. What the other side
 * waits for is never lost alone: without memory for it the connection ends.
 */
void vb_connection_send(struct vb_node *node, struct vb_connection *conn,
			const struct vb_control *msg, const int *fds, int num_fds, bool owned);
/* Sends what waits on all connections, as far as there is room. */
void vb_connections_flush(struct vb_node *node);
/* Takes the connection out of the epoll set and the list. It is freed at the end of the turn. */
void vb_connection_close(struct vb_node *node, struct vb_connection *conn);
/* The same, and with the last connection of a peer that was never in contact goes the peer. */
void vb_connection_end(struct vb_node *node, struct vb_connection *conn);
/*
 * The connection to speak on, NULL if the peer has none: one on which the peer has granted. The
 * peer then neither ends it as a greeting that takes too long, nor reads from it what comes before
 * the grant.
 */
struct vb_connection *vb_connection_of(struct vb_node *node, const struct vb_peer *peer);
/*
 * Another grant on it was sent or came. When both have, other connections with the same peer end,
 * because each costs both sides a descriptor: two processes may call each other at once, and all
 * names of a stranger are called. last: the other side says no more on this one.
 */
void vb_connection_settle(struct vb_node *node, struct vb_connection *conn);
void vb_connection_last(struct vb_node *node, struct vb_connection *conn);
void vb_connection_free_closed(struct vb_node *node);

/* peer_life.c: with the lock. */
struct vb_peer *vb_peer_new(struct vb_node *node, const struct vb_page *page, uint64_t nonce);
/*
 * Takes the peer out of the table as if it had never come; it may come again. No other reference
 * exists.
 */
void vb_peer_forget(struct vb_node *node, struct vb_peer *peer);
void vb_peer_ref(struct vb_peer *peer);
void vb_peer_unref(struct vb_peer *peer);

/* peer_table.c: with the lock. */
/* Whether this process is the peer's. One that is not visible here (0) is known by its user. */
bool vb_peer_is_process(const struct vb_peer *peer, const struct ucred *process);
/*
 * Whether the peer is what its page says: it is kin (host/trust.h), or a name of one of the page's
 * blocks was called and this process answered.
 */
bool vb_peer_is_believed(const struct vb_peer *peer);
struct vb_peer *vb_peer_by_block(struct vb_node *node, uint32_t block);
/* The same if it is known already: no walk of all peers. */
struct vb_peer *vb_peer_found(struct vb_node *node, uint32_t block);
/* The peer can be used: from now on its blocks are known. */
void vb_peer_find_blocks(struct vb_node *node, struct vb_peer *peer);
void vb_peer_unlist(struct vb_node *node, struct vb_peer *peer);
/*
 * Its page names the block and, where that does not count, there is a proof. Also without the lock.
 */
bool vb_peer_owns(const struct vb_peer *peer, uint32_t block);
void vb_peer_prove(struct vb_peer *peer, uint32_t block);
bool vb_peer_has_proven(const struct vb_peer *peer, uint32_t block);
/* The peer has gone wrong: its process is not accepted again with this page. */
void vb_peer_bar(struct vb_peer *peer);
bool vb_peer_is_barred(const struct vb_node *node, uint64_t nonce, pid_t pid);
/*
 * Wakes the peer's progress thread without looking whether it sleeps. True if it is certain to
 * wake.
 */
bool vb_peer_ring(struct vb_peer *peer);

/* bell.c. Rings for that engine of the peer, unless the peer's thread is about to look anyway. */
void vb_bell_ring(struct vb_peer *peer, uint32_t engine);
/*
 * Progress thread. vb_bell_sleep(): from now on peers with news ring. True: there are news already,
 * which were noted. vb_bell_wake(): no peer needs to ring, and rings since then are noted.
 */
bool vb_bell_sleep(struct vb_node *node);
void vb_bell_wake(struct vb_node *node);
/* Progress thread: a message of this peer was read, which may stand for rings. NULL: of anyone. */
void vb_bell_spoke(struct vb_node *node, struct vb_peer *peer);
void vb_bell_unlist(struct vb_node *node, struct vb_peer *peer);

/* alive.c. In the first word of the lock: the thread that holds it, as in futex(2). */
#define VB_ALIVE_TID 0x3fffffffu
int vb_alive_init(struct vb_page *page);
bool vb_alive_word_held(const struct vb_page *page);
/*
 * watch.c. With the lock: the peer has a connection more; the peer was given memory. Of a few peers a
 * pidfd is kept. Of all peers in between, where this kernel gives none for the maker of a socket
 * (before 6.5).
 */
void vb_liveness_met(struct vb_node *node, struct vb_peer *peer, int sock);
void vb_liveness_given(struct vb_node *node, struct vb_peer *peer);
void vb_liveness_unwatch(struct vb_node *node, struct vb_peer *peer);
/* liveness.c. A peer may have ended: the progress thread looks in its next turn. Any thread. */
void vb_liveness_doubt(struct vb_node *node);
/* Tells the device of peers that have died, if a look is due. True if there were any. */
bool vb_liveness_service(struct vb_node *node);
/* The longest time until peers must be looked at again; -1: as long as nothing happens. */
int64_t vb_liveness_pause(struct vb_node *node);

/* turn.c. */
int vb_turn_create(struct vb_turn **turn, int *fd);
int vb_turn_map(int fd, struct vb_turn **turn, const char **defect);
void vb_turn_unmap(struct vb_turn *turn);
/*
 * 0, or -EAGAIN when a running holder has kept the turn too long; never with `insist`. *ticket is
 * for the functions below.
 */
int vb_turn_take(struct vb_turn *turn, bool insist, uint64_t *ticket);
void vb_turn_release(struct vb_turn *turn, uint64_t ticket);
/* Sets the third word of the guard: the turn still belongs to this ticket. */
void vb_turn_guard(const struct vb_turn *turn, uint64_t ticket, struct vb_guard *guard);

/*
 * memory.c: the bytes before the tail. The tail is the last aligned word that the range touches, or the part
 * of it that lies in the range.
 */
size_t vb_memory_before_tail(uint64_t addr, size_t length);

/*
 * bulk.c: long transfers. probe: progress thread. move returns the bytes moved; the rest is left to
 * the descriptor. Elements of this side are copied in order.
 */
void vb_bulk_probe(struct vb_peer *peer, uint64_t nonce_address);
bool vb_bulk_suits(const struct vb_peer *peer, size_t length);
size_t vb_bulk_move(struct vb_peer *peer, uint64_t addr, const struct iovec *iov, int count,
		    size_t length, bool write, const struct vb_guard *guard);

/* memory.c, for atomic.c. */
int vb_memory_transfer_check(const struct vb_peer *peer, uint64_t addr, int count, size_t length);
/* One word, through the descriptor. */
int vb_memory_transfer_word(struct vb_peer *peer, uint64_t addr, uint64_t *value, bool write,
			    const struct vb_guard *guard);

/*
 * memory.c: the descriptor of this process's memory for peers; -1 and the obstacle; or -errno when
 * the system is short of something.
 */
int vb_memory_open_own(const uint64_t *nonce, char *obstacle, size_t size);
/* Whether a received descriptor is what its sender says: the memory of a process. */
bool vb_memory_usable(int fd);

/*
 * arena.c. create: the file only; -errno. forked: in the child, while its descriptors are still
 * open.
 */
int vb_arena_create(struct vb_node *node);
void vb_arena_destroy(struct vb_node *node);
void vb_arena_forked(struct vb_node *node);

/*
 * window.c. attach: takes the descriptor of a peer's arena if it can be mapped safely; the peer's
 * keys are there. extend: with the lock; the descriptor stays the caller's.
 */
int vb_window_attach(struct vb_peer *peer, int fd, const char **defect);
void vb_window_extend(struct vb_peer *peer, int fd);
void vb_window_detach(struct vb_peer *peer);

#endif
