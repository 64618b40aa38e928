/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The host's table of ports, and of the processes that take part: shared memory of all processes of
 * a user in a network namespace (host/commons.h). Nothing here knows a lock, a clock or a process.
 *
 * Changes are made under the table's lock; look-ups (vb_port_find, vb_port_member ...) need none, so
 * a process that stands still with the lock holds up no message. A change may stop at any point,
 * because its process was killed. So each store leaves a table that can be used: an entry is marked
 * as its owner's before it is linked, and unlinked before it is free. What is left over goes when
 * the seat of that process is cleared. What others wrote is copied, checked, then used; walks are
 * bounded.
 */
#ifndef VB_GSI_PORT_TABLE_H
#define VB_GSI_PORT_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "gsi/gsi.h"
#include "gsi/port_bits.h"
#include "gsi/published.h"
#include "host/commons_seat.h"

#define VB_PORT_BINDINGS 32768u
#define VB_PORT_SPACES   4u
#define VB_PORT_NUMBERS  65536u
#define VB_PORT_BLOCKS   16384u /* of queue pair numbers */
#define VB_PORT_RESTS    512u
#define VB_PORT_NOBODY   UINT32_MAX

/*
 * For so long no process takes a block of one that has ended: the longest time for which a host may
 * repeat a message to it (16 times 4.1 s).
 */
#define VB_PORT_REST_NS  70000000000ull

/*
 * A process that has stopped to listen on a port and lives may listen again soon, in another space
 * too: so long the port is known, of the last VB_PORT_LEFTS ones.
 */
#define VB_PORT_LEFTS    64u
#define VB_PORT_LEFT_NS  5000000000ull

/* What an entry says. Copied in words (VB_PORT_WORDS). */
struct vb_port_body {
	uint32_t seat;
	uint32_t number; /* the owner's GSI number */
	uint32_t scope;
	uint32_t serial; /* of the use of the entry: part of the handle */
	uint16_t space, port, remote_port;
	uint8_t flags; /* VB_PORT_* */
	uint8_t pad;
	uint8_t address[16], remote[16];
};

#define VB_PORT_REUSE     1u
#define VB_PORT_AFONLY    2u
#define VB_PORT_LISTENING 4u
#define VB_PORT_WORDS     (sizeof(struct vb_port_body) / 8)

struct vb_port_entry {
	uint32_t version; /* odd while the body changes */
	uint32_t next;    /* of its port: index + 1; 0 ends the chain */
	uint64_t body[VB_PORT_WORDS];
};

/* A process that takes part. */
struct vb_port_seat {
	uint32_t number; /* its GSI number; 0: none, it only looks up */
	uint32_t taken;
	uint32_t taking; /* vb_commons_taking() of the process that the rest is about */
};

/* A block whose process has ended. */
struct vb_port_rest {
	uint64_t since; /* CLOCK_BOOTTIME ns */
	uint32_t block;
	uint32_t pad;
};

struct vb_port_table {
	uint32_t next_entry; /* where the search for a free one begins */
	uint32_t next_rest;
	uint32_t serial;
	uint32_t next_left;
	uint64_t left[VB_PORT_LEFTS]; /* CLOCK_BOOTTIME ms in the upper 48 bits, port */
	struct vb_port_seat seat[VB_COMMONS_SEATS];
	uint16_t seat_of[VB_PORT_BLOCKS]; /* by block: seat + 1 */
	struct vb_port_rest rest[VB_PORT_RESTS];
	uint64_t used[VB_PORT_BITS_WORDS(VB_PORT_BINDINGS)];
	uint64_t used_full[VB_PORT_BITS_FULL(VB_PORT_BINDINGS)];
	/* Ports that have a binding: a hint where to look for one that has none. */
	uint64_t busy[VB_PORT_SPACES][VB_PORT_BITS_WORDS(VB_PORT_NUMBERS)];
	uint64_t busy_full[VB_PORT_SPACES][VB_PORT_BITS_FULL(VB_PORT_NUMBERS)];
	uint32_t head[VB_PORT_SPACES][VB_PORT_NUMBERS]; /* index + 1 */
	struct vb_port_entry entry[VB_PORT_BINDINGS];
	struct vb_published published;
};

/* Who asks for a change. */
struct vb_port_asker {
	uint32_t seat, number;
	uint32_t random;             /* where the search for a port begins */
	uint16_t port_from, port_to; /* automatic ports */
	uint64_t now;                /* CLOCK_BOOTTIME ns */
	/* Whether the process of that seat, which is in the way, has ended. */
	bool (*has_ended)(void *arg, uint32_t seat);
	void *arg;
};

/*
 * Under the lock. bind: enters the binding, whose port 0 it replaces; -EINVAL: no such port space;
 * -EADDRINUSE, -EADDRNOTAVAIL, -ENOMEM. listen, change: of a binding of the asker; -ENOENT: there
 * is none. unbind: does nothing where there is none.
 */
int vb_port_bind(struct vb_port_table *t, const struct vb_port_asker *who,
		 struct vb_gsi_binding *binding, uint64_t *handle);
int vb_port_listen(struct vb_port_table *t, const struct vb_port_asker *who, uint64_t handle);
int vb_port_change(struct vb_port_table *t, const struct vb_port_asker *who, uint64_t handle,
		   const struct vb_gsi_binding *binding);
void vb_port_unbind(struct vb_port_table *t, const struct vb_port_asker *who, uint64_t handle);

/*
 * Under the lock: the seat is the caller's, with this GSI number (0: none). What a former process
 * left on it goes, and its block rests.
 */
void vb_port_seat_take(struct vb_port_table *t, uint32_t seat, uint32_t number, uint64_t now);
/* Under the lock: the process of the seat has ended. */
void vb_port_seat_clear(struct vb_port_table *t, uint32_t seat, uint64_t now);
/* Whether the block is or was that of a process which ended lately, or is in the table yet. */
bool vb_port_block_rests(const struct vb_port_table *t, uint32_t block, uint64_t now);

/* Look-ups, without the lock. */

/* A request, as far as it chooses the listener. */
struct vb_port_wanted {
	uint16_t space, port;
	bool ip; /* if not, any listener of the port will do */
	uint8_t address[16];
	uint32_t scope; /* the interface by which it came */
};

/*
 * The listener: *number is its GSI number, *seat its seat. Where none fits the address any other
 * listener of the port, which will refuse. -ENOENT: the port has none; -EAGAIN: the table changes
 * too fast, or a process was killed while it changed an entry (vb_port_mend).
 */
int vb_port_find(const struct vb_port_table *t, const struct vb_port_wanted *wanted,
		 uint32_t *number, uint32_t *seat);
/*
 * Where nobody listens: whether somebody is expected to. A process has the port and no remote, or
 * has stopped to listen on this port number lately, in any space.
 */
bool vb_port_expected(const struct vb_port_table *t, const struct vb_port_wanted *wanted,
		      uint64_t now);
/* Under the lock: entries of the port that a killed process has left half changed can be read. */
void vb_port_mend(struct vb_port_table *t, uint16_t space, uint16_t port);
/* The GSI number of the member on that seat; 0: there is none. */
uint32_t vb_port_member(const struct vb_port_table *t, uint32_t seat);
/* The seat of the process that has the block as its GSI's. VB_PORT_NOBODY: it is in no seat. */
uint32_t vb_port_seat_of(const struct vb_port_table *t, uint32_t block);

#endif
