/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A number that all processes of a user know and no others: 16 random bytes in the kernel's keyring
 * of the user (keyrings(7), user-keyring(7)). It is not on disk and needs no keeper: the keyring
 * lasts as long as the kernel, or the user namespace.
 */
#ifndef VB_HOST_SECRET_H
#define VB_HOST_SECRET_H

#include <stdbool.h>
#include <stdint.h>

#include "base/siphash.h"

/*
 * Finds the secret, or makes it. False: the kernel or a filter (seccomp) refuses, or the user's
 * quota is used up.
 */
bool vb_secret_get(uint8_t secret[VB_SIPHASH_KEY_BYTES]);

#endif
