/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Promise: whatever processes are stopped (SIGSTOP), continued and killed at whatever moment, among
 * processes that do everything with one another (RC SEND, WRITE, READ and ATOMIC, by direct access
 * and through rings, device memory, UD, XRC with requests for queues of third processes,
 * registering and freeing all the time, and in the second form between two hosts), in every round:
 *   - every two that run go on exchanging requests while others stand still or have just died;
 *   - when all run again, every two of them do, the successors of the killed included;
 *   - no call takes longer than its bound (storm.h);
 * and in the end nothing is left: no socket name, file in shared memory, descriptor or process.
 *
 * The moments are random, the expectations are not. usage: storm ROUNDS [hosts [SEED]]; 10,000
 * rounds are for an hour of one's own machine.
 */
#include "storm.h"

#include "procs/leftovers.h"
#include "support/check.h"
#include "support/clock.h"
#include "support/process.h"
#include "support/random.h"

#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

struct storm *storm;
const char *storm_net;

enum { PATIENCE_MS = 60000, DESCRIPTORS_MOST = 400 };

static struct process worker[STORM_SLOTS];
static int slots[STORM_SLOTS];
static uint64_t seed;

struct marks {
	uint64_t done[STORM_KINDS][STORM_SLOTS][STORM_SLOTS];
};

static struct marks marks_now(void)
{
	struct marks m;

	memcpy(m.done, (void *)storm->done, sizeof(m.done));
	return m;
}

/*
 * A bit per slot that runs: has every ordered pair of them done something since then? XRC requests
 * go upwards only.
 */
static bool went_on(const struct marks *since, unsigned int running, int kinds, char *who,
		    size_t size)
{
	for (int kind = 0; kind < kinds; kind++) {
		for (int a = 0; a < STORM_SLOTS; a++) {
			for (int b = 0; b < STORM_SLOTS; b++) {
				if (a == b || !(running >> a & 1) || !(running >> b & 1) ||
				    (kind == STORM_XRC && a > b) ||
				    storm->done[kind][a][b] > since->done[kind][a][b])
					continue;
				snprintf(who, size, "%s %d to %d", kind ? "XRC" : "RC", a, b);
				return false;
			}
		}
	}
	return true;
}

/* Prints all that is known, for the analysis of a failure. */
static void describe(void)
{
	for (int kind = 0; kind < STORM_KINDS; kind++) {
		for (int a = 0; a < STORM_SLOTS; a++) {
			for (int b = 0; b < STORM_SLOTS; b++) {
				const struct storm_link *l =
					&storm->link[kind][a < b ? a : b][a < b ? b : a];
				const struct storm_state *s = &storm->state[kind][a][b];

				fprintf(stderr,
					"%s %d to %d: epoch %u of %u, mails %u %u, broken %u; half: connected %d, broken %d, outstanding %d, last status %d, received %llu, done %llu\n",
					kind ? "XRC" : "RC", a, b, s->epoch, l->epoch,
					l->mail[0].epoch, l->mail[1].epoch, l->broken, s->connected,
					s->broken, s->outstanding, s->last_status,
					(unsigned long long)s->received,
					(unsigned long long)storm->done[kind][a][b]);
			}
		}
	}
}

static void expect_going_on(unsigned int running, int kinds, const char *when)
{
	struct marks since = marks_now();
	uint64_t until = now_ms() + PATIENCE_MS;
	char who[40] = "";

	while (!went_on(&since, running, kinds, who, sizeof(who))) {
		processes_check();
		if (now_ms() >= until)
			describe();
		CHECK_SAY(now_ms() < until, "nothing from %s %s", who, when);
		usleep(200);
	}
}

static void stop(int slot)
{
	storm->stops[slot]++;
	process_stop(&worker[slot]);
}

static void go_on(int slot)
{
	process_continue(&worker[slot]);
	storm->stops[slot]++;
}

static void start(int slot)
{
	slots[slot] = slot;
	storm->stops[slot] = 0;
	process_start(&worker[slot], storm_worker, &slots[slot]);
}

static void moment(void)
{
	usleep((useconds_t)(random_next(&seed) % 3000));
}

static void storm_round(void)
{
	const unsigned int all = (1u << STORM_SLOTS) - 1;
	unsigned int stopped = 0, killed = 0;
	int victims = 1 + (int)(random_next(&seed) % (STORM_SLOTS - 2));

	for (int i = 0; i < victims; i++) {
		int slot = (int)(random_next(&seed) % STORM_SLOTS);

		moment();
		if ((stopped | killed) >> slot & 1)
			continue;
		if (random_next(&seed) % 4) {
			stop(slot);
			stopped |= 1u << slot;
		} else {
			process_kill(&worker[slot]);
			killed |= 1u << slot;
		}
	}
	expect_going_on(all & ~stopped & ~killed, 1, "while others stand still");
	for (int slot = 0; slot < STORM_SLOTS; slot++) {
		moment();
		/* Some never go on. */
		if (stopped >> slot & 1 && random_next(&seed) % 6 == 0) {
			process_kill(&worker[slot]);
			killed |= 1u << slot;
		} else if (stopped >> slot & 1) {
			go_on(slot);
		}
		if (killed >> slot & 1)
			start(slot);
	}
	expect_going_on(all, STORM_KINDS, "after all went on");
}

