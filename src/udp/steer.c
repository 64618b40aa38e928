/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The steering program of a group of sockets, and the probes that tell a socket its place. */
#include "udp/steer.h"

#include <errno.h>
#include <linux/filter.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "base/sys.h"
#include "udp/address.h"
#include "wire/cm_message.h"
#include "wire/packet.h"

#define PROGRAM_MOST 4096u      /* instructions (BPF_MAXINSNS) */
#define NOWHERE      UINT32_MAX /* no group has this place: the kernel chooses by the flow's hash */

/*
 * A probe: an opcode of the manufacturers' range (IBA 9.2.1), destination 0, a secret, the place.
 */
#define PROBE_OPCODE 0xffu
#define PROBE_BYTES  20u
/* Offset of the destination queue pair number, in the second word of the BTH. */
#define AT_NUMBER    4u
/* A packet with a MAD: behind BTH and DETH; the attribute, and the first two words of its body. */
#define MAD_PACKET   (20u + VB_MAD_BYTES + 4u)
#define AT_PSN       8u /* with the AckReq bit and seven reserved ones */
#define AT_ATTRIBUTE (20u + 16u)
#define AT_FIRST_ID  (20u + VB_MAD_HEADER_BYTES)
#define AT_SECOND_ID (AT_FIRST_ID + 4u)
/* Blocks are the upper 14 bits of ids, which have 32, and of numbers, which have 24. */
#define ID_SHIFT     8u
#define AT_SECRET    8u
#define AT_PLACE     16u

struct program {
	struct sock_filter code[PROGRAM_MOST];
	uint32_t length;
};

/* The last question of each family. The probe of another process does not know the secret. */
static struct {
	_Atomic uint64_t secret;
	_Atomic int place;
} asked[2] = {{.place = -1}, {.place = -1}};

static void put(struct program *p, uint16_t code, uint8_t yes, uint8_t no, uint32_t k)
{
	p->code[p->length++] = (struct sock_filter){code, yes, no, k};
}

/* Instructions for `count` entries: a leaf has 3, an inner node 2. */
static uint32_t tree_length(uint32_t count)
{
	return 5 * count - 2;
}

/* The accumulator holds the block of the destination. */
static void put_tree(struct program *p, const struct vb_steer_entry *entry, uint32_t count)
{
	uint32_t left = count / 2;

	if (count == 1) {
		put(p, BPF_JMP | BPF_JEQ | BPF_K, 0, 1, entry->block);
		put(p, BPF_RET | BPF_K, 0, 0, entry->place);
		put(p, BPF_RET | BPF_K, 0, 0, NOWHERE);
		return;
	}
	/* A conditional jump reaches 255 instructions, an unconditional jump reaches all. */
	put(p, BPF_JMP | BPF_JGE | BPF_K, 0, 1, entry[left].block);
	put(p, BPF_JMP | BPF_JA, 0, 0, tree_length(left));
	put_tree(p, entry, left);
	put_tree(p, entry + left, count - left);
}

/* How many places are known. */
static uint32_t places_of(const struct vb_steer_entry *entry, uint32_t count)
{
	uint32_t places = 0;

	for (uint32_t i = 0; i < count; i++) {
		if (entry[i].place >= places)
			places = entry[i].place + 1;
	}
	return places;
}

/*
 * For queue pair 1: a datagram of the connection manager names its process by the upper bits of its
 * receiver's communication id. Requests have none. Any process may get them, and they are sent
 * again with another PSN if there is no answer: so they go to one after the other, and a process
 * that stands still holds up no connection for long. Leaves the block, shifted as in a queue pair
 * number.
 */
static void put_services(struct program *p, uint32_t places)
{
	put(p, BPF_JMP | BPF_JEQ | BPF_K, 0, 15, VB_QPN_SERVICES);
	put(p, BPF_LD | BPF_W | BPF_LEN, 0, 0, 0);
	put(p, BPF_JMP | BPF_JGE | BPF_K, 1, 0, MAD_PACKET);
	put(p, BPF_RET | BPF_K, 0, 0, NOWHERE);
	put(p, BPF_LD | BPF_H | BPF_ABS, 0, 0, AT_ATTRIBUTE);
	put(p, BPF_JMP | BPF_JEQ | BPF_K, 8, 0, VB_CM_SIDR_REP);
	put(p, BPF_JMP | BPF_JEQ | BPF_K, 3, 0, VB_CM_REQ);
	put(p, BPF_JMP | BPF_JEQ | BPF_K, 2, 0, VB_CM_SIDR_REQ);
	put(p, BPF_LD | BPF_W | BPF_ABS, 0, 0, AT_SECOND_ID);
	put(p, BPF_JMP | BPF_JA, 0, 0, 5);
	put(p, BPF_LD | BPF_W | BPF_ABS, 0, 0, AT_PSN);
	put(p, BPF_ALU | BPF_AND | BPF_K, 0, 0, VB_QPN_MASK);
	put(p, BPF_ALU | BPF_MOD | BPF_K, 0, 0, places ? places : 1);
	put(p, BPF_RET | BPF_A, 0, 0, 0);
	put(p, BPF_LD | BPF_W | BPF_ABS, 0, 0, AT_FIRST_ID);
	put(p, BPF_ALU | BPF_RSH | BPF_K, 0, 0, ID_SHIFT);
}

