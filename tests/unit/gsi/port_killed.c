/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Promise: eight processes that bind, listen and unbind, and that are killed at any moment, also
 * with the table's lock, leave a table that the others go on with. Meanwhile a listener that lives
 * is found in every look-up, without the lock. In the end the table holds what the living have, and
 * nothing else.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cm/port_rule.h"
#include "gsi/port_table.h"
#include "host/commons_lock.h"

#define WORKERS  8u
#define KILLS    400
#define PORTS    40u
#define HANDLES  16u
#define STABLE   100u /* seat of the listener that lives */
#define PORT     7000u
#define PATIENCE 10000000000ll

struct shared {
	struct vb_commons_mutex lock;
	_Atomic bool dead[VB_COMMONS_SEATS];
	_Atomic bool stop;
	_Atomic uint64_t turns, lost_lock, missed;
	_Atomic uint32_t held[WORKERS]; /* bindings of the worker when it was told to stop */
	struct vb_port_table table;
};

static struct shared *s;

static uint32_t number_of(uint32_t seat)
{
	return (seat + 1) << 10;
}

static bool has_ended(void *arg, uint32_t seat)
{
	(void)arg;
	return seat < VB_COMMONS_SEATS && atomic_load(&s->dead[seat]);
}

static void v4(uint8_t gid[16], uint32_t last)
{
	static const uint8_t prefix[16] = {[10] = 0xff, [11] = 0xff, 10};

	memcpy(gid, prefix, 16);
	gid[15] = (uint8_t)last;
}

static bool lock(void)
{
	bool taken = vb_commons_mutex_take(&s->lock, PATIENCE);

	if (!taken)
		atomic_fetch_add(&s->lost_lock, 1);
	return taken;
}

/* Binds, listens or unbinds once. Its address is its own, ports are everybody's. */
static void turn(struct vb_port_asker *who, uint64_t handle[HANDLES])
{
	uint32_t i = (uint32_t)random() % HANDLES;
	struct vb_gsi_binding b = {.space = 0x0106, .remote_port = 1};

	if (!lock())
		return;
	if (handle[i] && random() % 3) {
		(void)vb_port_listen(&s->table, who, handle[i]);
		(void)vb_port_change(&s->table, who, handle[i], &b);
	} else if (handle[i]) {
		vb_port_unbind(&s->table, who, handle[i]);
		handle[i] = 0;
	} else {
		b.port = (uint16_t)(random() % 4 ? PORT + (uint32_t)random() % PORTS : 0);
		v4(b.address, random() % 8 ? who->seat + 1 : 0);
		who->random = (uint32_t)random();
		if (vb_port_bind(&s->table, who, &b, &handle[i]))
			handle[i] = 0;
	}
	vb_commons_mutex_release(&s->lock);
	atomic_fetch_add(&s->turns, 1);
}

static void worker(uint32_t index)
{
	uint64_t handle[HANDLES] = {0};
	struct vb_port_asker who = {
		.seat = index,
		.number = number_of(index),
		.port_from = 40000,
		.port_to = 40200,
		.has_ended = has_ended,
	};

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	srandom((unsigned int)getpid());
	if (!lock())
		_exit(1);
	vb_port_seat_take(&s->table, index, number_of(index), 1);
	vb_commons_mutex_release(&s->lock);
	atomic_store(&s->dead[index], false);
	while (!atomic_load(&s->stop))
		turn(&who, handle);
	uint32_t held = 0;

	for (uint32_t i = 0; i < HANDLES; i++)
		held += handle[i] != 0;
	atomic_store(&s->held[index], held);
	_exit(0);
}

static pid_t worker_start(uint32_t index)
{
	pid_t pid = fork();

	if (!pid)
		worker(index);
	assert_true(pid > 0);
	return pid;
}

/* Looks the living listener up all the time. */
static pid_t reader_start(void)
{
	pid_t pid = fork();
	struct vb_port_wanted wanted = {.space = 0x0106, .port = PORT + 1, .ip = true};

	assert_true(pid >= 0);
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	v4(wanted.address, STABLE);
	while (!atomic_load(&s->stop)) {
		uint32_t number = 0, seat = 0;
		int err = vb_port_find(&s->table, &wanted, &number, &seat);

		if (err == -EAGAIN && lock()) {
			vb_port_mend(&s->table, wanted.space, wanted.port);
			vb_commons_mutex_release(&s->lock);
		} else if (err || number != number_of(STABLE) || seat != STABLE) {
			atomic_fetch_add(&s->missed, 1);
		}
	}
	_exit(0);
}

