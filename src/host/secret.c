/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The user's secret. A process that finds none makes one in a keyring of its thread and moves it. A
 * move that must not replace a key of that name (KEYCTL_MOVE_EXCL, Linux 5.3) makes two makers
 * agree. add_key(2) into the user's keyring would change the other maker's key.
 */
#include "host/secret.h"

#include <errno.h>
#include <linux/keyctl.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/log.h"
#include "base/random.h"

#ifndef KEYCTL_MOVE
#define KEYCTL_MOVE      30
#define KEYCTL_MOVE_EXCL 0x00000001
#endif

#define KEY_TYPE "user"
#define KEY_NAME "verbatim:names"
/*
 * The possessor has all rights. The user's other processes, whose session may not reach the user's
 * keyring, may view, read and search.
 */
#define KEY_PERM 0x3f0b0000ul

static long key_control(int operation, unsigned long a, unsigned long b, unsigned long c,
			unsigned long d)
{
	return syscall(SYS_keyctl, operation, a, b, c, d);
}

/* Returns the key's serial number; -1 and errno. */
static long key_find(void)
{
	return key_control(KEYCTL_SEARCH, (unsigned long)KEY_SPEC_USER_KEYRING, (uintptr_t)KEY_TYPE,
			   (uintptr_t)KEY_NAME, 0);
}

static bool key_read(long key, uint8_t secret[VB_SIPHASH_KEY_BYTES])
{
	return key_control(KEYCTL_READ, (unsigned long)key, (uintptr_t)secret, VB_SIPHASH_KEY_BYTES,
			   0) == VB_SIPHASH_KEY_BYTES;
}

/* 0: the key exists now, made by this process or by a faster one. */
static int key_make(void)
{
	uint64_t payload[2] = {vb_random64(), vb_random64()};
	long key = syscall(SYS_add_key, KEY_TYPE, KEY_NAME, payload, sizeof(payload),
			   KEY_SPEC_THREAD_KEYRING);

	explicit_bzero(payload, sizeof(payload));
	if (key < 0)
		return -errno;
	long err = key_control(KEYCTL_SETPERM, (unsigned long)key, KEY_PERM, 0, 0);

	if (!err)
		err = key_control(KEYCTL_MOVE, (unsigned long)key,
				  (unsigned long)KEY_SPEC_THREAD_KEYRING,
				  (unsigned long)KEY_SPEC_USER_KEYRING, KEYCTL_MOVE_EXCL);
	if (!err)
		return 0;
	err = errno;
	key_control(KEYCTL_UNLINK, (unsigned long)key, (unsigned long)KEY_SPEC_THREAD_KEYRING, 0,
		    0);
	return err == EEXIST ? 0 : (int)-err;
}

bool vb_secret_get(uint8_t secret[VB_SIPHASH_KEY_BYTES])
{
	int saved = errno, err = 0;
	long key = key_find();

	if (key < 0 && errno == ENOKEY) {
		err = key_make();
		key = err ? -1 : key_find();
	}
	bool got = key >= 0 && key_read(key, secret);

	if (!got)
		vb_log(VB_LOG_INFO, "no secret of the user for names: keyctl: %s",
		       strerror(err ? -err : errno));
	errno = saved;
	return got;
}
