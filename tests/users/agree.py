# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""What users that agree share, and what those are told that do not."""

import os
import signal

import hosts
from pairs import Failure
from people import ALICE, BOB, CAROL, MALLORY, PATIENT, TEAM, tail


class Agree:
    def __init__(self, everybody, report, mcast):
        self.people = everybody
        self.report = report
        self.mcast = mcast

    def case(self, name, run, *args, **more):
        def within():
            with self.people:
                run(*args, **more)
        self.report.case(name, within)

    def run(self):
        for program in ("ibv_rc_pingpong", "ibv_ud_pingpong"):
            for family in ("IPv4", "IPv6"):
                self.case(f"two users, {program}, {family}", self.together, program, family)
        self.case("a group instead of a directory", self.together, "ibv_rc_pingpong", "IPv4", str(TEAM))
        self.case("three users", self.three)
        self.case("no domain: the refusal names the holder and the cure, rings go on", self.no_domain)
        self.case("the asker's domain alone does not do", self.one_sided)
        self.case("a domain of no use is said", self.of_no_use)
        self.case("who has the port is killed", self.killed)
        self.case("who has the port has ended: others are let in without it", self.left_behind)
        self.case("the port is taken over when it is free", self.taken_over)
        self.case("who has the port stands still", self.stands_still)
        self.case("who was given a socket stands still", self.receiver_still)
        for family, group in (("IPv4", "239.1.2.3"), ("IPv6", "ff05::1:2:3")):
            self.case(f"multicast to two users, {family}", self.multicast, family, group)

    def together(self, program, family, domain=True):
        alice, bob = (self.people.pair(uid, program=program, family=family, domain=domain) for uid in (ALICE, BOB))
        self.people.whole(alice)
        self.people.whole(bob)

    def three(self):
        holder = self.people.flows(ALICE)
        for uid in (BOB, CAROL, ALICE):
            self.people.whole(self.people.pair(uid))
        self.people.flowing(holder)

    def no_domain(self):
        holder = self.people.flows(ALICE, domain=None)
        server, argv = self.people.server(BOB)
        self.people.refused(server, argv, "PORT_TAKEN", f"held by user {ALICE}", "it has no VERBATIM_DOMAIN")
        server, argv = self.people.server(BOB, domain=None)
        self.people.refused(server, argv, "PORT_TAKEN", f"held by user {ALICE}",
                            f"process {holder[0].pid} of user {ALICE} uses it; processes whose VERBATIM_DOMAIN names")
        server, argv = self.people.server(BOB, domain=None)
        self.people.whole((server, self.people.start(0, CAROL, argv)))
        self.people.flowing(holder)

    def one_sided(self):
        holder = self.people.flows(ALICE)
        server, argv = self.people.server(MALLORY)
        self.people.refused(server, argv, "PORT_TAKEN", "this process may not enter the directory")
        server, argv = self.people.server(BOB, domain=None)
        self.people.refused(server, argv, "PORT_TAKEN", f"process {holder[0].pid} of user {ALICE} uses it")
        other = os.path.join(self.people.dir, "other")
        os.mkdir(other)
        os.chown(other, BOB, BOB)
        os.chmod(other, 0o750)
        try:
            server, argv = self.people.server(BOB, domain=other)
            self.people.refused(server, argv, "PORT_TAKEN", "it is not in the domain of this process")
        finally:
            os.rmdir(other)
        self.people.flowing(holder)

    def of_no_use(self):
        holder = self.people.flows(ALICE)
        for domain, why in (("/tmp", "every user has rights to this directory"), ("/nonexistent/domain", "No such file"),
                            ("nosuchgroup", "there is no such group")):
            server, argv = self.people.server(BOB, domain=domain)
            self.people.refused(server, argv, "PORT_TAKEN", f"VERBATIM_DOMAIN={domain}: {why}")
        self.people.flowing(holder)

    def killed(self):
        holder, bob = self.people.flows(ALICE), self.people.flows(BOB)
        holder[1].end()
        holder[0].signal(signal.SIGKILL)
        holder[0].end()
        self.people.flowing(bob)

    def left_behind(self):
        """Alice has gone, and her socket that Bob was given still has the port: nobody can give another one."""
        self.killed()
        self.people.whole(self.people.pair(BOB, program=PATIENT))
        self.people.whole(self.people.pair(CAROL, program=PATIENT))
        self.people.whole(self.people.pair(ALICE))

    def taken_over(self):
        """Bob's server goes on alone until it is ended: nothing tells it of datagrams that do not come."""
        holder, bob = self.people.flows(ALICE), self.people.flows(BOB, program="ibv_ud_pingpong")
        for end in (*holder[::-1], bob[1]):
            end.end()
        carol = self.people.flows(CAROL, program=PATIENT)
        carol[0].says("other processes pass packets on")
        bob[0].end()
        self.people.flowing(carol)
        carol[0].says("packets are steered to place 0 (IPv4)")

    def stands_still(self):
        holder, bob = self.people.flows(ALICE), self.people.flows(BOB)
        holder[0].signal(signal.SIGSTOP)
        holder[1].end()
        self.people.flowing(bob)
        self.people.whole(self.people.pair(BOB, program=PATIENT))
        self.people.whole(self.people.pair(CAROL, program=PATIENT))
        for end in bob[::-1]:
            end.end()
        server, argv = self.people.server(BOB)
        self.people.refused(server, argv, "PORT_TAKEN", f"process {holder[0].pid} of user {ALICE} gives no socket of it",
                            "it does not answer in time")
        holder[0].signal(signal.SIGCONT)
        self.people.whole(self.people.pair(BOB))

    def receiver_still(self):
        holder, bob = self.people.flows(ALICE), self.people.flows(BOB)
        bob[0].signal(signal.SIGSTOP)
        bob[1].end()
        self.people.flowing(holder)
        for uid in (ALICE, CAROL):
            self.people.whole(self.people.pair(uid))

    def multicast(self, family, group):
        program = self.people.program(self.mcast)
        common = [program, hosts.DEVICE, group, str(self.people.index[family])]
        ends = [self.people.start(host, uid, [*common, "receive"], self.people.domain)
                for host, uid in ((0, ALICE), (0, BOB), (1, ALICE))]
        for end in ends:
            end.says("ready")
        ends.append(self.people.start(0, CAROL, [*common, "send"], self.people.domain))
        if any([end.wait() for end in ends]):
            raise Failure("\n".join(tail(end.log) for end in ends))