static void table_make(void)
{
	struct vb_gsi_binding b = {.space = 0x0106, .port = PORT + 1};
	struct vb_port_asker who = {
		.seat = STABLE, .number = number_of(STABLE), .has_ended = has_ended};
	uint64_t handle;

	s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(s != MAP_FAILED);
	assert_int_equal(vb_commons_mutex_init(&s->lock), 0);
	vb_port_seat_take(&s->table, STABLE, number_of(STABLE), 1);
	v4(b.address, STABLE);
	assert_int_equal(vb_port_bind(&s->table, &who, &b, &handle), 0);
	assert_int_equal(vb_port_listen(&s->table, &who, handle), 0);
}

/* Bits say that a port is busy if it is, and that a word is full only if it is. */
static void bits_check(uint32_t space, uint32_t port)
{
	const struct vb_port_table *t = &s->table;
	uint64_t word = t->busy[space][port / 64];

	assert_int_equal(word >> port % 64 & 1, t->head[space][port] != 0);
	if (t->busy_full[space][port / 4096] >> port / 64 % 64 & 1)
		assert_int_equal(word, UINT64_MAX);
}

/* Every entry that is in use is in the chain of its port, once, and no other is in a chain. */
static uint32_t table_check(void)
{
	static uint8_t seen[VB_PORT_BINDINGS];
	uint32_t linked = 0, used = 0;

	memset(seen, 0, sizeof(seen));
	for (uint32_t space = 0; space < VB_PORT_SPACES; space++) {
		for (uint32_t port = 0; port < VB_PORT_NUMBERS; port++) {
			uint32_t at = s->table.head[space][port];

			bits_check(space, port);
			for (; at; at = s->table.entry[at - 1].next) {
				struct vb_port_body body;

				assert_in_range(at, 1, VB_PORT_BINDINGS);
				assert_int_equal(seen[at - 1]++, 0);
				memcpy(&body, s->table.entry[at - 1].body, sizeof(body));
				assert_int_equal(body.port, port);
				assert_true(s->table.used[(at - 1) / 64] >> (at - 1) % 64 & 1);
				assert_int_equal(body.number, number_of(body.seat));
				linked++;
			}
		}
	}
	for (uint32_t word = 0; word < VB_PORT_BINDINGS / 64; word++)
		used += (uint32_t)__builtin_popcountll(s->table.used[word]);
	assert_int_equal(linked, used);
	return used;
}

static void test_killed(void **state)
{
	pid_t pid[WORKERS], reader;
	uint32_t want = 1;

	(void)state;
	table_make();
	for (uint32_t i = 0; i < WORKERS; i++)
		pid[i] = worker_start(i);
	reader = reader_start();
	srandom(1);
	for (int i = 0; i < KILLS; i++) {
		uint32_t victim = (uint32_t)random() % WORKERS;
		const struct timespec pause = {0, random() % 1500000};

		nanosleep(&pause, NULL);
		kill(pid[victim], SIGKILL);
		assert_int_equal(waitpid(pid[victim], NULL, 0), pid[victim]);
		atomic_store(&s->dead[victim], true);
		nanosleep(&pause, NULL); /* its ports are taken by others, or by nobody */
		pid[victim] = worker_start(victim);
	}
	atomic_store(&s->stop, true);
	for (uint32_t i = 0; i < WORKERS; i++) {
		int status;

		assert_int_equal(waitpid(pid[i], &status, 0), pid[i]);
		assert_int_equal(status, 0);
		want += atomic_load(&s->held[i]);
	}
	assert_int_equal(waitpid(reader, NULL, 0), reader);
	assert_int_equal(atomic_load(&s->lost_lock), 0);
	assert_int_equal(atomic_load(&s->missed), 0);
	assert_true(atomic_load(&s->turns) > KILLS);
	assert_int_equal(table_check(), want);
	print_message("%llu turns\n", (unsigned long long)atomic_load(&s->turns));
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_killed)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
