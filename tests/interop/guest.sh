#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# Usage: guest.sh DIR: what the lab's machine runs: the kernel's device on eth0, then guest.py, which does what it is asked.
here=$(cd "$(dirname "$0")" && pwd)
modprobe rdma_rxe || exit 1
modprobe rdma_ucm # without it the connection manager's cases are left out
rdma link add rxe0 type rxe netdev eth0 || exit 1
ip route add 224.0.0.0/4 dev eth0
exec python3 "$here/guest.py" "$1"
