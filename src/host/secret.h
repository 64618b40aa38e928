/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A number that all processes of a user know and nobody else: 16 random bytes in the kernel's keyring of the user (keyrings(7),
 * user-keyring(7)). Nothing is on disk, and nobody has to keep it: the keyring lasts as long as the kernel, or the user namespace, does.
 */
#ifndef VB_HOST_SECRET_H
#define VB_HOST_SECRET_H

#include <stdbool.h>
#include <stdint.h>

#include "base/siphash.h"

/* Finds the secret, or makes it. False: the kernel or a filter (seccomp) refuses, or its quota is used up. */
bool vb_secret_get(uint8_t secret[VB_SIPHASH_KEY_BYTES]);

#endif
