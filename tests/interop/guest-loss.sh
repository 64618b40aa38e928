#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# Usage: guest-loss.sh RATE: from now on each packet out of and into this machine is lost with that probability ("1%").
set -e
modprobe ifb numifbs=1
modprobe sch_netem
ip link set ifb0 mtu "$(cat /sys/class/net/eth0/mtu)" up
tc qdisc add dev eth0 root netem loss "$1"
tc qdisc add dev ifb0 root netem loss "$1"
tc qdisc add dev eth0 handle ffff: ingress
tc filter add dev eth0 parent ffff: matchall action mirred egress redirect dev ifb0
