/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Remote atomics. The memory decides which way is taken, not the region. Where several processes
 * may have mapped a word, the processor's own atomics change it. Elsewhere the thread changes it
 * that has the turn of the memory's process (turn.c).
 */
#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "host/arena.h"
#include "host/guard.h"
#include "host/private.h"

/* *value gets what the word becomes. False: the word stays. */
static bool changed(const struct vb_atomic *op, uint64_t old, uint64_t *value)
{
	*value = op->compare_swap ? op->swap_add : old + op->swap_add;
	return !op->compare_swap || old == op->compare;
}

static void by_processor(uint64_t *word, const struct vb_atomic *op, uint64_t *original)
{
	if (op->compare_swap) {
		*original = op->compare;
		__atomic_compare_exchange_n(word, original, op->swap_add, false, __ATOMIC_SEQ_CST,
					    __ATOMIC_SEQ_CST);
	} else {
		*original = __atomic_fetch_add(word, op->swap_add, __ATOMIC_SEQ_CST);
	}
}

/* A word of another process's arena. */
static int by_processor_guarded(const struct vb_guard *guard, uint64_t *word,
				const struct vb_atomic *op, uint64_t *original)
{
	uint64_t value = op->compare_swap ? op->compare : op->swap_add;
	int err = op->compare_swap ? vb_guard_swap(guard, word, &value, op->swap_add)
				   : vb_guard_add(guard, word, &value);

	if (!err)
		*original = value;
	return err;
}

static int in_turn(struct vb_peer *peer, uint64_t addr, const struct vb_atomic *op,
		   uint64_t *original, const struct vb_guard *guard)
{
	uint64_t value;
	int err = vb_memory_transfer_word(peer, addr, original, false, guard);

	if (!err && changed(op, *original, &value))
		err = vb_memory_transfer_word(peer, addr, &value, true, guard);
	return err;
}

/*
 * Takes the turn, and makes a guard that looks whether this thread still has it. On failure nothing
 * needs to be given back.
 */
static int begin(struct vb_peer *peer, bool insist, const struct vb_guard *guard,
		 struct vb_guard *with_turn, uint64_t *ticket)
{
	int err = vb_turn_take(peer->turn, insist, ticket);

	if (err)
		return err;
	vb_guard_copy(with_turn, guard);
	vb_turn_guard(peer->turn, *ticket, with_turn);
	return 0;
}

static int check(struct vb_peer *peer, uint64_t addr)
{
	int err = addr % 8 ? -EINVAL : vb_memory_transfer_check(peer, addr, 1, sizeof(uint64_t));

	if (!err && !vb_guard_possible())
		err = -EOPNOTSUPP;
	if (!err && !vb_arena_holds(peer, addr, sizeof(uint64_t)) && !vb_peer_reachable(peer))
		err = -EOPNOTSUPP;
	return err;
}

int vb_peer_atomic(struct vb_peer *peer, uint64_t addr, const struct vb_atomic *op,
		   uint64_t *original, const struct vb_guard *guard)
{
	struct vb_guard with_turn;
	uint64_t ticket;
	size_t room;

	if (peer->self)
		return vb_node_atomic(peer->node, addr, false, op, original);
	int err = check(peer, addr);

	if (!err && vb_arena_holds(peer, addr, sizeof(uint64_t))) {
		uint64_t *word = vb_arena_window(peer, addr, sizeof(*word), &room);

		vb_guard_copy(&with_turn, guard);
		return word ? by_processor_guarded(&with_turn, word, op, original) : -EOPNOTSUPP;
	}
	if (!err)
		err = begin(peer, false, guard, &with_turn, &ticket);
	if (err)
		return err;
	err = in_turn(peer, addr, op, original, &with_turn);
	vb_turn_release(peer->turn, ticket);
	return err;
}

int vb_peer_atomic_write(struct vb_peer *peer, uint64_t addr, uint64_t value,
			 const struct vb_guard *guard)
{
	struct iovec iov = {&value, sizeof(value)};
	struct vb_guard with_turn;
	uint64_t ticket;

	if (peer->self)
		return vb_node_atomic_write(peer->node, addr, false, value);
	int err = check(peer, addr);

	/* Atomics on it are the processor's, so a plain store falls between them. */
	if (!err && vb_arena_holds(peer, addr, sizeof(value)))
		return vb_peer_write(peer, addr, &iov, 1, sizeof(value), true, guard);
	if (!err)
		err = begin(peer, false, guard, &with_turn, &ticket);
	if (err)
		return err;
	err = vb_memory_transfer_word(peer, addr, &value, true, &with_turn);
	vb_turn_release(peer->turn, ticket);
	return err;
}

