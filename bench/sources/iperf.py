# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""iperf3, unmodified: what TCP carries between the two hosts, and within one."""

import json

from kit.figure import Source
from kit.session import Failure, hosts


def received(text):
    """GB/s that arrived."""
    try:
        return json.loads(text)["end"]["sum_received"]["bits_per_second"] / 8e9
    except (ValueError, KeyError) as fault:
        raise Failure(f"iperf3's report cannot be read: {fault!r}") from None


class Iperf(Source):
    """Specs: ("TCP", MTU of the interface); ("loopback",)."""

    name = "iperf3"
    units = {"TCP": "GB/s", "loopback": "GB/s"}

    def run(self, session, library, specs):
        session.need("iperf3")
        found = {}
        for spec in specs:
            far = spec[0] == "TCP"
            if far:
                session.set_mtu(spec[1])
            client = ["iperf3", "-t", "1", "-O", "0.2", "-J", "-c", hosts.IPV4[0] if far else "127.0.0.1"]
            found[spec] = received(session.pair(["iperf3", "-s", "-1"], far=far, client=client)[1])
        return found