static void program_make(struct program *p, const struct vb_steer_entry *entry, uint32_t count)
{
	p->length = 0;
	put(p, BPF_LD | BPF_W | BPF_ABS, 0, 0, AT_NUMBER);
	put(p, BPF_ALU | BPF_AND | BPF_K, 0, 0, VB_QPN_MASK);
	put(p, BPF_JMP | BPF_JEQ | BPF_K, 0, 2, 0);
	put(p, BPF_LD | BPF_W | BPF_ABS, 0, 0, AT_PLACE);
	put(p, BPF_RET | BPF_A, 0, 0, 0);
	put_services(p, places_of(entry, count));
	put(p, BPF_ALU | BPF_RSH | BPF_K, 0, 0, VB_STEER_BLOCK_BITS);
	if (count)
		put_tree(p, entry, count);
	else
		put(p, BPF_RET | BPF_K, 0, 0, NOWHERE);
}

int vb_steer_attach(int fd, const struct vb_steer_entry *entry, uint32_t count)
{
	struct program *p = malloc(sizeof(*p));
	int err = p ? -ENOMEM : -EAGAIN;

	if (count > VB_STEER_MOST)
		count = VB_STEER_MOST;
	/*
	 * Kernels limit the memory of a program (net.core.optmem_max), some to less than the
	 * largest program.
	 */
	for (; p && err == -ENOMEM; count /= 2) {
		struct sock_fprog whole;

		program_make(p, entry, count);
		whole = (struct sock_fprog){(unsigned short)p->length, p->code};
		err = setsockopt(fd, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, &whole, sizeof(whole))
			      ? -errno
			      : 0;
		if (!count)
			break;
	}
	free(p);
	return err;
}

static void put_be(uint8_t *at, uint64_t value, int bytes)
{
	for (int i = 0; i < bytes; i++)
		at[i] = (uint8_t)(value >> 8 * (bytes - 1 - i));
}

static uint64_t get_be(const uint8_t *at, int bytes)
{
	uint64_t value = 0;

	for (int i = 0; i < bytes; i++)
		value = value << 8 | at[i];
	return value;
}

static socklen_t own_host(bool ipv4, union vb_udp_address *to)
{
	memset(to, 0, sizeof(*to));
	if (ipv4) {
		to->v4.sin_family = AF_INET;
		to->v4.sin_port = htons(VB_UDP_PORT);
		to->v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		return sizeof(to->v4);
	}
	to->v6.sin6_family = AF_INET6;
	to->v6.sin6_port = htons(VB_UDP_PORT);
	to->v6.sin6_addr = in6addr_loopback;
	return sizeof(to->v6);
}

void vb_steer_probe(bool ipv4, uint32_t places)
{
	uint64_t secret = vb_random64();
	uint8_t probe[PROBE_BYTES] = {PROBE_OPCODE};
	union vb_udp_address to;
	socklen_t length = own_host(ipv4, &to);
	int fd = socket(ipv4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	atomic_store(&asked[ipv4].secret, secret);
	atomic_store(&asked[ipv4].place, -1);
	if (fd < 0)
		return;
	put_be(probe + AT_SECRET, secret, 8);
	/* Without a loopback interface no probe arrives, and the flow's hash goes on choosing. */
	if (vb_sys_connect(fd, &to.any, length))
		places = 0;
	for (uint32_t i = 0; i < places; i++) {
		put_be(probe + AT_PLACE, i, 4);
		(void)vb_sys_send(fd, probe, sizeof(probe), MSG_DONTWAIT | MSG_NOSIGNAL);
	}
	vb_sys_close(fd);
}

int vb_steer_place(bool ipv4)
{
	return atomic_load(&asked[ipv4].place);
}

/*
 * A probe for a place that the group does not have may arrive at any socket, this one included.
 * Probes were sent in order of places, so the first that arrives names this socket's place.
 */
bool vb_steer_probe_in(bool ipv4, const uint8_t *packet, uint32_t bytes)
{
	int none = -1;

	if (bytes != PROBE_BYTES || packet[0] != PROBE_OPCODE || get_be(packet + AT_NUMBER, 4))
		return false;
	if (get_be(packet + AT_SECRET, 8) == atomic_load(&asked[ipv4].secret))
		atomic_compare_exchange_strong(&asked[ipv4].place, &none,
					       (int)(get_be(packet + AT_PLACE, 4) & INT32_MAX));
	return true;
}