/*
 * A word of this process, by a copy that fails where the program has unmapped it. Where such copies
 * are forbidden (an old container's seccomp filter), plain loads and stores are used. Where the
 * thread cannot be guarded, it is not; then no process takes its turn over while it lives (turn.c).
 */
static int own_word(const struct vb_peer *self, uint64_t addr, uint64_t *value, bool write,
		    const struct vb_guard *guard)
{
	uint64_t *word = (uint64_t *)(uintptr_t)addr;
	struct iovec local = {value, sizeof(*value)};
	struct iovec remote = {word, sizeof(*value)};
	const long argument[6] = {
		self->seen_pid, (long)(uintptr_t)&local, 1, (long)(uintptr_t)&remote, 1, 0};
	long number = write ? SYS_process_vm_writev : SYS_process_vm_readv;
	ssize_t n = vb_guard_call(guard, number, argument);

	if (n == -EOPNOTSUPP) {
		n = syscall(number, argument[0], argument[1], argument[2], argument[3], argument[4],
			    argument[5]);
		n = n < 0 ? -errno : n;
	}
	if (n == -EPERM || n == -ENOSYS) {
		if (!write)
			*value = __atomic_load_n(word, __ATOMIC_ACQUIRE);
		else if (vb_guard_store(guard, word, *value) == -EOPNOTSUPP)
			__atomic_store_n(word, *value, __ATOMIC_RELEASE);
		return 0;
	}
	if (n == -ESTALE)
		return -ESTALE;
	return n == sizeof(*value) ? 0 : -EFAULT;
}

/*
 * Whether an instruction can change the word. futex(2) adds 0 to both halves, and returns an error
 * instead of raising a signal.
 */
static bool writable(uint64_t addr)
{
	uint32_t nobody = 0;
	long add_0 = FUTEX_OP(FUTEX_OP_ADD, 0, FUTEX_OP_CMP_LT, 0);

	return syscall(SYS_futex, &nobody, FUTEX_WAKE_OP_PRIVATE, 0, 0, addr, add_0) >= 0 ||
	       errno != EFAULT;
}

static int own_in_turn(struct vb_peer *self, uint64_t addr, const struct vb_atomic *op,
		       uint64_t *original)
{
	struct vb_guard guard;
	uint64_t ticket, value;
	int err;

	/* Another process that saw this one stopped has taken the turn over: from the beginning. */
	do {
		err = begin(self, true, NULL, &guard, &ticket);
		if (err)
			return err;
		err = own_word(self, addr, original, false, &guard);
		if (!err && changed(op, *original, &value))
			err = own_word(self, addr, &value, true, &guard);
		vb_turn_release(self->turn, ticket);
	} while (err == -ESTALE);
	return err;
}

int vb_node_atomic(struct vb_node *node, uint64_t addr, bool shared, const struct vb_atomic *op,
		   uint64_t *original)
{
	struct vb_peer *self = node->self;
	size_t room;
	uint64_t *word = vb_arena_window(self, addr, sizeof(*word), &room);

	if (!word && !shared)
		return own_in_turn(self, addr, op, original);
	if (!word && !writable(addr))
		return -EFAULT;
	by_processor(word ? word : (uint64_t *)(uintptr_t)addr, op, original);
	return 0;
}

int vb_node_atomic_write(struct vb_node *node, uint64_t addr, bool shared, uint64_t value)
{
	struct vb_peer *self = node->self;
	struct vb_guard guard;
	uint64_t ticket;
	size_t room;
	uint64_t *word = vb_arena_window(self, addr, sizeof(*word), &room);
	int err;

	if (word || (shared && writable(addr))) {
		__atomic_store_n(word ? word : (uint64_t *)(uintptr_t)addr, value,
				 __ATOMIC_RELEASE);
		return 0;
	}
	if (shared)
		return -EFAULT;
	do {
		err = begin(self, true, NULL, &guard, &ticket);
		if (err)
			return err;
		err = own_word(self, addr, &value, true, &guard);
		vb_turn_release(self->turn, ticket);
	} while (err == -ESTALE);
	return err;
}