static void lo_up(void)
{
	struct ifreq lo = {.ifr_name = "lo"};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	CHECK(fd >= 0 && !ioctl(fd, SIOCGIFFLAGS, &lo));
	lo.ifr_flags |= IFF_UP;
	CHECK_ZERO(ioctl(fd, SIOCSIFFLAGS, &lo));
	close(fd);
}

/* Holds the second host's namespace. */
static int second_host(int sock, void *unused)
{
	(void)unused;
	if (unshare(CLONE_NEWNET))
		SKIP("a second network namespace cannot be had");
	lo_up();
	message_meet(sock);
	sleep_ms(3600u * 1000u * 8); /* killed */
	return 0;
}

static void hosts_make(struct process *second)
{
	static char path[40];
	char command[600];

	process_start(second, second_host, NULL);
	message_meet(second->sock);
	snprintf(path, sizeof(path), "/proc/%d/ns/net", (int)second->pid);
	snprintf(
		command, sizeof(command),
		"{ ip link add sv0 type veth peer name sv1 netns %d && ip addr add 10.77.1.1/24 dev sv0 && ip link set sv0 up && "
		"nsenter --net=%s ip addr add 10.77.1.2/24 dev sv1 && nsenter --net=%s ip link set sv1 up; } 2>/dev/null",
		(int)second->pid, path, path);
	if (system(command))
		SKIP("two hosts need ip(8) and nsenter(1)");
	storm_net = path;
}

/* In a network namespace of its own the test meets no other program's names. */
static int names_left(void)
{
	FILE *table = fopen("/proc/self/net/unix", "re");
	char line[512];
	int n = 0;

	CHECK(table);
	while (fgets(line, sizeof(line), table))
		n += strstr(line, "@verbatim/") != NULL;
	fclose(table);
	return n;
}

static void report(uint64_t rounds)
{
	fprintf(stderr, "storm: %llu rounds; longest call:", (unsigned long long)rounds);
	for (int i = 0; i < STORM_CALLS; i++)
		fprintf(stderr, " %s %llu.%03llu ms%s", storm_calls[i].name,
			(unsigned long long)storm->longest_us[i] / 1000,
			(unsigned long long)storm->longest_us[i] % 1000,
			i + 1 < STORM_CALLS ? "," : "\n");
}

int main(int argc, char **argv)
{
	uint64_t rounds = argc > 1 ? strtoull(argv[1], NULL, 0) : 100;
	bool hosts = argc > 2 && !strcmp(argv[2], "hosts");
	struct process second = {0};
	bool own_net;
	int file;

	watchdog(0);
	promise("whoever runs goes on, whoever is stopped or killed");
	seed = argc > 3 ? strtoull(argv[3], NULL, 0) : now_us() | 1;
	fprintf(stderr, "storm: seed %llu\n", (unsigned long long)seed);
	own_net = geteuid() == 0 && !unshare(CLONE_NEWNET);
	if (hosts && !own_net)
		SKIP("two hosts need root and network namespaces");
	if (own_net)
		lo_up();
	storm = memory_shared(sizeof(*storm));
	snprintf(storm->path, sizeof(storm->path), "/tmp/vb-storm-XXXXXX");
	file = mkstemp(storm->path);
	CHECK(file >= 0);
	if (hosts)
		hosts_make(&second);
	for (int slot = 0; slot < STORM_SLOTS; slot++)
		start(slot);
	expect_going_on((1u << STORM_SLOTS) - 1, STORM_KINDS, "in the beginning");
	for (uint64_t i = 0; i < rounds; i++)
		storm_round();
	storm->end = true;
	for (int slot = 0; slot < STORM_SLOTS; slot++)
		process_expect_success(&worker[slot], PATIENCE_MS);
	report(rounds);
	promise("nothing is left behind");
	for (int slot = 0; slot < STORM_SLOTS; slot++)
		CHECK_SAY(storm->descriptors[slot] < DESCRIPTORS_MOST, "slot %d has %u descriptors",
			  slot, storm->descriptors[slot]);
	process_kill(&second);
	if (own_net)
		CHECK_EQ(names_left(), 0);
	CHECK_SAY(!shared_file_left(), "/dev/shm/%s", shared_file_left());
	close(file);
	unlink(storm->path);
	return 0;
}
