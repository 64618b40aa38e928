#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Usage: run.py --lib DIR --verbatim PROGRAM [--readers PROGRAM] [--shares N] [--only REGEX]
Promise: the programs of docs/applications.md run unmodified under `verbatim run`, as an ordinary user, on one host and between two
(network namespaces), and say what is right. Prints one TAP line a case, with the version of each program before; what is not
installed is skipped. Exits 1 when one failed, 77 (reason on the last line of standard error) when nothing could be run."""

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TESTS = os.path.dirname(HERE)
sys.dont_write_bytecode = True
sys.path[:0] = [HERE, os.path.join(TESTS, "udp"), os.path.join(TESTS, "apps"), os.path.join(TESTS, "view")]

import hosts  # noqa: E402
from ceph import Ceph  # noqa: E402
from connected import Connected  # noqa: E402
from launcher import Launcher, shell  # noqa: E402
from pairs import free_port, listening  # noqa: E402
from shares import CLAIMS, run_shared  # noqa: E402
from place import Failure, Place, Report, Skip, skip  # noqa: E402
from qemu import Migration  # noqa: E402

VERSIONS = {"ucx_perftest": "libucx0", "mpirun.openmpi": "openmpi-bin", "mpiexec.mpich": "mpich", "ibstat": "infiniband-diags",
            "ibv_devinfo": "ibverbs-utils", "lstopo-no-graphics": "hwloc-nox", "fi_info": "libfabric-bin", "qperf": "qperf", "qemu-system-x86_64": "qemu-system-x86",
            "rpma_check": "librpma0", "ceph": "ceph-common",
            "prometheus-node-exporter": "prometheus-node-exporter", "ib_write_bw": "perftest"}
VERBS = {"UCX_TLS": "rc_verbs,ud_verbs,self"}  # UCX makes its rc connections by ud
DATAGRAMS = {"UCX_TLS": "ud_verbs,self"}
WEAK = {"UCX_FENCE_MODE": "weak"}  # docs/applications.md says why
POLL_ALL = {"UCX_ADAPTIVE_PROGRESS": "n"}  # the same
# What a container has besides its network: UCX sees by these that it shares no memory with its peer.
CONTAINER = ["unshare", "--ipc", "--pid", "--fork", "--kill-child", "--mount-proc"]
QUIET = {"UCX_LOG_LEVEL": "error"}
# The transport layer alone, which is told its transport, device and way of sending. UCX's rc_verbs has no swap; its datagrams
# carry active messages alone.
UCT_TESTS = [("rc_verbs", test, size, data) for test, size, data in (
    ("am_lat", 8, "short"), ("put_lat", 8, "short"), ("add_lat", 8, "short"), ("get", 4096, "zcopy"), ("fadd", 8, "short"),
    ("cswap", 8, "short"), ("am_bw", 4096, "bcopy"), ("put_bw", 65536, "zcopy"), ("add_mr", 8, "short"))]
UCT_TESTS += [("ud_verbs", "am_lat", 8, "short"), ("ud_verbs", "am_bw", 512, "bcopy")]
UCP_TESTS = [("tag_lat", 8), ("tag_bw", 65536), ("tag_sync_lat", 8), ("tag_sync_bw", 65536), ("ucp_put_lat", 8),
             ("ucp_put_bw", 1 << 20), ("ucp_get", 65536), ("ucp_add", 8), ("ucp_fadd", 8), ("ucp_swap", 8), ("ucp_cswap", 8),
             ("stream_bw", 65536), ("stream_lat", 8), ("ucp_am_lat", 8), ("ucp_am_bw", 65536)]


def installed(program):
    path = shutil.which(program) or shutil.which(program, path="/usr/sbin:/usr/bin")
    if not path:
        raise Skip(f"{program} is not installed")
    return path


def version(program):
    package = VERSIONS[program]
    asked = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", package], capture_output=True, text=True, check=False)
    return f"{package} {asked.stdout}" if asked.returncode == 0 else package


def skip_case(reason):
    raise Skip(reason)


def expect(text, *patterns):
    for pattern in patterns:
        if not re.search(pattern, text, re.M):
            raise Failure(f"no {pattern!r} in:\n{text[-3000:]}")


class Applications:
    def __init__(self, args, place, nets, report):
        self.args, self.place, self.nets, self.report = args, place, nets, report
        self.log = open(os.path.join(place.dir, "launched"), "w+b")  # what MPI's daemons on the other host say

    def prefix(self, host, container=()):
        return [*self.nets.enter[host], *container, *self.place.prefix]

    def start(self, argv, host=0, env=None, options=(), **more):
        """Starts `verbatim run ARGV` on a host, in a process group of its own."""
        return self.start_plain([self.place.verbatim, "run", *options, *argv], host, env, **more)

    def start_plain(self, argv, host=0, env=None, container=(), **more):
        return subprocess.Popen([*self.prefix(host, container), *argv], env={**self.place.env, "HOME": self.place.dir, **(env or {})},
                                cwd=self.place.dir, text=True, errors="replace", start_new_session=True,
                                **{"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, **more})

    def end(self, process, timeout=90, what=""):
        """What it printed. A failure when it does not end, or not with success."""
        try:
            out, _ = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            out, _ = process.communicate()
            raise Failure(f"{what}: still running after {timeout} s\n{out[-3000:]}") from None
        if process.returncode != 0:
            raise Failure(f"{what}: exit status {process.returncode}\n{out[-3000:]}")
        return out

    def single(self, *argv, timeout=90, **more):
        argv = [installed(argv[0]), *argv[1:]]  # also those that an ordinary user's PATH lacks
        return self.end(self.start(argv, **more), timeout, " ".join(argv))

    def pair(self, argv, env=None, two=False, port_options=("-p", "-p"), container=()):
        """A server on host 0 and its client on the same or the other host, there in a container, too; the client's output."""
        installed(argv[0])
        port = free_port()
        server = self.start([*argv, port_options[0], str(port)], env=env)
        try:
            deadline = time.monotonic() + 30
            while not listening(server.pid, port) and server.poll() is None and time.monotonic() < deadline:
                time.sleep(0.01)
            client = [*argv, port_options[1], str(port), hosts.IPV4[0] if two else "127.0.0.1"]
            out = self.end(self.start(client, host=int(two), env=env, container=container), 90, " ".join(client))
            self.end(server, 20, "the server")
            return out
        finally:
            if server.poll() is None:
                os.killpg(server.pid, signal.SIGKILL)
                server.communicate()

    # What looks at the devices

    def lookers(self):
        case, device = self.report.case, hosts.DEVICE

        def says(name, argv, *patterns, **more):
            case(f"one host: {name}", lambda: expect(self.single(*argv, **more), *patterns))

        says("ibv_devinfo -v", ["ibv_devinfo", "-v"], rf"hca_id:\s+{device}", r"PORT_ACTIVE", r"GID\[ *0\]:.*RoCE v2")
        says("ibstat", ["ibstat"], rf"CA '{device}'", r"State: Active", r"Physical state: LinkUp", r"Link layer: Ethernet")
        says("ibstat -l -p", ["ibstat", "-l"], rf"^{device}$")
        says("ibstatus", ["ibstatus"], rf"Infiniband device '{device}' port 1 status", r"state:\s+4: ACTIVE", r"link_layer:\s+Ethernet")
        says("hwloc (lstopo)", ["lstopo-no-graphics", "--of", "console"], r"PCI 7662:", rf'OpenFabrics "{device}"')
        says("ucx_info -d", ["ucx_info", "-d"], r"Transport: rc_verbs", r"Transport: ud_verbs", rf"Device: {device}:1",
             rf"System device: {device}")
        says("fi_info -p verbs -t FI_EP_DGRAM", ["fi_info", "-p", "verbs", "-t", "FI_EP_DGRAM"], rf"domain: {device}-dgram")
        says("a script of ibdev2netdev's kind", ["sh", "-c", "for d in /sys/class/infiniband/*; do for p in $d/ports/*; do "
             "echo ${d##*/} port ${p##*/} '==>' $(ls $d/device/net) $(cat $p/state $p/gid_attrs/types/0); done; done"],
             rf"^{device} port 1 ==> {hosts.INTERFACE} 4: ACTIVE RoCE v2$")
        case("one host: programs that Debian lacks (NCCL, NVSHMEM, Mooncake, 3FS, UCCL, gloo, NIXL): their look-ups", self.readers)
        case("one host: Prometheus' node exporter (--view=namespace)", self.node_exporter)
        case("one host: perftest's counters (-W)", self.perftest_counters)

    def readers(self):
        if not self.args.readers:
            raise Skip("not built: no C++ compiler")
        out = self.end(self.start([self.place.program(self.args.readers), hosts.DEVICE]), 60, "readers")
        expect(out, r"^1\.\.9$")

    def node_exporter(self):
        installed("prometheus-node-exporter")
        port = free_port()
        server = self.start(["prometheus-node-exporter", "--collector.disable-defaults", "--collector.infiniband",
                             f"--web.listen-address=127.0.0.1:{port}"], options=["--view=namespace"])
        try:
            fetch = ("import sys, time, urllib.request\nfor i in range(200):\n  try:\n"
                     f"    print(urllib.request.urlopen('http://127.0.0.1:{port}/metrics').read().decode()); break\n"
                     "  except OSError: time.sleep(0.1)\n")
            out = self.end(self.start_plain(["/usr/bin/python3", "-c", fetch]), 60, "fetching the metrics")
            if not out.strip():
                server.kill()
                raise Failure(f"it did not answer:\n{server.communicate()[0][-2000:]}")
            expect(out, r'node_scrape_collector_success\{collector="infiniband"\} 1',
                   rf'node_infiniband_state_id\{{device="{hosts.DEVICE}",port="1"\}} 4',
                   rf'node_infiniband_port_data_transmitted_bytes_total\{{device="{hosts.DEVICE}"')
        finally:
            if server.poll() is None:
                os.killpg(server.pid, signal.SIGKILL)
                server.communicate()

    def perftest_counters(self):
        out = self.pair(["ib_write_bw", "-F", "-n", "1000", "-s", "4096", "-W", "counters/port_xmit_data,counters/port_xmit_packets"])
        counted = {name: int(value) for name, value in re.findall(r"counters/(port_xmit_\w+)\s*[=:]\s*(\d+)", out)}
        if counted.get("port_xmit_data", 0) * 4 < 1000 * 4096:
            raise Failure(f"{counted} for 1000 writes of 4096 bytes:\n{out[-2000:]}")

    # What moves data

    def perftest(self, where, two):
        for program, options in (("ib_send_lat", ["-s", "8"]), ("ib_write_bw", ["-s", "65536"]), ("ib_read_bw", ["-s", "65536"]),
                                 ("ib_atomic_bw", ["-A", "FETCH_AND_ADD"]), ("ib_send_bw", ["-c", "UD", "-s", "1024"])):
            argv = [program, "-F", "-n", "500", *options]
            self.report.case(f"{where}: {' '.join(argv)}", lambda argv=argv: expect(self.pair(argv, two=two), r"#bytes"))
        argv = ["ibv_rc_pingpong", "-c", "-g", "0", "-s", "65536", "-n", "500"]
        self.report.case(f"{where}: {' '.join(argv)}", lambda: expect(self.pair(argv, two=two), r"^500 iters"))

    def ucx(self, where, two):
        # Where it was built with MPI it takes itself for a rank of a job unless a terminal starts it.
        no_job = []
        if shutil.which("ucx_perftest"):
            usage = subprocess.run(["ucx_perftest", "-h"], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
            no_job = ["-P", "0"] if "MPI mode" in usage.stdout + usage.stderr else []

        def transfer(test, size, env, *more, container=()):
            argv = ["ucx_perftest", *no_job, "-t", test, "-s", str(size), "-n", "200", "-w", "10", *more]
            out = self.pair(argv, env={**QUIET, **WEAK, **env}, two=two, container=container)
            if re.search(r"\b(ERROR|FATAL)\b|Assertion", out):
                raise Failure(f"UCX complains:\n{out[-3000:]}")
            expect(out, r"^Final:\s+200\b")

        for layer, test, size, data in UCT_TESTS:
            self.report.case(f"{where}: ucx_perftest -x {layer} -t {test}", lambda layer=layer, test=test, size=size, data=data:
                             transfer(test, size, {}, "-x", layer, "-d", f"{hosts.DEVICE}:1", "-D", data))
        ways = [("rc_verbs", VERBS, ()), ("ud_verbs", DATAGRAMS, ())]
        if not two:
            ways.append(("defaults", {}, ()))
        else:
            ways.append(("defaults with UCX_ADAPTIVE_PROGRESS=n", POLL_ALL, ()))
            if subprocess.run([*CONTAINER, "true"], capture_output=True, check=False).returncode == 0:
                ways.append(("defaults, the client in pid and IPC namespaces of its own", {}, CONTAINER))
            else:
                self.report.case(f"{where}: ucx_perftest, defaults", lambda: skip_case("pid and IPC namespaces may not be made here"))
        for name, env, container in ways:
            for test, size in UCP_TESTS:
                self.report.case(f"{where}: ucx_perftest -t {test}, {name}", lambda test=test, size=size, env=env, container=container:
                                 transfer(test, size, env, container=container))

    def compiled(self, compiler):
        out = os.path.join(self.place.dir, f"mpi_check.{compiler.split('.')[-1]}")
        if not os.path.exists(out):
            subprocess.run([installed(compiler), "-O1", "-o", out, os.path.join(HERE, "mpi_check.c")], check=True)
        return out

    def mpi(self):
        mpi4py = [self.place.file("mpi_check.py", open(os.path.join(HERE, "mpi_check.py"), encoding="ascii").read())]
        root = ["--allow-run-as-root"] if self.place.uid == 0 else []
        open_mpi = ["mpirun.openmpi", *root, "--oversubscribe"]
        ucx = ["--mca", "pml", "ucx", "--mca", "osc", "ucx"]

        def ranks(argv, n, env=None):
            expect(self.single(*argv, timeout=240, env={**QUIET, **(env or {})}), rf"^mpi_check: {n} ranks: right$")

        for n in (2, 4):
            for name, options, env in (("pml and osc ucx over rc_verbs", ucx, VERBS), ("defaults", [], {})):
                self.report.case(f"one host: Open MPI, {n} ranks, {name}", lambda n=n, options=options, env=env: ranks(
                    [*open_mpi, "-n", str(n), *options, self.compiled("mpicc.openmpi")], n, env))
            for name, env in (("rc_verbs", VERBS), ("defaults", {})):
                self.report.case(f"one host: MPICH, {n} ranks, {name}", lambda n=n, env=env: ranks(
                    ["mpiexec.mpich", "-n", str(n), self.compiled("mpicc.mpich")], n, env))
            self.report.case(f"one host: mpi4py, {n} ranks, Open MPI over rc_verbs", lambda n=n: ranks(
                [*open_mpi, "-n", str(n), *ucx, *self.mpi4py(), *mpi4py], n, VERBS))
        for n in (2, 4):
            self.report.case(f"two hosts: Open MPI, {n} ranks, pml and osc ucx over rc_verbs", lambda n=n: self.mpi_hosts(
                n, [*open_mpi, "-H", ",".join(f"{a}:{n // 2}" for a in hosts.IPV4), "-n", str(n), "--mca", "plm_rsh_agent", None,
                    "--mca", "btl_tcp_if_include", hosts.INTERFACE, "--mca", "oob_tcp_if_include", hosts.INTERFACE, *ucx],
                "mpicc.openmpi"))
            self.report.case(f"two hosts: MPICH, {n} ranks, rc_verbs", lambda n=n: self.mpi_hosts(
                n, ["mpiexec.mpich", "-hosts", ",".join(f"{a}:{n // 2}" for a in hosts.IPV4), "-n", str(n), "-launcher", "ssh",
                    "-launcher-exec", None, "-localhost", hosts.IPV4[0]], "mpicc.mpich"))

    def mpi4py(self):
        asked = subprocess.run(["/usr/bin/python3", "-c", "import mpi4py"], capture_output=True, check=False)
        if asked.returncode != 0:
            raise Skip("mpi4py is not installed")
        return ["/usr/bin/python3"]

    def mpi_hosts(self, n, argv, compiler):
        """`mpirun ... verbatim run PROGRAM`: each rank is started under it on its own host."""
        installed(argv[0])
        env = {**self.place.env, "HOME": self.place.dir, **QUIET, **VERBS}

        def start(host, command):
            return shell(self.prefix(host), command, env, self.log)

        with Launcher(self.place, start, hosts.IPV4) as launcher:
            argv = [launcher.agent if word is None else word for word in argv]
            argv += [self.place.verbatim, "run", self.compiled(compiler)]
            expect(self.end(self.start_plain(argv, env={**QUIET, **VERBS}), 240, " ".join(argv)), rf"^mpi_check: {n} ranks: right$")

    def libfabric(self, where, two):
        def pingpong():
            argv = ["fi_pingpong", "-p", "verbs;ofi_rxd", "-e", "rdm", "-d", f"{hosts.DEVICE}-dgram", "-c", "-I", "100", "-S", "1024"]
            expect(self.pair(argv, two=two, port_options=("-B", "-P")), r"^1k +100 ")
        self.report.case(f"{where}: fi_pingpong -p 'verbs;ofi_rxd' -e rdm -c", pingpong)


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--lib", required=True)
    parser.add_argument("--verbatim", required=True)
    parser.add_argument("--readers", type=os.path.abspath)
    parser.add_argument("--shares", type=int, default=1, help="so many pairs of hosts at once, each working off its share")
    parser.add_argument("--only")
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    args.lib, args.verbatim = os.path.abspath(args.lib), os.path.abspath(args.verbatim)
    sys.argv = [os.path.abspath(__file__), *sys.argv[1:]]
    if args.shares > 1:
        return run_shared(args.shares)
    hosts.enter(skip)
    os.environ["LD_LIBRARY_PATH"] = args.lib
    nets = hosts.Hosts(skip)
    del os.environ["LD_LIBRARY_PATH"]
    if CLAIMS not in os.environ:
        for program in VERSIONS:
            print(f"# {version(program)}")
    try:
        with Place(args.lib, args.verbatim, ordinary=os.geteuid() == 0 and second_user_known(), name="verbatim-apps-") as place:
            report = Report(args.only)
            applications = Applications(args, place, nets, report)
            applications.lookers()
            for where, two in (("one host", False), ("two hosts", True)):
                applications.perftest(where, two)
                applications.ucx(where, two)
                applications.libfabric(where, two)
                Ceph(applications, hosts.DEVICE).cases(where, two, hosts.IPV4[0])
                Connected(applications).cases(where, two, hosts.IPV4[0])
                Migration(applications).cases(where, two, hosts.IPV4[0])
            applications.mpi()
    finally:
        nets.close()
    return report.end()


def second_user_known():
    """Root of an ordinary user's own user namespace is that ordinary user."""
    with open("/proc/self/uid_map", encoding="ascii") as table:
        return any(int(row.split()[2]) > 1 for row in table)


if __name__ == "__main__":
    sys.exit(main())
